"""EfficientNet: inverted residual blocks whose channels are weighed by what the whole image shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.cnn import inverted_residual
from networks.variation import pick, split_depth


@dataclass(frozen=True)
class EfficientNetConfig:
    """Sizes of EfficientNet (Tan and Le 2019, arXiv 1905.11946), B0 by default.

    Attributes:
        stages: Expansion, channels, blocks, first stride and kernel of each stage.
        squeeze: The weighing goes through a layer of the block's input channels divided by this.
    """

    image: int = 224
    stem: int = 32
    stages: tuple[tuple[int, int, int, int, int], ...] = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )
    squeeze: int = 4
    head: int = 1280
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> EfficientNetConfig:
        """Random sizes of ``depth`` blocks: the seven stages, wider or narrower, of other lengths."""
        scale = random.uniform(0.5, 2.0)
        full = cls()
        channels = [8 * max(1, round(scale * stage[1] / 8)) for stage in full.stages]
        kernels = [pick(random, (3, 5)) for _ in full.stages]
        expansions = [1, *(pick(random, (3, 4, 6)) for _ in full.stages[1:])]
        strides = [stage[3] for stage in full.stages]
        blocks = split_depth(random, depth, len(full.stages))
        return cls(
            image=pick(random, (128, 192, 224, 240, 260, 300, 380)),
            stem=8 * max(1, round(scale * full.stem / 8)),
            stages=tuple(zip(expansions, channels, blocks, strides, kernels, strict=False)),
            head=pick(random, (640, 1280, 1792)),
            classes=pick(random, (10, 100, 1000)),
        )


def efficientnet(config: EfficientNetConfig, net: NetworkBuilder) -> ov.Model:
    """Stem, stages of blocks, head and classifier."""
    x: Node = net.input("image", (1, 3, config.image, config.image))

    def weighed(y: Node, inputs: int) -> Node:
        return _weighed(net, y, max(1, inputs // config.squeeze))

    x = swish(net, net.conv(x, config.stem, 3, stride=2, padding=1, name="stem"), "stem.swish")
    for i, (expansion, channels, blocks, first_stride, kernel) in enumerate(config.stages):
        for block in range(blocks):
            with net.scope(f"stage{i + 1}"), net.scope(block):
                stride = 1 if block else first_stride
                x = inverted_residual(net, x, expansion, channels, stride, kernel, swish, weighed)
    x = swish(net, net.conv(x, config.head, 1, name="head"), "head.swish")
    logits = net.dense(net.global_average(x), config.classes, name="classifier")
    return net.model("efficientnet", {"logits": logits})


def _weighed(net: NetworkBuilder, x: Node, narrow: int) -> Node:
    """Squeeze and excitation (Hu et al. 2017, arXiv 1709.01507): channels by factors between 0 and 1."""
    channels = x.output(0).get_shape()[1]
    with net.scope("weigh"):
        mean = net.named(ops.reduce_mean(x, net.constant("axes", [2, 3]), keep_dims=True), "mean")
        y = swish(net, net.conv(mean, narrow, 1, name="squeeze"), "squeeze.swish")
        y = net.named(ops.sigmoid(net.conv(y, channels, 1, gain=1.0, name="excite")), "sigmoid")
        return net.named(ops.multiply(x, y), "multiply")


def swish(net: NetworkBuilder, x: Node, name: str) -> Node:
    """The input times its sigmoid."""
    return net.named(ops.swish(x, net.constant(f"{name}.beta", 1.0, np.float32)), name)
