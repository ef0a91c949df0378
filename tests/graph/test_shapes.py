"""Dynamic inputs get the caller's shapes, or documented guesses with a warning."""

from __future__ import annotations

import logging

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.errors import ModelError, OptionError
from ov_autoplace.graph.shapes import with_static_shapes


def model_of(*shapes: str) -> ov.Model:
    parameters = [ops.parameter(ov.PartialShape(s), np.float32, name=f"p{i}") for i, s in enumerate(shapes)]
    for i, parameter in enumerate(parameters):
        parameter.output(0).get_tensor().set_names({f"tensor{i}"})
    return ov.Model([ops.result(ops.relu(p)) for p in parameters], parameters)


def input_shapes(model: ov.Model) -> dict[str, tuple[int, ...]]:
    return {p.get_friendly_name(): tuple(p.get_output_shape(0)) for p in model.get_parameters()}


@pytest.mark.parametrize(
    ("partial", "expected"),
    [
        ("[?,128]", (1, 128)),
        ("[?]", (64,)),
        ("[?,?,768]", (1, 64, 768)),
        ("[?,3,?,?]", (1, 3, 224, 224)),
        ("[?,?,?,?]", (1, 3, 224, 224)),
        ("[?,?,?,3]", (1, 224, 224, 3)),
        ("[?,12,?,64]", (1, 12, 64, 64)),
        ("[2..8,?]", (2, 64)),
        ("[?,..16]", (1, 16)),
        ("[?,100..]", (1, 100)),
        ("[1,3,..160,..160]", (1, 3, 160, 160)),
    ],
)
def test_a_dynamic_dimension_takes_the_documented_default(partial: str, expected: tuple[int, ...]) -> None:
    clone = with_static_shapes(model_of(partial))
    assert tuple(clone.get_parameters()[0].get_output_shape(0)) == expected
    assert tuple(clone.get_results()[0].get_output_shape(0)) == expected


def test_a_warning_names_each_guessed_input(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        with_static_shapes(model_of("[?,8]", "[2,8]"))
    assert [record.args[0] for record in caplog.records] == ["p0"]


@pytest.mark.parametrize("name", ["p0", "tensor0"])
def test_a_given_shape_is_used_and_not_guessed(name: str, caplog: pytest.LogCaptureFixture) -> None:
    clone = with_static_shapes(model_of("[?,8]"), {name: [5, 8]})
    assert not caplog.records
    assert list(clone.get_results()[0].get_output_shape(0)) == [5, 8]


def test_a_static_input_has_no_other_shape() -> None:
    with pytest.raises(OptionError, match=r"'p0', \[3, 8\], is not the one that it has, \[2, 8\]"):
        with_static_shapes(model_of("[2,8]"), {"p0": [3, 8]})
    clone = with_static_shapes(model_of("[2,8]"), {"p0": [2, 8]})
    assert list(clone.get_results()[0].get_output_shape(0)) == [2, 8]


def test_the_model_itself_stays_dynamic() -> None:
    model = model_of("[?,8]")
    with_static_shapes(model, {"p0": [5, 8]})
    assert str(model.get_parameters()[0].get_output_partial_shape(0)) == "[?,8]"


@pytest.mark.parametrize(
    ("shapes", "complaint"),
    [
        ({"nothing": [1, 8]}, "'nothing'.*no input.*'p0', 'p1'"),
        ({"p0": [1, 8, 1]}, "3 dimensions"),
        ({"p0": [1, 9]}, r"outside of what it allows, \[\?,8\]"),
        ({"p0": [-1, 8]}, "negative"),
        ({"p0": [1, 8], "tensor0": [2, 8]}, "two different shapes"),
    ],
)
def test_a_shape_that_does_not_fit_is_one_sentence(shapes: dict[str, list[int]], complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        with_static_shapes(model_of("[?,8]", "[?,8]"), shapes)


def test_an_input_of_unknown_rank_must_be_given_a_shape() -> None:
    model = model_of("...")
    with pytest.raises(ModelError, match=r"'p0'.*give it a shape"):
        with_static_shapes(model)
    clone = with_static_shapes(model, {"p0": [2, 3]})
    assert list(clone.get_results()[0].get_output_shape(0)) == [2, 3]


def test_shapes_that_do_not_fit_together_are_one_sentence() -> None:
    a = ops.parameter(ov.PartialShape("[?,8]"), np.float32, name="a")
    model = ov.Model([ops.result(ops.reshape(a, ops.constant([2, 8]), False))], [a])
    with pytest.raises(ModelError, match=r"assumed for dynamic inputs \('a': \[1, 8\]\)"):
        with_static_shapes(model)
    with pytest.raises(OptionError, match=r"given shapes \('a': \[3, 8\]\)"):
        with_static_shapes(model, {"a": [3, 8]})
    assert input_shapes(with_static_shapes(model, {"a": [2, 8]})) == {"a": (2, 8)}


def gathering() -> ov.Model:
    """``beams`` says which rows of ``tokens`` go on; both have as many as there are of them."""
    tokens, beams = (
        ops.parameter([-1, -1], np.int64, name="tokens"),
        ops.parameter([-1], np.int64, name="beams"),
    )
    gathered = ops.gather(tokens, beams, ops.constant(0))
    return ov.Model([ops.concat([gathered, tokens], 1)], [tokens, beams], "gathering")


def test_a_vector_whose_length_does_not_fit_has_the_batch_of_the_others() -> None:
    assert input_shapes(with_static_shapes(gathering())) == {"tokens": (1, 64), "beams": (1,)}
    shapes = input_shapes(with_static_shapes(gathering(), {"tokens": [3, 8]}))
    assert shapes == {"tokens": (3, 8), "beams": (3,)}


def test_a_vector_that_fits_neither_way_is_refused_with_the_first_guess() -> None:
    row = ops.parameter([-1], name="row")
    model = ov.Model([ops.add(row, ops.constant(np.ones(5, np.float32)), "NONE")], [row], "row")
    with pytest.raises(ModelError, match=r"'row': \[64\]\) do not fit the model; give these inputs a shape"):
        with_static_shapes(model)
