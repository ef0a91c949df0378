from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

from ov_autoplace.errors import OptionError
from ov_autoplace.options import PROPERTY_NAMES, PlacerOptions, split_config


def test_the_properties_are_the_documented_ones():
    assert set(PROPERTY_NAMES) == {
        "AUTOPLACE_MODE",
        "AUTOPLACE_TIME_BUDGET_MS",
        "AUTOPLACE_PIN",
        "AUTOPLACE_MEMORY_LIMIT",
        "AUTOPLACE_SHAPES",
        "AUTOPLACE_TARGET",
        "AUTOPLACE_POLICY",
        "AUTOPLACE_SEED",
    }


def test_a_configuration_is_split_into_ours_and_openvinos():
    own, rest = split_config({"AUTOPLACE_SEED": 3, "PERFORMANCE_HINT": "LATENCY"})
    assert own == {"seed": 3}
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
        ("pin", "not json", "JSON object"),
        ("pin", {"conv*": 3}, "device name"),
        ("memory_limit", {"GPU": "lots"}, "500MB"),
        ("shapes", {"x": "1,3"}, "list of sizes"),
        ("shapes", {"x": [1, -1]}, "list of sizes"),
        ("policy", 3, "folder of a checkpoint"),
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
        pin='{"conv*": "GPU"}',
        memory_limit='{"GPU": "2GiB", "NPU": "500 MB"}',
        shapes='{"x": [1, 3, 8, 8]}',
        seed="7",
        target="",
        policy="NONE",
    )
    assert options.mode == "ZERO_SHOT"
    assert options.time_budget_ms == 250
    assert options.pin == {"conv*": "GPU"}
    assert options.memory_limit == {"GPU": 2 * 2**30, "NPU": 5e8}
    assert options.shapes == {"x": [1, 3, 8, 8]}
    assert options.seed == 7
    assert options.target is None
    assert options.policy == "none"


def test_a_policy_is_a_folder_or_a_name():
    assert PlacerOptions().policy is None
    assert PlacerOptions(policy="").policy is None
    assert PlacerOptions(policy="Base").policy == "base"
    assert PlacerOptions(policy=Path("Tuned/Net")).policy == "Tuned/Net"


def test_properties_that_openvino_wrapped_are_unwrapped():
    wrapped = dict([ov.properties.device.properties({"CPU": {"NUM_STREAMS": 2}})])

    _, properties = split_config(wrapped)

    assert properties == {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 2}}}
