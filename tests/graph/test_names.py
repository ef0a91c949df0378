"""Friendly names become unique, always the same way, and collide with nothing."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.names import make_names_unique, unique_names


def model_with_names(*names: str) -> ov.Model:
    node: ov.Node = ops.parameter([1, 4], np.float32)
    parameter = node
    parameter.set_friendly_name("input")
    for name in names:
        node = ops.relu(node)
        node.set_friendly_name(name)
    result = ops.result(node)
    result.set_friendly_name("result")
    return ov.Model([result], [parameter])


def test_the_first_bearer_keeps_its_name_and_new_names_avoid_existing_ones() -> None:
    assert unique_names(["a", "b", "a", "a_1", "a"]) == ["a", "b", "a_2", "a_1", "a_3"]


def test_a_name_that_is_made_is_never_made_twice() -> None:
    names = unique_names(["a", "a", "a_1", "a_1", "a_1_1", "a", "a_1"])
    assert len(set(names)) == 7
    assert [names[0], names[2], names[4]] == ["a", "a_1", "a_1_1"]


def test_make_names_unique_renames_in_place_and_says_how_many() -> None:
    model = model_with_names("x", "x", "y", "x")
    assert make_names_unique(model) == 2
    assert [op.get_friendly_name() for op in model.get_ordered_ops()] == [
        "input",
        "x",
        "x_1",
        "y",
        "x_2",
        "result",
    ]


def test_extract_reports_the_names_that_make_names_unique_would_set() -> None:
    model = model_with_names("x", "x", "y", "x")
    before = extract(model).names
    make_names_unique(model)
    assert tuple(op.get_friendly_name() for op in model.get_ordered_ops()) == before


def test_extract_leaves_the_names_of_the_model_alone() -> None:
    model = model_with_names("x", "x")
    extract(model)
    assert [op.get_friendly_name() for op in model.get_ordered_ops()][1:3] == ["x", "x"]
