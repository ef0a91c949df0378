"""Tiny models, one per structure that a cut could break; each is built anew for every test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset13 as ops


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) * 0.5


def named(node: ov.Node, name: str) -> ov.Node:
    node.set_friendly_name(name)
    return node


def dense(x: ov.Node, name: str, width: int = 8, seed: int = 0) -> ov.Node:
    """A MatMul, the heavy op that keeps tiny models from coarsening into one group."""
    return named(ops.matmul(x, ops.constant(weights(width, width, seed=seed)), False, False), name)


def static_shape_chain() -> ov.Model:
    """Reshape to a shape computed from another tensor, everything static."""
    x = ops.parameter([2, 4, 8], np.float32, name="x")
    first = dense(x, "first")
    shape = named(ops.shape_of(first), "shape")
    rows = named(ops.gather(shape, ops.constant([0]), ops.constant(0)), "rows")
    pattern = named(ops.concat([rows, ops.constant(np.array([-1], np.int64))], 0), "pattern")
    flat = named(ops.reshape(named(ops.relu(first), "relu"), pattern, False), "flat")
    second = dense(flat, "second", 32)
    third = dense(second, "third", 32, seed=1)
    return ov.Model([ops.result(third, name="out")], [x], "static_shape_chain")


def shared_dynamic_shape() -> ov.Model:
    """One ShapeOf of a dynamic input whose elements are used by the Reshapes of two layers."""
    x = ops.parameter([-1, -1, 8], np.float32, name="x")
    shape = named(ops.shape_of(x), "shape")
    sizes = [named(ops.gather(shape, ops.constant([i]), ops.constant(0)), f"size{i}") for i in range(2)]
    y: ov.Node = x
    for layer in range(2):
        y = dense(y, f"in{layer}", seed=layer)
        split = named(ops.concat([*sizes, ops.constant(np.array([2, 4], np.int64))], 0), f"split{layer}")
        y = named(ops.reshape(y, split, False), f"heads{layer}")
        y = dense(y, f"mix{layer}", 4, seed=layer)
        join = named(ops.concat([*sizes, ops.constant(np.array([8], np.int64))], 0), f"join{layer}")
        y = named(ops.reshape(y, join, False), f"rows{layer}")
    return ov.Model([ops.result(dense(y, "last"), name="out")], [x], "shared_dynamic_shape")


def bounded_dimension() -> ov.Model:
    """A batch of 1 to 4 that stays bounded until a Reshape forgets it."""
    x = ops.parameter(ov.PartialShape([ov.Dimension(1, 4), 8]), np.float32, name="x")
    y = dense(dense(x, "bounded0"), "bounded1", seed=1)
    return ov.Model([ops.result(dense(y, "bounded2"), name="out")], [x], "bounded_dimension")


def state() -> ov.Model:
    """A variable whose new value passes through two MatMuls, beside ops that do not touch it."""
    x = ops.parameter([1, 8], np.float32, name="x")
    old = named(ops.read_value(ops.constant(np.zeros((1, 8), np.float32)), "memory"), "read")
    inside = dense(named(ops.add(dense(x, "before"), old), "mixed"), "inside")
    new = named(ops.tanh(inside), "new")
    assign = named(ops.assign(new, "memory"), "write")
    out = dense(dense(new, "after"), "last", seed=2)
    return ov.Model([ops.result(out, name="out")], [assign], [x], "state")


def split_and_topk() -> ov.Model:
    x = ops.parameter([2, 8], np.float32, name="x")
    halves = named(ops.split(dense(x, "first"), ops.constant(1), 2), "halves")
    left = dense(halves.output(0), "left", 4)
    top = named(ops.topk(dense(halves.output(1), "right", 4), ops.constant(2), 1, "max", "value"), "top")
    back = named(ops.tile(top.output(0), ops.constant([1, 2])), "back")
    indices = named(ops.convert(top.output(1), "f32"), "indices")
    results = [
        ops.result(dense(ops.add(left, back), "sum", 4), name="out"),
        ops.result(indices, name="which"),
    ]
    return ov.Model(results, [x], "split_and_topk")


def lstm() -> ov.Model:
    x = ops.parameter([2, 3, 8], np.float32, name="x")
    hidden = ops.constant(np.zeros((2, 1, 4), np.float32))
    gates = [ops.constant(weights(1, 16, n, seed=n)) for n in (8, 4)]
    sequence = named(
        ops.lstm_sequence(
            dense(x, "first"), hidden, hidden, ops.constant(np.full(2, 3, np.int32)), *gates,
            ops.constant(np.zeros((1, 16), np.float32)), 4, "forward",
        ),
        "lstm",
    )  # fmt: skip
    outs = [dense(sequence.output(i), f"out{i}", 4) for i in range(3)]
    return ov.Model([ops.result(out, name=f"r{i}") for i, out in enumerate(outs)], [x], "lstm")


def branch_and_loop(trips: int = 5) -> ov.Model:
    """An If whose branches are a MatMul and a Relu, then a Loop around a MatMul."""
    x = ops.parameter([2, 8], np.float32, name="x")
    inputs = [ops.parameter([2, 8], np.float32) for _ in range(3)]
    then = ov.Model([ops.result(dense(inputs[0], "then"))], [inputs[0]])
    other = ov.Model([ops.result(ops.relu(inputs[1]))], [inputs[1]])
    choice = ops.greater(ops.reduce_sum(x, ops.constant([0, 1])), ops.constant(np.float32(0)))
    branch = named(ops.if_op(choice.output(0)), "if")
    branch.set_then_body(then)
    branch.set_else_body(other)
    branch.set_input(dense(x, "first").output(0), inputs[0], inputs[1])
    chosen = branch.set_output(then.results[0], other.results[0])

    step = dense(inputs[2], "step", seed=3)
    go_on = ops.result(ops.constant(np.array(True)))
    body = ov.Model([go_on, ops.result(step)], [inputs[2]])
    loop = named(ops.loop(ops.constant(np.int32(trips)), ops.constant(np.array(True))), "loop")
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(inputs[2], chosen, body.results[1].output(0))
    looped = loop.get_iter_value(body.results[1].output(0), -1)
    model = ov.Model([ops.result(dense(looped, "last"), name="out")], [x], "branch_and_loop")
    model.validate_nodes_and_infer_types()
    return model


def shared_constant() -> ov.Model:
    """One weight that three MatMuls read."""
    x = ops.parameter([2, 8], np.float32, name="x")
    weight = named(ops.constant(weights(8, 8)), "weight")
    y: ov.Node = x
    for i in range(3):
        y = named(ops.relu(named(ops.matmul(y, weight, False, False), f"use{i}")), f"relu{i}")
    return ov.Model([ops.result(y, name="out")], [x], "shared_constant")


def decompression(shared: bool = False) -> ov.Model:
    """Weights stored as f16 and u8, decompressed in the graph; ``shared``: one chain with two readers."""
    x = ops.parameter([2, 8], np.float32, name="x")
    half = named(ops.convert(named(ops.constant(weights(8, 8).astype(np.float16)), "f16"), "f32"), "half")
    stored = named(ops.constant(np.random.default_rng(1).integers(0, 255, (8, 8), np.uint8)), "u8")
    centred = named(ops.subtract(ops.convert(stored, "f32"), ops.constant(np.float32(128))), "centred")
    scaled = named(ops.multiply(centred, ops.constant(np.float32(0.01))), "scaled")
    y = named(ops.matmul(x, half, False, False), "use_half")
    # Never one weight both as it is and transposed: OpenVINO answers wrongly on plain CPU then.
    y = named(ops.matmul(y, half if shared else scaled, False, False), "use_second")
    y = named(ops.matmul(y, scaled, False, False), "use_scaled") if shared else y
    return ov.Model([ops.result(dense(y, "last"), name="out")], [x], "decompression")


def tied_decompression() -> ov.Model:
    return decompression(shared=True)


STRUCTURES: dict[str, Callable[[], ov.Model]] = {
    build.__name__: build
    for build in (
        static_shape_chain, shared_dynamic_shape, bounded_dimension, state, split_and_topk, lstm,
        branch_and_loop, shared_constant, decompression, tied_decompression,
    )
}  # fmt: skip
