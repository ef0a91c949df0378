"""Models of any size, 100 to 1,000,000 ops, in several shapes.

A chain of layers, a transformer (attention written out op by op), an unrolled LSTM whose steps all share
one set of weights, branches that all read one tensor, layers that read what lies far behind them, and a
random graph with many small constants. Nothing was tuned to two more shapes: convolutions on compressed
weights, and reshapes to sizes that are computed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset13 as ops

_WIDTH = 32
_BRANCHES_OF_A_SUM = 64


def _weight(random: np.random.Generator, *shape: int) -> ov.Node:
    return ops.constant(random.standard_normal(shape, dtype=np.float32))


def chain(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Layers of MatMul, Add and Relu in two branches that meet after every layer."""
    x = ops.parameter([8, _WIDTH], np.float32)
    y: ov.Node = x
    for _ in range(max(1, num_ops // 11)):
        branches = [
            ops.relu(
                ops.add(
                    ops.matmul(y, _weight(random, _WIDTH, _WIDTH), False, False), _weight(random, 1, _WIDTH)
                )
            )
            for _ in range(2)
        ]
        y = ops.add(*branches)
    return ov.Model([ops.result(y)], [x], "chain")


def transformer(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Post-norm layers of one attention head and a feed-forward part."""
    x = ops.parameter([8, _WIDTH], np.float32)
    scale, last = ops.constant(np.float32(_WIDTH**-0.5)), ops.constant(np.array([-1], np.int64))

    def dense(node: ov.Node) -> ov.Node:
        product = ops.matmul(node, _weight(random, _WIDTH, _WIDTH), False, False)
        return ops.add(product, _weight(random, 1, _WIDTH))

    y: ov.Node = x
    for _ in range(max(1, num_ops // 37)):
        query, key, value = dense(y), dense(y), dense(y)
        scores = ops.softmax(ops.multiply(ops.matmul(query, key, False, True), scale), -1)
        y = ops.add(y, dense(ops.matmul(scores, value, False, False)))
        y = ops.multiply(ops.mvn(y, last, True, 1e-5, "inside_sqrt"), _weight(random, _WIDTH))
        y = ops.add(y, dense(ops.gelu(dense(y), "erf")))
        y = ops.multiply(ops.mvn(y, last, True, 1e-5, "inside_sqrt"), _weight(random, _WIDTH))
    return ov.Model([ops.result(y)], [x], "transformer")


def unrolled_lstm(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Steps of a decomposed LSTM cell over a constant input."""
    x = ops.parameter([1, _WIDTH], np.float32)
    weights = _weight(random, 2 * _WIDTH, 4 * _WIDTH)
    axis = ops.constant(1)
    hidden, memory = x, x
    for _ in range(max(1, num_ops // 12)):
        gates = ops.matmul(ops.concat([x, hidden], 1), weights, False, False)
        keep, write, new, show = ops.split(gates, axis, 4).outputs()
        kept = ops.multiply(ops.sigmoid(keep), memory)
        memory = ops.add(kept, ops.multiply(ops.sigmoid(write), ops.tanh(new)))
        hidden = ops.multiply(ops.sigmoid(show), ops.tanh(memory))
    return ov.Model([ops.result(hidden)], [x], "unrolled_lstm")


def wide(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Branches that all read the input, of 1 to 8 MatMuls, summed by a tree of Concats.

    Each MatMul is a group. Element-wise ops alone would join the input that they read, and the whole model
    would be one group.
    """
    x = ops.parameter([8, _WIDTH], np.float32)
    axis = ops.constant(np.array([0], np.int64))
    branches: list[ov.Node] = []
    made = 0
    while made < 0.97 * num_ops:
        y: ov.Node = x
        for _ in range(int(random.integers(1, 9))):
            y = ops.tanh(ops.matmul(y, _weight(random, _WIDTH, _WIDTH), False, False))
            made += 3
        branches.append(y)
    while len(branches) > 1:
        rows = [branches[i : i + _BRANCHES_OF_A_SUM] for i in range(0, len(branches), _BRANCHES_OF_A_SUM)]
        branches = [
            ops.reduce_sum(ops.concat([ops.unsqueeze(y, axis) for y in row], 0), axis) for row in rows
        ]
    return ov.Model([ops.result(branches[0])], [x], "wide")


def skips(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Layers that add a result of any earlier one, most of them thousands of layers back."""
    x = ops.parameter([8, _WIDTH], np.float32)
    layers: list[ov.Node] = [x]
    for _ in range(max(1, num_ops // 5)):
        product = ops.matmul(layers[-1], _weight(random, _WIDTH, _WIDTH), False, False)
        behind = layers[int(random.integers(len(layers)))]
        layers.append(ops.add(ops.add(product, _weight(random, 1, _WIDTH)), behind))
    return ov.Model([ops.result(layers[-1])], [x], "skips")


def scattered(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Ops that read one or two of the last hundred results, half of them with a constant of their own."""
    x = ops.parameter([8, _WIDTH], np.float32)
    made: list[ov.Node] = [x]
    unary = (ops.relu, ops.sigmoid, ops.exp, lambda y: ops.softmax(y, -1))
    binary = (ops.add, ops.multiply, ops.maximum, ops.subtract)
    unread = {0}
    while len(made) < 0.6 * num_ops:
        first, second = (max(0, len(made) - 1 - int(random.integers(100))) for _ in range(2))
        kind = int(random.integers(4))
        match int(random.integers(4)):
            case 0:
                node, read = unary[kind](made[first]), {first}
            case 1:
                node, read = binary[kind](made[first], made[second]), {first, second}
            case 2:
                node, read = binary[kind](made[first], _weight(random, 1, _WIDTH)), {first}
            case _:
                node, read = ops.matmul(made[first], _weight(random, _WIDTH, _WIDTH), False, False), {first}
        unread -= read
        unread.add(len(made))
        made.append(node)
    return ov.Model([ops.result(made[i]) for i in sorted(unread)], [x], "scattered")


def compressed_convolutions(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Separable convolutions with a gate, on weights of 8 bits and their decompression."""
    channels = 8
    x = ops.parameter([1, channels, 8, 8], np.float32)
    spatial = ops.constant(np.array([2, 3], np.int64))

    def stored(*shape: int) -> ov.Node:
        codes = ops.constant(random.integers(-128, 128, shape, dtype=np.int8))
        scales = _weight(random, *[shape[0], *[1] * (len(shape) - 1)])
        return ops.multiply(ops.convert(codes, np.float32), scales)

    def pointwise(node: ov.Node) -> ov.Node:
        return ops.convolution(node, stored(channels, channels, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])

    y: ov.Node = x
    for _ in range(max(1, num_ops // 20)):
        depth = ops.group_convolution(y, stored(channels, 1, 1, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])
        point = pointwise(ops.clamp(depth, 0.0, 6.0))
        gate = pointwise(ops.reduce_mean(point, spatial, True))
        y = ops.add(ops.multiply(point, ops.sigmoid(gate)), y)
    return ov.Model([ops.result(y)], [x], "compressed_convolutions")


def computed_reshapes(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Attention heads on a sequence of any length, whose sizes are read off tensors at run time."""
    x = ops.parameter(ov.PartialShape([1, -1, _WIDTH]), np.float32)
    axis, one = ops.constant(np.array(0, np.int64)), ops.constant(np.array([1], np.int64))
    y: ov.Node = x
    for _ in range(max(1, num_ops // 19)):
        length = ops.gather(ops.shape_of(y), one, axis)
        heads = ops.concat([one, length, ops.constant(np.array([4, _WIDTH // 4], np.int64))], 0)
        split = ops.transpose(ops.reshape(y, heads, False), ops.constant(np.array([0, 2, 1, 3], np.int64)))
        mixed = ops.matmul(ops.softmax(ops.matmul(split, split, False, True), -1), split, False, False)
        back = ops.transpose(mixed, ops.constant(np.array([0, 2, 1, 3], np.int64)))
        whole = ops.concat([one, length, ops.constant(np.array([_WIDTH], np.int64))], 0)
        y = ops.add(
            y, ops.matmul(ops.reshape(back, whole, False), _weight(random, _WIDTH, _WIDTH), False, False)
        )
    return ov.Model([ops.result(y)], [x], "computed_reshapes")


BUILDERS: dict[str, Callable[[int, np.random.Generator], ov.Model]] = {
    build.__name__: build
    for build in (
        chain,
        transformer,
        unrolled_lstm,
        wide,
        skips,
        scattered,
        compressed_convolutions,
        computed_reshapes,
    )
}
"""A builder of a model with about so many ops by shape."""

UNSEEN = ("compressed_convolutions", "computed_reshapes")
"""Shapes that nothing was tuned to."""
