"""Networks that answer per pixel or per box: U-Net and SSDLite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.cnn import inverted_residuals, relu6, varied_stages
from networks.variation import pick


@dataclass(frozen=True)
class UNetConfig:
    """Sizes of a U-Net (Ronneberger et al. 2015, arXiv 1505.04597) that keeps the image size.

    Attributes:
        image: Height and width; a multiple of ``2 ** depth``.
        depth: How often the resolution is halved.
        convolutions: Of each resolution, on either path.
    """

    image: int = 256
    width: int = 64
    depth: int = 4
    convolutions: int = 2
    classes: int = 2

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> UNetConfig:
        """Random sizes of about ``depth`` convolutions."""
        levels = min(int(random.integers(2, 6)), max(1, depth // 4))
        return cls(
            image=pick(random, (64, 96, 128, 192, 256, 384)),
            width=pick(random, (8, 16, 24, 32, 48, 64)),
            classes=pick(random, (2, 5, 19, 150)),
            depth=levels,
            convolutions=max(1, round(depth / (2 * levels + 1))),
        )


def unet(config: UNetConfig, net: NetworkBuilder) -> ov.Model:
    """Contracting path, expanding path, and long connections between their equals."""
    x: Node = net.input("image", (1, 3, config.image, config.image))
    skips = []
    for level in range(config.depth):
        with net.scope(f"down{level}"):
            x = _convolutions(net, x, config.width << level, config.convolutions)
            skips.append(x)
            x = net.max_pool(x, 2, 2)
    with net.scope("bottom"):
        x = _convolutions(net, x, config.width << config.depth, config.convolutions)
    for level in reversed(range(config.depth)):
        with net.scope(f"up{level}"):
            x = _upsample(net, x, config.width << level)
            x = net.named(ops.concat([skips[level], x], 1), "concat")
            x = _convolutions(net, x, config.width << level, config.convolutions)
    logits = net.conv(x, config.classes, 1, gain=1.0, name="classifier")
    return net.model("unet", {"logits": logits})


def _convolutions(net: NetworkBuilder, x: Node, channels: int, count: int) -> Node:
    for i in range(count):
        x = net.conv_relu(x, channels, 3, name=f"conv{i + 1}")
    return x


def _upsample(net: NetworkBuilder, x: Node, channels: int) -> Node:
    """Transposed convolution that doubles the resolution."""
    inputs = x.output(0).get_shape()[1]
    weight = net.normal("upsample.weight", (inputs, channels, 2, 2), (1.0 / inputs) ** 0.5)
    none = [0, 0]
    return net.named(
        ops.convolution_backprop_data(x, weight, [2, 2], pads_begin=none, pads_end=none, dilations=[1, 1]),
        "upsample",
    )


@dataclass(frozen=True)
class SsdConfig:
    """Sizes of a single shot detector (Liu et al. 2015, arXiv 1512.02325) on a MobileNet-V2.

    Attributes:
        stages: Of the backbone, as in :class:`networks.cnn.MobileNetConfig`.
        sources: Stages whose outputs are searched for objects.
        anchors: Prior boxes per position.
        kept: Boxes per class that non-maximum suppression leaves at most.
    """

    image: int = 300
    stem: int = 32
    stages: tuple[tuple[int, int, int, int], ...] = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
        (2, 512, 1, 2),
        (2, 256, 1, 2),
        (2, 256, 1, 2),
    )
    sources: tuple[int, ...] = (4, 6, 7, 8, 9)
    anchors: int = 6
    classes: int = 91
    kept: int = 100

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> SsdConfig:
        """Random sizes of ``depth`` blocks."""
        stem = 8 * int(random.integers(2, 6))
        searched, extra = int(random.integers(1, 4)), int(random.integers(0, 4))
        stages = varied_stages(random, depth, stem)
        tail = tuple((2, pick(random, (128, 256, 512)), 1, 2) for _ in range(3))
        stages = (*stages, *tail[:extra])
        return cls(
            image=pick(random, (192, 256, 300, 320, 384, 512)),
            stem=stem,
            stages=stages,
            sources=tuple(range(max(0, len(stages) - searched - extra), len(stages))),
            anchors=pick(random, (3, 6, 9)),
            classes=pick(random, (2, 21, 91)),
        )


def ssdlite(config: SsdConfig, net: NetworkBuilder) -> ov.Model:
    """Boxes ``[1, B, 4]``, scores ``[1, classes, B]`` and what non-maximum suppression selects of them."""
    x: Node = net.input("image", (1, 3, config.image, config.image))
    x = relu6(net, net.conv(x, config.stem, 3, stride=2, padding=1, name="stem"), "stem.relu6")
    with net.scope("backbone"):
        features = inverted_residuals(net, x, config.stages)
    offsets, scores, centers = [], [], []
    for source in config.sources:
        feature = features[source]
        centers.append(_centers(feature.output(0).get_shape()[2], config.anchors))
        with net.scope(f"source{source}"):
            offsets.append(_predict(net, feature, config.anchors, 4, "boxes"))
            scores.append(_predict(net, feature, config.anchors, config.classes, "classes"))
    with net.scope("decode"):
        boxes = _decode(net, net.named(ops.concat(offsets, 1), "offsets"), np.concatenate(centers))
        logits = net.named(ops.concat(scores, 1), "logits")
        probabilities = net.transpose(net.named(ops.softmax(logits, -1), "softmax"), (0, 2, 1))
    with net.scope("suppress"):
        limits = (
            net.constant("kept", config.kept),
            net.constant("overlap", 0.5, np.float32),
            net.constant("least_score", 1.5 / config.classes, np.float32),
            net.constant("soft_sigma", 0.0, np.float32),
        )
        selected = net.named(ops.non_max_suppression(boxes, probabilities, *limits), "nms")
    outputs = {"boxes": boxes, "scores": probabilities}
    return net.model(
        "ssdlite", outputs | {"selected": selected.output(0), "selected_scores": selected.output(1)}
    )


def _predict(net: NetworkBuilder, x: Node, anchors: int, values: int, name: str) -> Node:
    """A depthwise separable head: ``[1, C, H, W]`` to ``[1, H * W * anchors, values]``."""
    channels = x.output(0).get_shape()[1]
    with net.scope(name):
        y = relu6(net, net.conv(x, channels, 3, groups=channels, name="depthwise"))
        y = net.conv(y, anchors * values, 1, gain=1.0, name="project")
        return net.reshape(net.transpose(y, (0, 2, 3, 1)), [1, -1, values])


def _centers(size: int, anchors: int) -> NDArray[np.float32]:
    """Centre of each prior box of a square feature map in [0, 1], ``float32[size * size * anchors, 2]``."""
    y, x = np.mgrid[:size, :size]
    grid = (np.stack([y, x], axis=-1) + 0.5) / size
    return np.repeat(grid.reshape(-1, 2), anchors, axis=0).astype(np.float32)


def _decode(net: NetworkBuilder, offsets: Node, centers: NDArray[np.float32]) -> Node:
    """Offsets to prior boxes of a fifth of the image as corners: low y, low x, high y, high x."""
    fifth = net.constant("fifth", np.full((1, 1, 1), 0.2), np.float32)
    half = net.constant("half", np.full((1, 1, 1), 0.1), np.float32)
    shift = net.named(ops.multiply(net.slice(offsets, 2, 0, 2, "shift.slice"), fifth), "shift")
    center = net.add(shift, net.constant("centers", centers[None], np.float32), "center")
    growth = net.named(ops.tanh(net.slice(offsets, 2, 2, 4, "size.slice")), "growth")
    extent = net.named(ops.multiply(net.named(ops.exp(growth), "exp"), half), "extent")
    low = net.named(ops.subtract(center, extent), "low")
    return net.named(ops.concat([low, net.add(center, extent, "high")], 2), "corners")
