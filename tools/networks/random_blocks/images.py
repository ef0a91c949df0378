"""Blocks of networks that read an image ``[1, C, H, W]``."""

from __future__ import annotations

from openvino import opset15 as ops

from networks.builder import Node
from networks.random_blocks.any_rank import pointwise
from networks.random_blocks.drawn import Block, Drawn, dims_of
from networks.variation import chance, pick


def begin(d: Drawn) -> Node:
    side, channels = d.size(8, 160), pick(d.random, (1, 3, 3, 3, d.size(4, 64)))
    x: Node = d.net.input("image", (1, channels, side, d.size(8, 160) if chance(d.random, 0.2) else side))
    if chance(d.random, 0.5):
        x = d.named(ops.multiply(d.named(ops.subtract(x, d.number(0.4))), d.number(3.9)))
    return d.usual(d.conv(x, d.size(8, 64), pick(d.random, (3, 3, 5, 7)), stride=pick(d.random, (1, 2))))


def _plain(d: Drawn, x: Node) -> Node:
    kernel = pick(d.random, (1, 1, 3, 3, 3, 5))
    stride = 2 if min(dims_of(x)[2:]) >= 8 and chance(d.random, 0.25) else 1
    channels = d.channels(x, kernel)
    y = d.conv(x, channels, kernel, stride=stride, groups=d.groups(dims_of(x)[1], channels))
    if chance(d.random, 0.15):  # a normalisation that was not folded into the weights
        channels = dims_of(y)[1]
        y = d.named(ops.multiply(y, d.net.normal(f"gain{d.serial()}", (1, channels, 1, 1), 0.1, mean=1.0)))
        y = d.named(ops.add(y, d.net.normal(f"shift{d.serial()}", (1, channels, 1, 1), 0.1)))
    return d.usual(y) if chance(d.random, 0.9) else y


def _residual(d: Drawn, x: Node) -> Node:
    channels = dims_of(x)[1]
    inner = max(4, int(channels * pick(d.random, (0.25, 0.5, 1.0))))
    y = d.usual(d.conv(x, inner, pick(d.random, (1, 3))))
    y = d.conv(y, channels, 3, gain=0.2, groups=d.groups(inner, channels))
    return d.usual(d.named(ops.add(y, x)))


def _inverted(d: Drawn, x: Node) -> Node:
    channels = dims_of(x)[1]
    inner = min(channels * pick(d.random, (1, 2, 4, 6)), 768)
    stride = 2 if min(dims_of(x)[2:]) >= 8 and chance(d.random, 0.3) else 1
    y = d.usual(d.conv(x, inner, 1)) if inner != channels else x
    y = d.usual(d.conv(y, inner, pick(d.random, (3, 5, 7)), groups=inner, stride=stride))
    if chance(d.random, 0.4):
        y = _squeeze(d, y)
    out = channels if stride == 1 else d.channels(y, 1)
    y = d.conv(y, out, 1, gain=0.2)
    return d.named(ops.add(y, x)) if stride == 1 else y


def _squeeze(d: Drawn, x: Node) -> Node:
    channels, n = dims_of(x)[1], d.named
    mean = n(ops.reduce_mean(x, d.ints([2, 3]), True))
    gate = d.usual(d.conv(mean, max(4, channels // pick(d.random, (4, 8, 16))), 1))
    gate = d.activated(d.conv(gate, channels, 1), pick(d.random, ("sigmoid", "hsigmoid")))
    return n(ops.multiply(x, gate))


def _branches(d: Drawn, x: Node) -> Node:
    ends: list[Node] = []
    for _ in range(int(d.random.integers(2, 6))):
        y = x
        for _ in range(int(d.random.integers(1, 4))):
            y = pick(d.random, (_plain_same, _plain_same, _pooled))(d, y)
        ends.append(y)
    return d.named(ops.concat(ends, 1))


def _plain_same(d: Drawn, x: Node) -> Node:
    kernel = pick(d.random, (1, 3, 3, 5))
    return d.usual(d.conv(x, min(d.channels(x, kernel), 128), kernel))


def _pooled(d: Drawn, x: Node) -> Node:
    pool = pick(d.random, (d.net.max_pool, d.net.avg_pool))
    return pool(x, 3, 1, 1, name=f"pool{d.serial()}")


def _shrink(d: Drawn, x: Node) -> Node:
    if min(dims_of(x)[2:]) < 6:
        return _plain(d, x)
    pool = pick(d.random, (d.net.max_pool, d.net.max_pool, d.net.avg_pool))
    return pool(x, pick(d.random, (2, 3)), 2, 0, name=f"pool{d.serial()}")


def _dense_block(d: Drawn, x: Node) -> Node:
    for _ in range(int(d.random.integers(1, 4))):
        if dims_of(x)[1] > 512:
            break
        y = d.conv(d.usual(x), pick(d.random, (8, 16, 32)), 3)
        x = d.named(ops.concat([x, y], 1))
    return x


def _shuffled(d: Drawn, x: Node) -> Node:
    _, channels, height, width = dims_of(x)
    if channels % 2:
        return _plain(d, x)
    left, right = d.named(ops.split(x, d.ints(1), 2)).outputs()
    y = d.usual(d.conv(right, channels // 2, 1))
    y = d.usual(d.conv(d.conv(y, channels // 2, 3, groups=channels // 2), channels // 2, 1))
    y = d.named(ops.concat([left, y], 1))
    y = d.named(ops.reshape(y, d.ints([1, 2, channels // 2, height, width]), False))
    y = d.named(ops.transpose(y, d.ints([0, 2, 1, 3, 4])))
    return d.named(ops.reshape(y, d.ints([1, channels, height, width]), False))


def _enlarged(d: Drawn, x: Node) -> Node:
    _, channels, height, width = dims_of(x)
    if height * width * channels > 1 << 18:
        return _shrink(d, x)
    if chance(d.random, 0.3):
        weight = d.net.normal(f"weight{d.serial()}", (channels, max(4, channels // 2), 2, 2), 0.05)
        return d.usual(
            d.named(ops.convolution_backprop_data(x, weight, [2, 2], None, [0, 0], [0, 0], [1, 1]))
        )
    mode = pick(d.random, ("nearest", "linear_onnx"))
    y = ops.interpolate(x, d.number([2.0, 2.0]), mode, "scales", axes=d.ints([2, 3]))
    return d.usual(d.conv(d.named(y), min(d.channels(y, 3), channels), 3))


def _gated_image(d: Drawn, x: Node) -> Node:
    channels = dims_of(x)[1]
    gate = d.activated(d.conv(x, channels, 1), "sigmoid")
    return d.named(ops.multiply(d.conv(x, channels, 3), gate))


def _instance_norm(d: Drawn, x: Node) -> Node:
    channels = dims_of(x)[1]
    y = d.named(ops.mvn(x, d.ints([2, 3]), True, 1e-5, "INSIDE_SQRT"))
    y = d.named(ops.multiply(y, d.net.normal(f"gain{d.serial()}", (1, channels, 1, 1), 0.1, mean=1.0)))
    return d.usual(d.named(ops.add(y, d.net.normal(f"shift{d.serial()}", (1, channels, 1, 1), 0.1))))


def _group_norm(d: Drawn, x: Node) -> Node:
    """Normalised in groups of channels, or all as one, before a convolution that is added."""
    channels = dims_of(x)[1]
    groups = pick(d.random, [k for k in (1, 1, 2, 4, 8, 16, 32, channels) if channels % k == 0])
    scale = [d.net.normal(f"scale{d.serial()}", (channels,), 0.1, mean=1.0) for _ in range(2)]
    y = d.named(ops.group_normalization(x, *scale, groups, 1e-5))
    if chance(d.random, 0.3):
        return d.usual(y)
    y = d.usual(y) if chance(d.random, 0.5) else y
    return d.named(ops.add(x, d.conv(y, channels, pick(d.random, (1, 3)), gain=0.2)))


def _channels_last(d: Drawn, x: Node) -> Node:
    """A block of ConvNeXt's kind: a depthwise convolution, and a perceptron over channels that lie last."""
    channels = dims_of(x)[1]
    y = d.conv(x, channels, pick(d.random, (3, 7)), groups=channels)
    y = d.normed(d.named(ops.transpose(y, d.ints([0, 2, 3, 1]))))
    y = d.dense(d.usual(d.dense(y, min(channels * 4, 512))), channels)
    return d.named(ops.add(d.named(ops.transpose(y, d.ints([0, 3, 1, 2]))), x))


def head(d: Drawn, x: Node) -> Node:
    if chance(d.random, 0.3):
        return d.conv(x, d.size(1, 32), 1)
    y = d.net.global_average(x, name=f"mean{d.serial()}")
    y = d.dense(y, d.size(2, 1000))
    return d.named(ops.softmax(y, -1)) if chance(d.random, 0.5) else y


def _image_only(d: Drawn, x: Node) -> Node:
    """Ops that know which axes are the picture's."""
    n, dims = d.named, dims_of(x)
    kind = pick(d.random, ("grid", "adaptive", "across", "resized", "einsum"))
    if kind == "grid":
        grid = d.net.normal(f"grid{d.serial()}", (1, *dims[2:], 2), 0.5)
        return n(ops.grid_sample(x, grid, {"mode": pick(d.random, ("bilinear", "nearest"))}))
    if kind == "adaptive":
        return _seen_coarsely(d, x)
    if kind == "einsum":
        seen = n(ops.einsum([n(ops.softmax(x, 1)), x], "bchw,bdhw->bcd"))
        return n(ops.add(x, n(ops.einsum([x, seen], "bchw,bcd->bdhw"))))
    if kind == "across":
        return n(ops.lrn(x, d.ints([1]), 1e-4, 0.75, 1.0, 5))
    mode = pick(d.random, ("nearest", "linear", "linear_onnx", "cubic"))
    for size in ([max(1, side // 2) for side in dims[2:]], dims[2:]):
        x = n(ops.interpolate(x, d.ints(size), mode, "sizes", axes=d.ints([2, 3])))
    return x


def _seen_coarsely(d: Drawn, x: Node) -> Node:
    """Averages or maxima over the cells of a grid, brought back to the size of the picture."""
    n, sides = d.named, dims_of(x)[2:]
    most = [min(7, side) for side in sides]
    cells = [1, 1] if chance(d.random, 0.3) else [int(d.random.integers(1, side + 1)) for side in most]
    if chance(d.random, 0.7):
        y = n(ops.adaptive_avg_pool(x, d.ints(cells)))
    else:
        y = n(ops.adaptive_max_pool(x, d.ints(cells), "i64")).output(0)
    if chance(d.random, 0.5):
        y = d.usual(d.conv(y, dims_of(x)[1], 1))
    if cells != [1, 1]:
        y = n(ops.interpolate(y, d.ints(sides), "linear_onnx", "sizes", axes=d.ints([2, 3])))
    return n(ops.add(x, y))


BLOCKS: tuple[Block, ...] = (_plain, _plain, _residual, _inverted, _squeeze, _branches, _shrink, _dense_block)
BLOCKS += (_shuffled, _enlarged, _gated_image, _instance_norm, _group_norm, _channels_last)
BLOCKS += (pointwise, _image_only)
