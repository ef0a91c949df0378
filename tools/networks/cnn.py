"""Convolutional classifiers: Inception-V3, ResNet-50 and MobileNet-V2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import pick, split_depth

# A residual branch that adds little keeps the sum's size over many blocks.
RESIDUAL_GAIN = 0.2


@dataclass(frozen=True)
class ResNetConfig:
    """Sizes of a residual network of bottleneck blocks (He et al. 2015, arXiv 1512.03385)."""

    image: int = 224
    width: int = 64
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> ResNetConfig:
        """Random sizes of ``depth`` blocks."""
        return cls(
            image=pick(random, (96, 128, 160, 192, 224, 256, 320)),
            width=pick(random, (16, 24, 32, 48, 64, 96)),
            classes=pick(random, (10, 100, 365, 1000)),
            blocks=split_depth(random, depth, int(random.integers(3, 5))),
        )


def resnet50(config: ResNetConfig, net: NetworkBuilder) -> ov.Model:
    """A classifier of bottleneck blocks."""
    x: Node = net.input("image", (1, 3, config.image, config.image))
    x = net.conv_relu(x, config.width, 7, stride=2, padding=3, name="stem")
    x = net.max_pool(x, 3, 2, 1)
    x = residual_stages(net, x, config)
    logits = net.dense(net.global_average(x), config.classes, name="fc")
    return net.model("resnet50", {"logits": logits})


def residual_stages(net: NetworkBuilder, x: Node, config: ResNetConfig) -> Node:
    """The stages behind the stem; each but the first halves the image."""
    for stage, blocks in enumerate(config.blocks):
        for block in range(blocks):
            with net.scope(f"layer{stage + 1}"), net.scope(block):
                stride = 2 if stage and not block else 1
                x = _bottleneck(net, x, config.width << stage, stride, project=not block)
    return x


def _bottleneck(net: NetworkBuilder, x: Node, width: int, stride: int, *, project: bool) -> Node:
    y = net.conv_relu(x, width, 1, name="conv1")
    y = net.conv_relu(y, width, 3, stride=stride, padding=1, name="conv2")
    y = net.conv(y, 4 * width, 1, gain=RESIDUAL_GAIN, name="conv3")
    if project:
        x = net.conv(x, 4 * width, 1, stride=stride, gain=1.0, name="downsample")
    return net.relu(net.add(y, x, "sum"))


@dataclass(frozen=True)
class MobileNetConfig:
    """Sizes of an inverted residual network (Sandler et al. 2018, arXiv 1801.04381).

    Attributes:
        stages: Expansion, channels, blocks and first stride of each stage.
        stem: Channels in front.
        head: Channels behind.
    """

    image: int = 224
    stem: int = 32
    stages: tuple[tuple[int, int, int, int], ...] = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )
    head: int = 1280
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> MobileNetConfig:
        """Random sizes of ``depth`` blocks."""
        stem = 8 * int(random.integers(2, 7))
        return cls(
            image=pick(random, (96, 128, 160, 192, 224, 288)),
            stem=stem,
            head=pick(random, (256, 640, 1280, 1536)),
            classes=pick(random, (10, 100, 365, 1000)),
            stages=varied_stages(random, depth, stem),
        )


def mobilenet_v2(config: MobileNetConfig, net: NetworkBuilder) -> ov.Model:
    """MobileNet-V2: depthwise convolutions between narrow layers."""
    x: Node = net.input("image", (1, 3, config.image, config.image))
    x = relu6(net, net.conv(x, config.stem, 3, stride=2, padding=1, name="stem"), "stem.relu6")
    x = inverted_residuals(net, x, config.stages)[-1]
    x = relu6(net, net.conv(x, config.head, 1, name="head"), "head.relu6")
    logits = net.dense(net.global_average(x), config.classes, name="classifier")
    return net.model("mobilenet_v2", {"logits": logits})


def varied_stages(
    random: np.random.Generator, depth: int, stem: int
) -> tuple[tuple[int, int, int, int], ...]:
    """Random stages of ``depth`` inverted residual blocks, as in :class:`MobileNetConfig`."""
    strides = (1, 2, 2, 2, 1, 2, 1)
    expansions = [1, *(pick(random, (3, 4, 6)) for _ in strides[1:])]
    growth = random.uniform(1.1, 1.8, len(strides))
    channels = (8 * np.maximum(1, np.round(stem / 16 * np.cumprod(growth)))).astype(int).tolist()
    blocks = split_depth(random, depth, len(strides))
    return tuple(zip(expansions, channels, blocks, strides, strict=False))


def relu6(net: NetworkBuilder, x: Node, name: str = "relu6") -> Node:
    """ReLU that stops at 6."""
    return net.named(ops.clamp(x, 0.0, 6.0), name)


def inverted_residuals(
    net: NetworkBuilder, x: Node, stages: Sequence[tuple[int, int, int, int]]
) -> list[Node]:
    """The output of each stage, given as in :class:`MobileNetConfig`."""
    outputs = []
    for stage, (expansion, channels, blocks, first_stride) in enumerate(stages):
        for block in range(blocks):
            with net.scope(f"stage{stage + 1}"), net.scope(block):
                x = inverted_residual(net, x, expansion, channels, 1 if block else first_stride)
        outputs.append(x)
    return outputs


def inverted_residual(
    net: NetworkBuilder,
    x: Node,
    expansion: int,
    channels: int,
    stride: int,
    kernel: int = 3,
    activation: Callable[[NetworkBuilder, Node, str], Node] = relu6,
    weighed: Callable[[Node, int], Node] = lambda y, inputs: y,
) -> Node:
    """Many channels between few: to more, each by itself, ``weighed`` given the block's inputs, to few."""
    inputs = x.output(0).get_shape()[1]
    hidden, kind = expansion * inputs, activation.__name__
    y = x
    if expansion != 1:
        y = activation(net, net.conv(y, hidden, 1, name="expand"), f"expand.{kind}")
    y = net.conv(y, hidden, kernel, stride=stride, padding=kernel // 2, groups=hidden, name="depthwise")
    y = weighed(activation(net, y, f"depthwise.{kind}"), inputs)
    if stride == 1 and inputs == channels:
        return net.add(net.conv(y, channels, 1, gain=RESIDUAL_GAIN, name="project"), x, "sum")
    return net.conv(y, channels, 1, gain=1.0, name="project")


@dataclass(frozen=True)
class InceptionConfig:
    """Sizes of Inception-V3 (Szegedy et al. 2015, arXiv 1512.00567).

    Attributes:
        image: Height and width of the image; at least 75.
        divisor: Divides all channel counts.
        blocks: How many blocks there are of each of the three resolutions.
    """

    image: int = 299
    divisor: int = 1
    blocks: tuple[int, int, int] = (3, 4, 2)
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> InceptionConfig:
        """Random sizes of ``depth + 2`` blocks."""
        return cls(
            image=pick(random, (149, 192, 224, 299, 331)),
            divisor=pick(random, (1, 1, 2, 3, 4)),
            classes=pick(random, (10, 100, 365, 1000)),
            blocks=split_depth(random, depth + 2, 3),  # type: ignore[arg-type]
        )


def inception_v3(config: InceptionConfig, net: NetworkBuilder) -> ov.Model:
    """Inception-V3 without its auxiliary head."""
    blocks = _InceptionBlocks(net, config.divisor)
    x: Node = net.input("image", (1, 3, config.image, config.image))
    with net.scope("renormalize"):
        x = _renormalize(net, x)
    with net.scope("stem"):
        x = blocks.conv(x, 32, 3, "conv1", stride=2, padding=0)
        x = blocks.conv(x, 32, 3, "conv2", padding=0)
        x = blocks.conv(x, 64, 3, "conv3")
        x = net.max_pool(x, 3, 2, name="pool1")
        x = blocks.conv(x, 80, 1, "conv4")
        x = blocks.conv(x, 192, 3, "conv5", padding=0)
        x = net.max_pool(x, 3, 2, name="pool2")
    for i in range(config.blocks[0]):
        with net.scope(f"mixed5.{i}"):
            x = blocks.kernels_of_five(x, 64 if i else 32)
    with net.scope("reduce6"):
        x = blocks.first_reduction(x)
    widths = (128, 160, 160, 192)
    for i in range(config.blocks[1]):
        with net.scope(f"mixed6.{i}"):
            x = blocks.factorized_sevens(x, widths[min(i, len(widths) - 1)])
    with net.scope("reduce7"):
        x = blocks.second_reduction(x)
    for i in range(config.blocks[2]):
        with net.scope(f"mixed7.{i}"):
            x = blocks.split_threes(x)
    logits = net.dense(net.global_average(x), config.classes, name="fc")
    return net.model("inception_v3", {"logits": logits})


def _renormalize(net: NetworkBuilder, x: Node) -> Node:
    """From the mean and deviation of ImageNet's channels to 0.5 and 0.5, channel by channel."""
    channels = []
    for c, (mean, deviation) in enumerate(((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))):
        with net.scope(f"channel{c}"):
            index, axis = net.constant("index", c), net.constant("axis", 1)
            y = net.named(ops.gather(x, index, axis), "gather")
            y = net.named(ops.unsqueeze(y, net.constant("unsqueeze.axes", [1])), "unsqueeze")
            scale = net.stored("scale", np.full((1, 1, 1, 1), deviation / 0.5, np.float32))
            y = net.named(ops.multiply(y, scale), "multiply")
            shift = net.stored("shift", np.full((1, 1, 1, 1), (mean - 0.5) / 0.5, np.float32))
            channels.append(net.named(ops.add(y, shift), "add"))
    return net.named(ops.concat(channels, 1), "concat")


Conv = tuple[int, "int | tuple[int, int]", str]
"""Channels, kernel and name of a convolution with stride 1 that keeps the size."""


class _InceptionBlocks:
    """The five kinds of blocks of Inception-V3."""

    def __init__(self, net: NetworkBuilder, divisor: int) -> None:
        self._net = net
        self._divisor = divisor

    def conv(
        self,
        x: Node,
        channels: int,
        kernel: int | tuple[int, int],
        name: str,
        *,
        stride: int = 1,
        padding: int | None = None,
    ) -> Node:
        channels = max(1, channels // self._divisor)
        return self._net.conv_relu(x, channels, kernel, stride=stride, padding=padding, name=name)

    def _chain(self, x: Node, *convolutions: Conv) -> Node:
        for channels, kernel, name in convolutions:
            x = self.conv(x, channels, kernel, name)
        return x

    def _concat(self, *branches: Node) -> Node:
        return self._net.named(ops.concat(list(branches), 1), "concat")

    def _pooled(self, x: Node, channels: int) -> Node:
        return self.conv(self._net.avg_pool(x, 3, 1, 1), channels, 1, "pooled")

    def _halved(self, x: Node, channels: int, name: str) -> Node:
        return self.conv(x, channels, 3, name, stride=2, padding=0)

    def kernels_of_five(self, x: Node, pooled: int) -> Node:
        """Branches of 1x1, 5x5, two 3x3 and pooling."""
        return self._concat(
            self._chain(x, (64, 1, "one")),
            self._chain(x, (48, 1, "five.reduce"), (64, 5, "five")),
            self._chain(x, (64, 1, "double.reduce"), (96, 3, "double.1"), (96, 3, "double.2")),
            self._pooled(x, pooled),
        )

    def first_reduction(self, x: Node) -> Node:
        """Half the resolution, 768 channels."""
        return self._concat(
            self._halved(x, 384, "three"),
            self._halved(self._chain(x, (64, 1, "double.reduce"), (96, 3, "double.1")), 96, "double.2"),
            self._net.max_pool(x, 3, 2),
        )

    def factorized_sevens(self, x: Node, width: int) -> Node:
        """Branches of 7x7 convolutions that are split into 1x7 and 7x1."""
        double = [(width, kernel, f"double.{i}") for i, kernel in enumerate(((7, 1), (1, 7), (7, 1)), 1)]
        return self._concat(
            self._chain(x, (192, 1, "one")),
            self._chain(x, (width, 1, "seven.reduce"), (width, (1, 7), "seven.1"), (192, (7, 1), "seven.2")),
            self._chain(x, (width, 1, "double.reduce"), *double, (192, (1, 7), "double.4")),
            self._pooled(x, 192),
        )

    def second_reduction(self, x: Node) -> Node:
        """Half the resolution, 1280 channels."""
        sevens = (192, 1, "seven.reduce"), (192, (1, 7), "seven.1"), (192, (7, 1), "seven.2")
        return self._concat(
            self._halved(self._chain(x, (192, 1, "three.reduce")), 320, "three"),
            self._halved(self._chain(x, *sevens), 192, "seven.3"),
            self._net.max_pool(x, 3, 2),
        )

    def split_threes(self, x: Node) -> Node:
        """Branches that end in 1x3 beside 3x1."""
        return self._concat(
            self._chain(x, (320, 1, "one")),
            self._split(self._chain(x, (384, 1, "three.reduce")), "three"),
            self._split(self._chain(x, (448, 1, "double.reduce"), (384, 3, "double.1")), "double.2"),
            self._pooled(x, 192),
        )

    def _split(self, x: Node, name: str) -> Node:
        with self._net.scope(name):
            return self._concat(self.conv(x, 384, (1, 3), "wide"), self.conv(x, 384, (3, 1), "high"))
