"""Models of any size, 100 to 50,000 ops, in three shapes.

A chain of layers, a transformer (attention written out op by op) and an unrolled LSTM whose steps all share
one set of weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset13 as ops

__all__ = ["BUILDERS"]

_WIDTH = 32


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


BUILDERS: dict[str, Callable[[int, np.random.Generator], ov.Model]] = {
    build.__name__: build for build in (chain, transformer, unrolled_lstm)
}
"""A builder of a model with about so many ops by shape."""
