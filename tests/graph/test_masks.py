"""Masks of attention that are inputs: read as the first operand, and added rightly whatever a CPU does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known
from ov_autoplace.graph.masks import order_masks

TOKENS, WIDTH = 16, 64


def attention(
    shape: list[int],
    masked: Callable[[ov.Node, ov.Node], ov.Node] = ops.add,
    between: Callable[[ov.Node], ov.Node] = lambda mask: mask,
) -> ov.Model:
    """``softmax(q k' + mask) v`` of one request with two heads."""
    q, k, v = (ops.parameter([1, 2, TOKENS, WIDTH], np.float32, name=name) for name in "qkv")
    mask = ops.parameter(shape, np.float32, name="mask")
    scores = masked(ops.matmul(q, k, False, True), between(mask))
    scores.set_friendly_name("masked")
    return ov.Model([ops.matmul(ops.softmax(scores, -1), v, False, False)], [q, k, v, mask])


def mask_first(scores: ov.Node, mask: ov.Node) -> ov.Node:
    return ops.add(mask, scores)


def through_zero(mask: ov.Node) -> ov.Node:
    return ops.add(mask, np.float32(0))


def reshaped(mask: ov.Node) -> ov.Node:
    return ops.reshape(mask, np.array([1, 1, 1, TOKENS]), False)


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (attention([1, 1, 1, TOKENS]), 1),
        (attention([TOKENS]), 1),
        (attention([-1, 1, 1, TOKENS]), 1),
        (attention([1, 1, 1, TOKENS], ops.multiply), 1),
        (attention([1, TOKENS], between=reshaped), 1),
        (attention([1, 1, 1, TOKENS], ops.subtract), 0),
        (attention([1, 1, 1, TOKENS], mask_first), 0),
        (attention([1, 1, 1, TOKENS], between=through_zero), 0),
        (attention([1, 1, TOKENS, TOKENS]), 0),
        (attention([1, 2, 1, TOKENS]), 0),
        (attention([1, 1, TOKENS, 1]), 0),
        (attention([1]), 0),
    ],
)
def test_rows_of_inputs_are_read_first(model: ov.Model, count: int) -> None:
    assert order_masks(model) == count
    assert order_masks(model) == 0
    if count:
        (masked,) = (op for op in model.get_ops() if op.get_friendly_name() == "masked")
        assert masked.input_value(1).get_node().get_type_name() == "MatMul"


@pytest.mark.parametrize("shape", [[1, 1, 1, TOKENS], [TOKENS], [1, 1, TOKENS, TOKENS]])
@pytest.mark.parametrize("config", [{}, {"AUTOPLACE_MODE": "ZERO_SHOT"}, {"INFERENCE_NUM_THREADS": 1}])
def test_what_is_compiled_adds_masks_rightly(shape: list[int], config: dict[str, object]) -> None:
    random = np.random.default_rng(0)
    model = attention(shape)
    values = [random.standard_normal(list(one.shape)).astype(np.float32) for one in model.inputs]
    values[-1] = np.where(values[-1] > 1, -1e9, 0).astype(np.float32)
    core = ov.Core()
    right = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(values)[0]
    try:
        core.compile_model(model, "CPU")
    except RuntimeError:
        pytest.skip("this release refuses such a model in bf16")
    ours = core.compile_model(model, "AUTOPLACE:CPU", config)(values)[0]
    assert np.abs(ours - right).max() < 0.05 * np.abs(right).max()
