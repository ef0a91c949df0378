"""Square weights that are read both ways: whoever reads one transposed gets a copy, and nobody else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.graph.tied_weights import untie_weights

SIZE = 32
WEIGHT = np.random.default_rng(0).integers(-127, 127, (SIZE, SIZE)).astype(np.float32) / 64  # exact in f16
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def made(kind: str) -> ov.Model:
    """``relu(x W) W'`` in a number of ways."""
    x = ops.parameter([4, SIZE], np.float32, name="x")
    given = WEIGHT.astype(np.float16) if "Convert" in kind else WEIGHT
    if "scales" in kind:
        given = (WEIGHT * 64).astype(np.int8)
    first = second = ops.constant(given, name="W")
    if "equal Constants" in kind:
        second = ops.constant(given, name="V")
    if "Convert" in kind:
        first = ops.convert(first, "f32")
        second = ops.convert(second, "f32") if "two Converts" in kind else first
    if "scales" in kind:
        first = second = ops.multiply(ops.convert(first, "f32"), ops.constant(np.float32(1 / 64)))
    if "Transpose" in kind:
        second = ops.transpose(second, ops.constant(np.int64([1, 0])))
    hidden = ops.relu(ops.matmul(x, first, False, False))
    last = ops.matmul(hidden, second, False, "Transpose" not in kind, name="last")
    last.output(0).set_names({"answer"})
    return ov.Model([ops.result(last)], [x])


@pytest.mark.parametrize(
    "kind",
    [
        "Constant",
        "Convert",
        "two Converts",
        "Transpose",
        "Convert, Transpose",
        "equal Constants",
        "scales",
        "scales, Transpose",
    ],
)
def test_a_weight_that_is_read_both_ways_is_multiplied_right(kind: str, tmp_path: Path) -> None:
    model = made(kind)
    ov.save_model(model, tmp_path / "given.xml", compress_to_fp16=False)
    x = np.random.default_rng(1).uniform(-1, 1, (4, SIZE)).astype(np.float32)
    right = np.maximum(x @ WEIGHT, 0) @ WEIGHT.T

    def error_of(path: Path) -> float:
        found = ov.Core().compile_model(path, "CPU", EXACT)(x)[0]
        return float(np.abs(found - right).max() / np.abs(right).max())

    assert error_of(tmp_path / "given.xml") > 0.5  # else OpenVINO was mended

    assert untie_weights(model) == 1
    assert "last/weight" in {op.get_friendly_name() for op in model.get_ops()}
    ov.save_model(model, tmp_path / "untied.xml", compress_to_fp16=False)
    # With scales, the CPU multiplies in eight bits.
    assert error_of(tmp_path / "untied.xml") < (0.05 if "scales" in kind else 1e-5)
    assert model.output("answer").get_node().input_value(0).get_node().get_friendly_name() == "last"


def test_what_is_said_of_an_op_is_said_of_what_takes_its_place() -> None:
    model = made("Constant")
    for op in model.get_ops():
        op.get_rt_info()["note"] = op.get_friendly_name()
    untie_weights(model)
    said = {
        op.get_friendly_name(): op.get_rt_info()["note"].value
        for op in model.get_ops()
        if "note" in op.get_rt_info()
    }
    assert said["last"] == "last"
    assert "last/weight" not in said


def test_weights_that_are_read_one_way_stay() -> None:
    x = ops.parameter([4, SIZE], np.float32)
    shared, other = ops.constant(WEIGHT), ops.constant(WEIGHT + 1)
    node: ov.Node = ops.relu(ops.matmul(ops.matmul(x, shared, False, True), shared, False, True))
    node = ops.matmul(ops.matmul(node, other, False, False), ops.constant(WEIGHT[:, :8]), False, False)
    node = ops.matmul(node, ops.constant(WEIGHT[:, :8]), False, True)
    model = ov.Model([ops.result(node)], [x])
    assert untie_weights(model) == 0


@pytest.mark.parametrize("shape", [[SIZE], [SIZE, 1], [1, SIZE], []])
def test_scales_are_transposed_with_their_weight(shape: list[int]) -> None:
    x = ops.parameter([4, SIZE], np.float32)
    scales = np.broadcast_to((np.arange(SIZE, dtype=np.float32) % 3 + 1), [SIZE])
    scales = scales.reshape(shape) if shape else np.float32(3)
    whole = ops.constant((WEIGHT * 64).astype(np.int8))
    weight = ops.multiply(ops.subtract(ops.convert(whole, "f32"), ops.constant(np.float32(5))), scales)
    node = ops.matmul(ops.matmul(x, weight, False, False), weight, False, True)
    model = ov.Model([ops.result(node)], [x])
    data = np.random.default_rng(1).uniform(-1, 1, (4, SIZE)).astype(np.float32)

    def evaluated() -> np.ndarray:
        found = ov.Tensor(np.zeros((4, SIZE), np.float32))
        assert model.evaluate([found], [ov.Tensor(data)])
        return found.data.copy()

    before = evaluated()
    assert untie_weights(model)
    np.testing.assert_allclose(evaluated(), before, rtol=1e-5)
