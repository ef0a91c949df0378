"""What the page tells of ops: read from models whose ops are known, and checked against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from report_pages import hostile_model

from command_line import two_layers
from ov_autoplace.report.ops import op_columns
from report_tables import HOSTILE


def attributes_of(columns: dict[str, Any], name: str) -> dict[str, str]:
    return dict(columns["attributes"][columns["attribute"][columns["names"].index(name)]])


def constant_of(columns: dict[str, Any], name: str) -> dict[str, Any]:
    return columns["constants"][str(columns["names"].index(name))]


def outputs_of(columns: dict[str, Any], name: str) -> list[tuple[str, str]]:
    return [columns["tensors"][i] for i in columns["outputs"][columns["names"].index(name)]]


def model_of(*constants: ov.Node) -> ov.Model:
    return ov.Model([ops.result(constant) for constant in constants], [], "constants")


def test_an_op_has_its_type_attributes_inputs_and_outputs() -> None:
    columns = op_columns(two_layers([1, 3, 16, 16]))

    second = columns["names"].index("second")
    assert columns["kinds"][columns["kind"][second]] == ("opset1", "Convolution")
    assert attributes_of(columns, "second")["pads_begin"] == "1, 1"
    relu, weights = columns["names"].index("relu"), columns["names"].index("weights4")
    assert columns["inputs"][second] == [relu, 0, weights, 0]
    assert outputs_of(columns, "second") == [("f32", "[1,4,16,16]")]
    assert outputs_of(columns, "weights4") == [("f32", "[4,4,3,3]")]
    # The input's tensor has the name of its op.
    assert columns["tensor_names"] == {str(columns["names"].index("second")): ["answer"]}


def test_dynamic_shapes_are_told_as_openvino_does() -> None:
    columns = op_columns(two_layers(ov.PartialShape([-1, 3, ov.Dimension(8, 64), 16])))

    assert outputs_of(columns, "first") == [("f32", "[?,4,8..64,16]")]


def test_weights_have_their_size_and_the_statistics_of_numpy() -> None:
    values = np.random.default_rng(2).normal(size=(40, 50)).astype(np.float32)
    values[0, :10] = 0
    columns = op_columns(
        model_of(ops.constant(values, name="many"), ops.constant(np.array([3, -1]), name="few"))
    )

    many = constant_of(columns, "many")
    assert many["bytes"] == 8000
    assert float(many["min"]) == pytest.approx(values.min(), rel=1e-4)
    assert float(many["max"]) == pytest.approx(values.max(), rel=1e-4)
    assert float(many["mean"]) == pytest.approx(values.mean(), rel=1e-3)
    assert float(many["std"]) == pytest.approx(values.std(), rel=1e-3)
    assert many["zeros"] == "0.5 %"
    assert "sample" not in many
    assert constant_of(columns, "few") == {"bytes": 16, "values": "3, -1"}


def test_numbers_that_numpy_does_not_know_are_read_as_what_they_are() -> None:
    brain = ov.op.Constant(ov.Type.bf16, ov.Shape([4]), [1.0, -2.0, 0.5, 3.0])
    small = ov.op.Constant(ov.Type.i4, ov.Shape([2, 4]), [1, 2, 3, 4, 5, 6, 7, 1])
    brain.set_friendly_name("brain")
    small.set_friendly_name("small")

    columns = op_columns(model_of(brain, small))

    assert constant_of(columns, "brain") == {"bytes": 8, "values": "1, -2, 0.5, 3"}
    assert constant_of(columns, "small") == {"bytes": 4}  # two in a byte


def test_what_is_not_finite_is_counted_and_left_out_of_the_statistics() -> None:
    values = np.ones(100, np.float16)
    values[:3] = np.nan, np.inf, 7

    found = constant_of(op_columns(model_of(ops.constant(values, name="odd"))), "odd")

    assert (found["not_finite"], found["min"], found["max"]) == (2, "1", "7")


def test_of_very_many_numbers_a_sample_is_read_and_said() -> None:
    values = np.zeros(5_000_000, np.int8)
    values[-1] = 9

    found = constant_of(op_columns(model_of(ops.constant(values, name="large"))), "large")

    assert found["bytes"] == 5_000_000
    assert found["sample"] < 5_000_000
    assert found["max"] == "9"  # both ends are part of it


def test_bodies_are_counted_and_repeated_texts_are_there_once() -> None:
    x = ops.parameter([2, 3], name="x")
    inside = [ops.parameter([2, 3]), ops.parameter([2, 3])]
    then, other = (ov.Model([ops.result(ops.relu(inner))], [inner]) for inner in inside)
    choice = ops.if_op(ops.constant(True))
    choice.set_friendly_name("choice")
    choice.set_then_body(then)
    choice.set_else_body(other)
    choice.set_input(x.output(0), *inside)
    choice.set_output(then.results[0], other.results[0])
    chain: ov.Node = choice
    for i in range(50):
        chain = ops.relu(chain, name=f"relu{i}")

    columns = op_columns(ov.Model([ops.result(chain)], [x]))

    assert columns["bodies"] == {str(columns["names"].index("choice")): [3, 3]}
    assert len(columns["attributes"]) < 6
    assert len(columns["tensors"]) < 5


def test_names_in_attributes_and_tensors_stay_as_they_are() -> None:
    columns = op_columns(hostile_model())

    assert set(HOSTILE[:4]) <= set(columns["names"])
    assert attributes_of(columns, HOSTILE[3])["variable_id"] == HOSTILE[4]
    assert [HOSTILE[5]] in columns["tensor_names"].values()


def test_ops_of_one_name_are_told_apart_as_a_decision_does() -> None:
    x = ops.parameter([1], name="same")

    assert op_columns(ov.Model([ops.result(x, name="same")], [x]))["names"] == ["same", "same_1"]
