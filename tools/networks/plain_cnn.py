"""Convolutional classifiers of the simplest wiring: one chain, and everything to everything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import pick, split_depth


@dataclass(frozen=True)
class VggConfig:
    """Sizes of a chain of convolutions (Simonyan and Zisserman 2014, arXiv 1409.1556).

    Attributes:
        blocks: Convolutions between two poolings.
        widest: Channels double from block to block up to this many.
        hidden: Width of the two layers before the last.
    """

    image: int = 224
    width: int = 64
    blocks: tuple[int, ...] = (2, 2, 3, 3, 3)
    widest: int = 512
    hidden: int = 4096
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> VggConfig:
        """Random sizes of ``depth`` convolutions."""
        width = pick(random, (16, 32, 48, 64, 96))
        return cls(
            image=pick(random, (64, 96, 128, 160, 192, 224, 256)),
            width=width,
            widest=width * pick(random, (4, 8, 16)),
            hidden=pick(random, (256, 1024, 2048, 4096)),
            classes=pick(random, (10, 100, 365, 1000)),
            blocks=split_depth(random, depth, 5),
        )


def vgg(config: VggConfig, net: NetworkBuilder) -> ov.Model:
    """Convolutions of 3x3 one after the other, then three dense layers."""
    x: Node = net.input("image", (1, 3, config.image, config.image))
    for block, convolutions in enumerate(config.blocks):
        with net.scope(f"block{block + 1}"):
            for i in range(convolutions):
                x = net.conv_relu(x, min(config.widest, config.width << block), 3, name=f"conv{i + 1}")
            x = net.max_pool(x, 2, 2)
    x = net.reshape(x, [0, -1], "flatten")
    for i in range(2):
        x = net.relu(net.dense(x, config.hidden, gain=2.0, name=f"hidden{i + 1}"), f"hidden{i + 1}.relu")
    return net.model("vgg", {"logits": net.dense(x, config.classes, name="classifier")})


@dataclass(frozen=True)
class DenseNetConfig:
    """Sizes of a densely connected network (Huang et al. 2016, arXiv 1608.06993).

    Attributes:
        growth: Channels that each layer adds.
        blocks: Layers of each block; each layer of a block reads all before it.
    """

    image: int = 224
    growth: int = 32
    blocks: tuple[int, ...] = (6, 12, 24, 16)
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> DenseNetConfig:
        """Random sizes of ``depth`` layers."""
        return cls(
            image=pick(random, (96, 128, 160, 192, 224, 256)),
            growth=pick(random, (8, 12, 16, 24, 32, 48)),
            classes=pick(random, (10, 100, 1000)),
            blocks=split_depth(random, depth, 4),
        )


def densenet(config: DenseNetConfig, net: NetworkBuilder) -> ov.Model:
    """Blocks of bottleneck layers that each read everything before them in the block."""
    x: Node = net.input("image", (1, 3, config.image, config.image))
    x = net.conv_relu(x, 2 * config.growth, 7, stride=2, padding=3, name="stem")
    x = net.max_pool(x, 3, 2, 1)
    for block, layers in enumerate(config.blocks):
        with net.scope(f"block{block + 1}"):
            for layer in range(layers):
                with net.scope(layer):
                    # The normalisation before each activation differs from reader to reader and stays.
                    y = net.conv_relu(_scaled_relu(net, x), 4 * config.growth, 1, name="reduce")
                    y = net.conv(y, config.growth, 3, gain=1.0, name="grow")
                    x = net.named(ops.concat([x, y], 1), "concat")
            if block + 1 < len(config.blocks):
                with net.scope("transition"):
                    channels = x.output(0).get_shape()[1] // 2
                    x = net.conv(_scaled_relu(net, x), channels, 1, gain=1.0, name="conv")
                    x = net.avg_pool(x, 2, 2)
    logits = net.dense(net.global_average(_scaled_relu(net, x)), config.classes, name="classifier")
    return net.model("densenet", {"logits": logits})


def _scaled_relu(net: NetworkBuilder, x: Node) -> Node:
    """Batch normalisation with no convolution before it, and ReLU."""
    shape = (1, x.output(0).get_shape()[1], 1, 1)
    with net.scope("norm"):
        y = net.named(ops.multiply(x, net.normal("scale", shape, 0.1, mean=1.0)), "multiply")
        return net.relu(net.add(y, net.normal("shift", shape, 0.1)))
