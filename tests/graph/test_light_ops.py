"""Cheap ops follow a neighbour in every pattern that plugins fuse, and heavy ops never join."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import pytest
from graph_models import dense, named, weights
from openvino import opset13 as ops

from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract


def scalar(value: float) -> ov.Node:
    return ops.constant(np.float32(value))


def bias_and_activation(x: ov.Node) -> ov.Node:
    return ops.relu(ops.add(x, ops.constant(weights(1, 8))))


def swish(x: ov.Node) -> ov.Node:
    return ops.multiply(x, ops.sigmoid(x))


def hard_swish(x: ov.Node) -> ov.Node:
    return ops.multiply(x, ops.multiply(ops.clamp(ops.add(x, scalar(3)), 0.0, 6.0), scalar(1 / 6)))


def gelu(x: ov.Node) -> ov.Node:
    return ops.multiply(
        ops.multiply(x, scalar(0.5)), ops.add(ops.erf(ops.divide(x, scalar(2**0.5))), scalar(1))
    )


def layer_norm(x: ov.Node) -> ov.Node:
    centred = ops.subtract(x, ops.reduce_mean(x, ops.constant([-1]), True))
    variance = ops.reduce_mean(ops.multiply(centred, centred), ops.constant([-1]), True)
    normal = ops.divide(centred, ops.sqrt(ops.add(variance, scalar(1e-5))))
    return ops.add(ops.multiply(normal, ops.constant(weights(8))), ops.constant(weights(8, seed=1)))


def rms_norm(x: ov.Node) -> ov.Node:
    power = ops.reduce_mean(ops.power(x, scalar(2)), ops.constant([-1]), True)
    return ops.multiply(x, ops.divide(scalar(1), ops.sqrt(ops.add(power, scalar(1e-5)))))


def softmax(x: ov.Node) -> ov.Node:
    exponent = ops.exp(ops.subtract(x, ops.reduce_max(x, ops.constant([-1]), True)))
    return ops.divide(exponent, ops.reduce_sum(exponent, ops.constant([-1]), True))


def fake_quantize(x: ov.Node) -> ov.Node:
    return ops.fake_quantize(x, scalar(0), scalar(1), scalar(0), scalar(1), 256)


def rotary(x: ov.Node) -> ov.Node:
    left, right = ops.split(x, ops.constant(1), 2).outputs()
    turned = ops.concat([ops.negative(right), left], 1)
    return ops.add(
        ops.multiply(x, ops.constant(weights(4, 8))), ops.multiply(turned, ops.constant(weights(4, 8)))
    )


def heads(x: ov.Node) -> ov.Node:
    split = ops.reshape(x, ops.constant([4, 2, 4]), False)
    return ops.reshape(ops.transpose(split, ops.constant([0, 2, 1])), ops.constant([4, 8]), False)


PATTERNS: list[Callable[[ov.Node], ov.Node]] = [
    bias_and_activation, swish, hard_swish, gelu, layer_norm, rms_norm, softmax, fake_quantize, rotary, heads,
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda f: f.__name__)
def test_a_fused_pattern_joins_the_heavy_op_before_it(pattern: Callable[[ov.Node], ov.Node]) -> None:
    x = ops.parameter([4, 8], np.float32, name="x")
    model = ov.Model([ops.result(dense(pattern(dense(x, "before")), "after"))], [x])
    assert coarsen(extract(model)).graph.names == ("before", "after")


def test_a_residual_addition_joins_the_branch_that_ends_last() -> None:
    x = ops.parameter([4, 8], np.float32, name="x")
    trunk = dense(x, "trunk")
    total = named(ops.add(dense(dense(trunk, "inner"), "outer"), trunk), "total")
    coarse = coarsen(extract(ov.Model([ops.result(dense(total, "next"))], [x])))
    assert coarse.graph.names == ("trunk", "inner", "outer", "next")
    assert "total" in coarse.members[2]


def test_heavy_ops_in_a_row_stay_apart() -> None:
    x = ops.parameter([4, 8], np.float32, name="x")
    y: ov.Node = x
    for i in range(5):
        y = ops.relu(dense(y, f"d{i}"))
    assert coarsen(extract(ov.Model([ops.result(y)], [x]))).graph.names == ("d0", "d1", "d2", "d3", "d4")


def test_a_light_beginning_joins_its_only_reader() -> None:
    x = ops.parameter([4, 8], np.uint8, name="x")
    scaled = ops.multiply(ops.subtract(ops.convert(x, "f32"), scalar(128)), scalar(0.01))
    assert coarsen(extract(ov.Model([ops.result(dense(scaled, "only"))], [x]))).graph.names == ("only",)


def test_a_light_op_that_inflates_its_data_joins_what_comes_behind_it() -> None:
    x = ops.parameter([4, 8], np.float32, name="x")
    tall = named(ops.tile(dense(x, "before"), ops.constant([16, 1])), "tall")
    coarse = coarsen(extract(ov.Model([ops.result(dense(tall, "after"))], [x])))
    assert coarse.graph.names == ("before", "after")
    assert "tall" in coarse.members[1]
    assert coarse.graph.tensor_bytes.tolist() == [4 * 8 * 4]


def test_a_concatenation_of_branches_belongs_to_no_branch() -> None:
    x = ops.parameter([4, 8], np.float32, name="x")
    stem = dense(x, "stem")
    joined = named(ops.concat([dense(stem, "short"), dense(dense(stem, "long0"), "long1")], 1), "joined")
    outs = [dense(joined, f"reader{i}", 16) for i in range(2)]
    coarse = coarsen(extract(ov.Model([ops.result(out) for out in outs], [x])))
    assert coarse.members[coarse.graph.index["joined"]] == ("joined",)
    assert set(coarse.graph.names) == {"stem", "short", "long0", "long1", "joined", "reader0", "reader1"}


def test_the_lookup_of_an_embedding_is_not_light() -> None:
    ids = ops.parameter([1, 5], np.int64, name="ids")
    table = ops.constant(weights(10_000, 8))
    lookup = named(ops.gather(table, ops.relu(ids), ops.constant(0)), "lookup")
    coarse = coarsen(extract(ov.Model([ops.result(dense(ops.relu(lookup), "next"))], [ids])))
    assert coarse.graph.names == ("lookup", "next")


def test_without_the_rule_every_running_op_is_a_group() -> None:
    x = ops.parameter([4, 8], np.float32, name="x")
    model = ov.Model([ops.result(swish(dense(x, "before")))], [x])
    assert coarsen(extract(model), light_ops=False).graph.op_types == ("MatMul", "Sigmoid", "Multiply")
