"""Blocks of networks that read a signal ``[1, C, T]`` or a volume ``[1, C, D, H, W]``."""

from __future__ import annotations

import math

from openvino import opset15 as ops

from networks.builder import Node
from networks.random_blocks.any_rank import pointwise
from networks.random_blocks.drawn import LARGEST_FLOPS, LARGEST_TENSOR, Block, Drawn, dims_of
from networks.variation import chance, pick


def begin(d: Drawn) -> Node:
    if chance(d.random, 0.6):
        channels, sides, kernel = pick(d.random, (1, 1, 2, d.size(8, 256))), [d.size(16, 4096)], 7
    else:
        channels, sides, kernel = pick(d.random, (1, 1, 3)), [d.size(4, 32), *[d.size(8, 64)] * 2], 3
    x = d.net.input("grid", (1, channels, *sides))
    return d.usual(d.conv(x, _bounded(d, x, kernel), kernel))


def _bounded(d: Drawn, x: Node, kernel: int, most: int = 256) -> int:
    """Output channels that keep a convolution below some work, and what it writes below some size."""
    return max(4, min(d.channels(x, kernel, most), LARGEST_TENSOR // math.prod(dims_of(x)[2:])))


def _is_heavy(x: Node, kernel: int) -> bool:
    """Whether a convolution that keeps the channels would be too much work."""
    _, channels, *sides = dims_of(x)
    return 2 * channels**2 * math.prod(sides) * kernel ** len(sides) > LARGEST_FLOPS


def _kernel(d: Drawn, x: Node) -> int:
    """Of a convolution: signals have longer ones."""
    return pick(d.random, (1, 3, 3, 5, 7, 11) if len(dims_of(x)) == 3 else (1, 3, 3))


def _plain(d: Drawn, x: Node) -> Node:
    kernel = _kernel(d, x)
    channels = _bounded(d, x, kernel)
    stride = 2 if min(dims_of(x)[2:]) >= 8 and chance(d.random, 0.25) else 1
    y = d.conv(x, channels, kernel, stride=stride, groups=d.groups(dims_of(x)[1], channels))
    return d.usual(y) if chance(d.random, 0.9) else y


def _one_axis_after_the_other(d: Drawn, x: Node) -> Node:
    """A convolution over the picture, and one over time; along the only axis of a signal, in two."""
    if _is_heavy(x, 3):
        return _shrunk(d, x)
    channels, axes = dims_of(x)[1], len(dims_of(x)) - 2
    first, second = ((1, 3, 3), (3, 1, 1)) if axes == 3 else ((3,), (3,))
    y = d.usual(d.net.conv(x, channels, first, name=f"conv{d.serial()}"))
    return d.usual(d.net.conv(y, channels, second, name=f"conv{d.serial()}"))


def _dilated(d: Drawn, x: Node) -> Node:
    """Convolutions with ever larger gaps, each beside a way around it, as vocoders have them."""
    channels, kernel = dims_of(x)[1], pick(d.random, (3, 3, 7) if len(dims_of(x)) == 3 else (3,))
    if _is_heavy(x, kernel):
        return _shrunk(d, x)
    for step in range(int(d.random.integers(1, 4))):
        y = d.conv(_leaking(d, x), channels, kernel, dilation=pick(d.random, (1, 2, 3)) ** step)
        if chance(d.random, 0.5):
            y = d.conv(_leaking(d, y), channels, kernel, gain=0.2)
        x = d.named(ops.add(y, x))
    return x


def _leaking(d: Drawn, x: Node) -> Node:
    """A ReLU that lets some through."""
    return d.named(ops.prelu(x, d.number(0.1))) if chance(d.random, 0.7) else d.usual(x)


def _gated(d: Drawn, x: Node) -> Node:
    """Half of the channels decide how much passes of the others."""
    if _is_heavy(x, 3):
        return _shrunk(d, x)
    channels = dims_of(x)[1]
    y = d.conv(x, 2 * channels, 3, causal=chance(d.random, 0.5))
    shown, gate = d.named(ops.split(y, d.ints(1), 2)).outputs()
    if chance(d.random, 0.6):
        shown = d.activated(shown, "tanh")
    y = d.named(ops.multiply(shown, d.activated(gate, "sigmoid")))
    return d.named(ops.add(d.conv(y, channels, 1, gain=0.2), x))


def _inverted(d: Drawn, x: Node) -> Node:
    if _is_heavy(x, 1):
        return _shrunk(d, x)
    channels = dims_of(x)[1]
    inner = min(channels * pick(d.random, (1, 2, 4)), 512)
    y = d.usual(d.conv(x, inner, 1)) if inner != channels else x
    y = d.usual(d.conv(y, inner, _kernel(d, x), groups=inner))
    if chance(d.random, 0.3):
        axes = d.ints(list(range(2, len(dims_of(x)))))
        gate = d.activated(d.conv(d.named(ops.reduce_mean(y, axes, True)), inner, 1), "sigmoid")
        y = d.named(ops.multiply(y, gate))
    return d.named(ops.add(d.conv(y, channels, 1, gain=0.2), x))


def _shrunk(d: Drawn, x: Node) -> Node:
    axes = len(dims_of(x)) - 2
    if min(dims_of(x)[2:]) < 6:
        return _plain(d, x)
    step, none = [2] * axes, [0] * axes
    if chance(d.random, 0.5):
        return d.named(ops.avg_pool(x, step, none, none, step, True, "floor"))
    return d.named(ops.max_pool(x, step, [1] * axes, none, none, step, "floor")).output(0)


def _enlarged(d: Drawn, x: Node) -> Node:
    """A transposed convolution, sometimes in groups, or elements repeated before a plain one."""
    _, channels, *sides = dims_of(x)
    axes = len(sides)
    step = pick(d.random, (2, 2, 4, 5, 8) if axes == 1 else (2,))
    out = _bounded(d, x, 2 * step, 128)
    if step**axes * math.prod(sides) * max(channels, out) > LARGEST_TENSOR:
        return _shrunk(d, x)
    if chance(d.random, 0.2):
        larger = d.ints([step * side for side in sides])
        y = d.named(ops.interpolate(x, larger, "nearest", "sizes", axes=d.ints(list(range(2, 2 + axes)))))
        return d.usual(d.conv(y, min(channels, out), 3))
    kernel = 2 * step if chance(d.random, 0.7) else step
    begin, end = ([(kernel - step) // 2] * axes, [-(-(kernel - step) // 2)] * axes)
    settings = {"strides": [step] * axes, "pads_begin": begin, "pads_end": end, "dilations": [1] * axes}
    name, std = f"weight{d.serial()}", (channels * 2**axes) ** -0.5
    if channels % 4 == 0 and chance(d.random, 0.25):
        groups = pick(d.random, [k for k in (2, 4, channels) if channels // k <= out])
        shape = (groups, channels // groups, channels // groups, *[kernel] * axes)
        y = ops.group_convolution_backprop_data(x, d.net.normal(name, shape, std), **settings)
    else:
        weight = d.net.normal(name, (channels, out, *[kernel] * axes), std)
        y = ops.convolution_backprop_data(x, weight, **settings)
    return _leaking(d, d.named(y))


def _normed(d: Drawn, x: Node) -> Node:
    """Normalised per channel, in groups of channels, or over the channels, which lie last for it."""
    channels, axes = dims_of(x)[1], list(range(2, len(dims_of(x))))
    kind = pick(d.random, ("instance", "groups", "last"))
    if kind == "last":
        y = d.normed(d.named(ops.transpose(x, d.ints([0, *axes, 1]))))
        return d.usual(d.named(ops.transpose(y, d.ints([0, axes[-1], *(axis - 1 for axis in axes)]))))
    gain = [d.net.normal(f"gain{d.serial()}", (channels,), 0.1, mean=1.0) for _ in range(2)]
    if kind == "groups":
        groups = pick(d.random, [k for k in (1, 2, 4, 8, channels) if channels % k == 0])
        return d.usual(d.named(ops.group_normalization(x, *gain, groups, 1e-5)))
    each = d.net.normal(f"gain{d.serial()}", (1, channels, *[1] * len(axes)), 0.1, mean=1.0)
    return d.usual(d.named(ops.multiply(d.named(ops.mvn(x, d.ints(axes), True, 1e-5, "INSIDE_SQRT")), each)))


def head(d: Drawn, x: Node) -> Node:
    if chance(d.random, 0.5):
        y = d.conv(x, d.size(1, 8), pick(d.random, (1, 3)))
        return d.activated(y, "tanh") if chance(d.random, 0.5) else y
    axes = d.ints(list(range(2, len(dims_of(x)))))
    return d.dense(d.named(ops.reduce_mean(x, axes, False)), d.size(2, 400))


BLOCKS: tuple[Block, ...] = (_plain, _plain, _one_axis_after_the_other, _dilated, _dilated, _gated, _inverted)
BLOCKS += (_shrunk, _enlarged, _enlarged, _normed, pointwise)
