from __future__ import annotations

import openvino as ov
import pytest

from ov_autoplace.decide.options import PROPERTY_NAMES, PlacerOptions, split_config
from ov_autoplace.errors import OptionError


def test_the_properties_are_the_documented_ones():
    assert set(PROPERTY_NAMES) == {
        "AUTOPLACE_APPLICATION",
        "AUTOPLACE_MODE",
        "AUTOPLACE_TIME_BUDGET_MS",
        "AUTOPLACE_PINS",
        "AUTOPLACE_MEMORY_LIMITS",
        "AUTOPLACE_SHAPES",
        "AUTOPLACE_TARGET",
        "AUTOPLACE_ISOLATION",
        "AUTOPLACE_EXECUTOR",
        "AUTOPLACE_LANES",
        "AUTOPLACE_ARRIVALS",
        "AUTOPLACE_CACHE",
        "AUTOPLACE_DECIDE",
        "AUTOPLACE_OUTPUT_TOLERANCE",
    }


def test_a_configuration_is_split_into_ours_and_openvinos():
    own, rest = split_config({"AUTOPLACE_TIME_BUDGET_MS": 3, "PERFORMANCE_HINT": "LATENCY"})
    assert own == {"time_budget_ms": 3}
    assert rest == {"PERFORMANCE_HINT": "LATENCY"}


def test_an_unknown_property_is_refused_with_the_nearest_valid_name():
    with pytest.raises(OptionError, match="AUTOPLACE_MOD; did you mean AUTOPLACE_MODE"):
        split_config({"AUTOPLACE_MOD": "TUNE"})


def test_an_unknown_argument_is_refused_with_the_nearest_valid_name():
    with pytest.raises(OptionError, match="'time_budget'; did you mean time_budget_ms"):
        PlacerOptions.from_arguments({"time_budget": 1})


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("mode", "FAST", "ZERO_SHOT, PROFILE, TUNE"),
        ("time_budget_ms", "soon", "number of milliseconds"),
        ("time_budget_ms", -1, "0 or more"),
        ("time_budget_ms", float("nan"), "0 or more"),
        ("pins", "not json", "JSON object"),
        ("pins", {"conv*": 3}, "device name"),
        ("memory_limits", {"GPU": "lots"}, "500MB"),
        ("shapes", {"x": "1,3"}, "list of sizes"),
        ("shapes", {"x": [1, -1]}, "list of sizes"),
        ("solvers", "portfolio,gredy", "'gredy'; did you mean greedy.*All: single, greedy, mincut"),
        ("solvers", 3, "list of names"),
        ("solvers", ["portfolio", 3], "list of names"),
        ("solvers", "portfolio,,greedy", "names ''"),
        ("executor", "lanes", "AUTO, HETERO, OVERLAP"),
        ("lanes", "2 by 1", "like 2x1"),
        ("lanes", "0x4", "like 2x1"),
        ("lanes", "2x1,", "like 2x1"),
        ("arrivals", "often", "ANY, STEADY"),
        ("seed", -1, "0 or more"),
        ("seed", "x", "integer"),
    ],
)
def test_a_bad_value_is_refused_with_what_would_be_right(argument, value, message):
    with pytest.raises(OptionError, match=message):
        PlacerOptions(**{argument: value})


def test_values_may_come_as_text_as_properties_do():
    options = PlacerOptions(
        mode="zero-shot",
        time_budget_ms="250",
        pins='{"conv*": "GPU"}',
        memory_limits='{"GPU": "2GiB", "NPU": "500 MB"}',
        shapes='{"x": [1, 3, 8, 8]}',
        seed="7",
        target="",
    )
    assert options.mode == "ZERO_SHOT"
    assert options.time_budget_ms == 250
    assert options.pins == {"conv*": "GPU"}
    assert options.memory_limits == {"GPU": 2 * 2**30, "NPU": 5e8}
    assert options.shapes == {"x": [1, 3, 8, 8]}
    assert options.seed == 7
    assert options.target is None


def test_solvers_are_a_list_or_text_with_commas_in_order_and_each_once():
    assert PlacerOptions().solvers == ("portfolio", "greedy")
    assert PlacerOptions(solvers="local, portfolio").solvers == ("local", "portfolio")
    assert PlacerOptions(solvers=["greedy", "portfolio", "greedy"]).solvers == ("greedy", "portfolio")
    for nobody in ((), "", "None"):
        assert PlacerOptions(solvers=nobody).solvers == ()


def test_the_shape_of_a_tensor_is_a_shape():
    assert PlacerOptions(shapes={"x": ov.Shape([2, 3])}).shapes == {"x": [2, 3]}


def test_sizes_are_decimal_or_binary_by_their_suffix():
    sizes = {"7": 7, "7 b": 7, "2kb": 2e3, "2KiB": 2048, "1.5MB": 1.5e6, "1MiB": 2**20, "3GB": 3e9, 11: 11}
    for text, size in sizes.items():
        assert PlacerOptions(memory_limits={"GPU": text}).memory_limits == {"GPU": size}
    with pytest.raises(OptionError, match="500MB or 2GiB"):
        PlacerOptions(memory_limits={"GPU": "2G"})


def test_properties_that_openvino_wrapped_are_unwrapped():
    wrapped = dict([ov.properties.device.properties({"CPU": {"NUM_STREAMS": 2}})])

    _, properties = split_config(wrapped)

    assert properties == {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 2}}}


@pytest.mark.parametrize("name", ["AUTOPLACE_SEED", "AUTOPLACE_SOLVERS", "AUTOPLACE_PIN", "AUTOPLACE_pins"])
def test_what_is_no_property_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"there is no property {name}"):
        split_config({name: "1"})
