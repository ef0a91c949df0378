"""Operation counts, against the textbook formula of each op written out by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import pytest
from graph_models import branch_and_loop
from openvino import opset13 as ops
from openvino import opset14

from ov_autoplace.graph.extract import extract


def constant(*shape: int) -> ov.Node:
    return ops.constant(np.ones(shape, np.float32))


def data(*shape: int) -> ov.Node:
    return ops.parameter(list(shape), np.float32)


PADS = ([1, 1], [0, 0], [0, 0], [1, 1])  # strides, pads, dilations of a 2-D convolution

CASES: dict[str, tuple[Callable[[ov.Node], ov.Node], tuple[int, ...], float]] = {
    # A 3x3 convolution of 8 channels into 16 on 10x10 leaves 8x8: 2 * 16 * 8*8 * 8*3*3.
    "convolution": (
        lambda x: ops.convolution(x, constant(16, 8, 3, 3), *PADS), (1, 8, 10, 10), 2 * 16 * 64 * 72,
    ),
    # Depthwise: each of 8 channels sees only itself.
    "group": (
        lambda x: ops.group_convolution(x, constant(8, 1, 1, 3, 3), *PADS), (1, 8, 10, 10), 2 * 8 * 64 * 9,
    ),
    # Transposed: every input pixel is spread over 16 channels of a 2x2 patch.
    "backprop": (
        lambda x: ops.convolution_backprop_data(x, constant(8, 16, 2, 2), [2, 2]), (1, 8, 10, 10),
        2 * 8 * 100 * 16 * 4,
    ),
    "group_backprop": (
        lambda x: ops.group_convolution_backprop_data(x, constant(4, 2, 3, 2, 2), [2, 2]), (1, 8, 10, 10),
        2 * 8 * 100 * 3 * 4,
    ),
    # As the convolution, and 8 operations for each of the 72 samples behind each of the 8x8 positions.
    "deformable": (
        lambda x: ops.deformable_convolution(x, constant(1, 18, 8, 8), constant(16, 8, 3, 3), *PADS),
        (1, 8, 10, 10), 2 * 16 * 64 * 72 + 8 * 64 * 72,
    ),
    "matmul": (lambda x: ops.matmul(x, constant(8, 5), False, False), (2, 3, 8), 2 * 2 * 3 * 8 * 5),
    "matmul_transposed": (lambda x: ops.matmul(x, constant(5, 3), True, True), (2, 3, 8), 2 * 2 * 8 * 3 * 5),
    "einsum": (lambda x: ops.einsum([x, constant(8, 5)], "bij,jk->bik"), (2, 3, 8), 2 * 2 * 3 * 8 * 5),
    "mvn": (lambda x: ops.mvn(x, ops.constant([2]), True, 1e-5, "inside_sqrt"), (2, 3, 8), 8 * 48),
    "max_pool": (
        lambda x: ops.max_pool(x, [2, 2], [1, 1], [0, 0], [0, 0], [3, 3]).output(0), (1, 8, 9, 9), 8 * 16 * 9,
    ),
    "softmax": (lambda x: ops.softmax(x, -1), (2, 3, 8), 5 * 48),
    "reduce": (lambda x: ops.reduce_mean(x, ops.constant([1])), (2, 3, 8), 48),
    "add": (lambda x: ops.add(x, constant(1)), (2, 3, 8), 48),
    "transpose": (lambda x: ops.transpose(x, ops.constant([1, 0, 2])), (2, 3, 8), 0),
    # X [2,3,8] through 3 steps of 4 gates of 4: per step and sample 2 * 16 * (8 + 4), and 10 per row.
    "lstm": (
        lambda x: ops.lstm_sequence(
            x, constant(2, 1, 4), constant(2, 1, 4), ops.constant(np.full(2, 3, np.int32)),
            constant(1, 16, 8), constant(1, 16, 4), constant(1, 16), 4, "forward",
        ).output(0),
        (2, 3, 8), 2 * 3 * (2 * 16 * 12 + 10 * 16),
    ),
    "gru_cell": (
        lambda x: ops.gru_cell(x, constant(2, 4), constant(12, 8), constant(12, 4), constant(12), 4),
        (2, 8), 2 * (2 * 12 * 12 + 10 * 12),
    ),
    # Q, K, V of 2 heads, 5 positions, 8 features: two products and a softmax over 2*5*5 scores.
    "attention": (
        lambda x: opset14.scaled_dot_product_attention(x, x, x, causal=False), (2, 5, 8),
        2 * 25 * (16 + 7 + 16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_flops_equal_the_formula(name: str) -> None:
    build, shape, expected = CASES[name]
    x = data(*shape)
    graph = extract(ov.Model([ops.result(build(x))], [x]))
    assert graph.flops.sum() == pytest.approx(expected)


def test_a_loop_costs_its_body_times_its_trips_and_an_if_its_dearer_branch() -> None:
    graph = extract(branch_and_loop(trips=5))
    matmul = 2 * 2 * 8 * 8
    flops = dict(zip(graph.op_types, graph.flops.tolist(), strict=True))
    assert flops["If"] == matmul
    assert flops["Loop"] == 5 * matmul
    weights = dict(zip(graph.op_types, graph.weight_bytes.tolist(), strict=True))
    # The body's 8x8 weight, and the trip count and condition that the Loop itself reads.
    assert weights["Loop"] == 8 * 8 * 4 + 4 + 1 + 1


def test_an_op_type_without_a_rule_counts_its_output() -> None:
    x = data(2, 3)
    assert extract(ov.Model([ops.result(ops.negative(x))], [x])).flops.sum() == 6
