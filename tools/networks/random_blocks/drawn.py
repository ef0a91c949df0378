"""A random network in the making, and the layers that blocks of all kinds share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import chance, pick

Block = Callable[["Drawn", Node], Node]

_UNARY = ("abs", "ceiling", "cos", "elu", "erf", "exp", "floor", "gelu", "hswish", "hsigmoid", "log_softmax")
_UNARY += ("mish", "negative", "relu", "sigmoid", "sin", "softplus", "softsign", "sqrt_abs", "swish", "tanh")
# Sizes are at most this share of the largest. What small networks take is mostly the beginning of kernels.
_SCALES = (1.0, 1.0, 0.3, 0.12)
_FEW_ROWS, _WIDE = 8, (128, 1024)

LARGEST_TENSOR = 1 << 22
"""Elements of what a block writes out between its ops, at most."""

LARGEST_FLOPS = 3e8
"""Work of one convolution, at most."""


class Drawn:
    """A network in the making."""

    def __init__(self, seed: int, weight_type: type) -> None:
        self.random = np.random.default_rng((seed, 77))
        self.scale = float(pick(np.random.default_rng((seed, 78)), _SCALES))
        self.net = NetworkBuilder(seed, weight_type)
        self.count = 0
        self.has_few_rows = False

    def with_few_rows(self) -> None:
        """Few rows go through wide layers, as in a decoder: reading the weights is most of the work."""
        self.scale, self.has_few_rows = 1.0, True

    def scoped(self, block: Block, x: Node) -> Node:
        """Apply a block under a name of its own."""
        self.count += 1
        with self.net.scope(f"{block.__name__.strip('_')}{self.count}"):
            return block(self, x)

    def named(self, node: ov.Node) -> ov.Node:
        """An op with a name of its own."""
        self.count += 1
        return self.net.named(node, f"{node.get_type_name().lower()}{self.count}")

    def size(self, low: float, high: float, multiple: int = 1) -> int:
        """Log-uniform, mostly a multiple of eight where it is large enough."""
        high = max(low, round(self.scale * high))
        value = int(np.exp(self.random.uniform(np.log(low), np.log(high))))
        step = multiple if multiple > 1 else 8 if value >= 16 and chance(self.random, 0.8) else 1
        return max(step, value // step * step)

    def rows(self, most: int) -> int:
        """How many rows or tokens a network reads."""
        return self.size(1, _FEW_ROWS if self.has_few_rows else most)

    def width(self, low: int, high: int, multiple: int = 1) -> int:
        """Of what a network makes of each row."""
        low, high = _WIDE if self.has_few_rows else (low, high)
        return self.size(low, high, multiple)

    def number(self, value: float) -> ov.Node:
        """A scalar constant."""
        return self.net.constant(f"number{self.serial()}", value, np.float32)

    def ints(self, values: object) -> ov.Node:
        """A constant of whole numbers, where ops want axes, sizes or indices."""
        return self.net.constant(f"ints{self.serial()}", values)

    def dense(self, x: Node, width: int, bias: bool | None = None) -> ov.Node:
        """A fully connected layer, mostly with a bias."""
        bias = chance(self.random, 0.8) if bias is None else bias
        return self.net.dense(x, width, bias=bias, name=f"dense{self.serial()}")

    def conv(self, x: Node, channels: int, kernel: int, **settings: object) -> ov.Node:
        """A convolution with weights of its own."""
        return self.net.conv(x, channels, kernel, name=f"conv{self.serial()}", **settings)

    def channels(self, x: Node, kernel: int, most: int = 512) -> int:
        """Output channels of a convolution, so few that it is not too much work."""
        _, inputs, *sides = dims_of(x)
        wanted = self.size(8, most)
        able = LARGEST_FLOPS / (2 * inputs * math.prod(sides) * kernel ** len(sides))
        return max(4, min(wanted, int(able) // 4 * 4))

    def groups(self, inputs: int, outputs: int) -> int:
        """Groups of a convolution between so many channels: mostly one."""
        able = [k for k in (2, 4, 8, 16, 32) if inputs % k == 0 and outputs % k == 0]
        return pick(self.random, able) if able and chance(self.random, 0.15) else 1

    def activated(self, x: Node, kind: str | None = None) -> ov.Node:
        """A function element by element; any of them unless it is named."""
        return _activation(self, x, kind or pick(self.random, _UNARY))

    def usual(self, x: Node) -> ov.Node:
        """One of the activations that most networks have."""
        kinds = ("relu", "relu", "relu6", "swish", "gelu", "hswish", "sigmoid", "tanh")
        return self.activated(x, pick(self.random, kinds))

    def normed(self, x: Node) -> ov.Node:
        """A normalization over the last axis, as one op or written out."""
        return pick(self.random, (_layer_norm, _layer_norm, _written_layer_norm, _rms_norm))(self, x)

    def serial(self) -> int:
        """A number that no name has yet."""
        self.count += 1
        return self.count


def dims_of(x: Node) -> list[int]:
    output = x if isinstance(x, ov.Output) else x.output(0)
    return list(output.get_shape())


def _activation(d: Drawn, x: Node, kind: str) -> ov.Node:
    n = d.named
    if kind == "swish" and chance(d.random, 0.5):
        return n(ops.multiply(x, n(ops.sigmoid(x))))
    if kind == "hswish" and chance(d.random, 0.5):
        gate = n(ops.clamp(n(ops.add(x, d.number(3.0))), 0.0, 6.0))
        return n(ops.multiply(n(ops.multiply(x, gate)), d.number(1 / 6)))
    if kind == "gelu" and chance(d.random, 0.4):
        half = n(ops.erf(n(ops.multiply(x, d.number(0.7071)))))
        return n(ops.multiply(n(ops.multiply(x, n(ops.add(half, d.number(1.0))))), d.number(0.5)))
    if kind == "sqrt_abs":
        return n(ops.sqrt(n(ops.add(n(ops.abs(x)), d.number(1e-3)))))
    made: dict[str, Callable[[], ov.Node]] = {
        "elu": lambda: ops.elu(x, 1.0),
        "gelu": lambda: ops.gelu(x, pick(d.random, ("erf", "tanh"))),
        "log_softmax": lambda: ops.log_softmax(x, -1),
        "relu6": lambda: ops.clamp(x, 0.0, 6.0),
    }
    return n(made[kind]() if kind in made else getattr(ops, kind)(x))


def _layer_norm(d: Drawn, x: Node) -> ov.Node:
    return d.net.layer_norm(x, name=f"norm{d.serial()}")


def _written_layer_norm(d: Drawn, x: Node) -> ov.Node:
    n, axis = d.named, d.ints([-1])
    centred = n(ops.subtract(x, n(ops.reduce_mean(x, axis, True))))
    variance = n(ops.reduce_mean(n(ops.multiply(centred, centred)), axis, True))
    scale = n(ops.sqrt(n(ops.add(variance, d.number(1e-5)))))
    width = dims_of(x)[-1]
    y = n(
        ops.multiply(
            n(ops.divide(centred, scale)), d.net.normal(f"gain{d.serial()}", (width,), 0.1, mean=1.0)
        )
    )
    return n(ops.add(y, d.net.normal(f"shift{d.serial()}", (width,), 0.1)))


def _rms_norm(d: Drawn, x: Node) -> ov.Node:
    n = d.named
    mean = n(ops.reduce_mean(n(ops.power(x, d.number(2.0))), d.ints([-1]), True))
    y = n(ops.multiply(x, n(ops.divide(d.number(1.0), n(ops.sqrt(n(ops.add(mean, d.number(1e-6)))))))))
    return n(ops.multiply(y, d.net.normal(f"gain{d.serial()}", (dims_of(x)[-1],), 0.1, mean=1.0)))
