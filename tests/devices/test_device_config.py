"""Which device gets what of a configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest

import ov_autoplace
from command_line import two_layers
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.devices.device_config import config_for
from ov_autoplace.errors import OptionError
from ov_autoplace.measure.calibrate import calibrate
from places import CPU_PLUGIN


@pytest.fixture
def unlike(monkeypatch: pytest.MonkeyPatch) -> ov.Core:
    """Two devices, of which ``XCPU`` does not list what has to do with threads."""
    from ov_autoplace.devices import device_config

    real = device_config.writable_properties

    def writable(core: ov.Core, device: str) -> dict[str, str]:
        told = real(core, device)
        return {k: v for k, v in told.items() if device == "CPU" or "THREADS" not in k}

    monkeypatch.setattr(device_config, "writable_properties", writable)
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    return core


CONFIGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"CACHE_DIR": "c"}, {"CACHE_DIR": "c"}),
    ({"NUM_STREAMS": 2}, {"NUM_STREAMS": 2}),
    ({"INFERENCE_NUM_THREADS": 1}, {"DEVICE_PROPERTIES": {"CPU": {"INFERENCE_NUM_THREADS": 1}}}),
    (
        {"INFERENCE_NUM_THREADS": 1, "DEVICE_PROPERTIES": {"CPU": {"INFERENCE_NUM_THREADS": 2}}},
        {"DEVICE_PROPERTIES": {"CPU": {"INFERENCE_NUM_THREADS": 2}}},
    ),
    (
        {"NUM_STREAMS": "{XCPU:1,CPU:2}"},
        {"DEVICE_PROPERTIES": {"XCPU": {"NUM_STREAMS": "1"}, "CPU": {"NUM_STREAMS": "2"}}},
    ),
    (
        {"DEVICE_PROPERTIES": "{CPU:{NUM_STREAMS:2,PERF_COUNT:YES},GPU:{NUM_STREAMS:7}}"},
        {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": "2", "PERF_COUNT": "YES"}}},
    ),
    ({"ALLOW_AUTO_BATCHING": False}, {"ALLOW_AUTO_BATCHING": False}),
    ({"SNIPPETS_MODE": "DISABLE"}, {"SNIPPETS_MODE": "DISABLE"}),
]


@pytest.mark.parametrize(("given", "expected"), CONFIGS)
def test_every_device_gets_what_it_knows(unlike, given, expected):
    config = config_for(unlike, ("XCPU", "CPU"), given)
    assert config == expected
    assert config_for(unlike, ("XCPU", "CPU"), config) == expected


@pytest.mark.parametrize(
    "value", ["CPU", "{CPU}", "{CPU:NUM_STREAMS}", 3, {"CPU": 3}, "{CPU:{NUM_STREAMS}}", "{CPU:{A:1}"]
)
def test_what_does_not_map_devices_to_properties_is_refused(unlike, value):
    with pytest.raises(OptionError, match="maps a device to its properties"):
        config_for(unlike, ("XCPU", "CPU"), {"DEVICE_PROPERTIES": value})


def test_a_bad_value_for_one_device_is_refused(unlike):
    with pytest.raises(OptionError, match="NUM_STREAMS is 'many', which CPU refuses"):
        config_for(unlike, ("XCPU", "CPU"), {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": "many"}}})


@pytest.mark.parametrize("name", ["CUP", "GPV", "", "CPU NUM_STREAMS"])
def test_properties_of_what_is_no_device_are_refused(unlike, name):
    with pytest.raises(OptionError, match=f"there is no device '{name}' here.*available: XCPU, CPU"):
        config_for(unlike, ("XCPU", "CPU"), {"DEVICE_PROPERTIES": {name: {"NUM_STREAMS": 1}}})


@pytest.mark.parametrize("name", ["GPU", "GPU.1", "NPU"])
def test_properties_of_a_device_that_takes_no_part_are_left_out(unlike, name):
    """One configuration may serve several machines."""
    assert config_for(unlike, ("XCPU", "CPU"), {"DEVICE_PROPERTIES": {name: {"NUM_STREAMS": 1}}}) == {}


def test_place_takes_properties_as_compile_does(unlike):
    model = two_layers([1, 3, 16, 16])
    taken = ov_autoplace.place(
        model, ["XCPU", "CPU"], "ZERO_SHOT", unlike, properties={"INFERENCE_NUM_THREADS": 1}
    )
    assert set(taken.devices) <= {"XCPU", "CPU"}
    with pytest.raises(OptionError, match="no property 'STREAMS'"):
        ov_autoplace.place(model, ["XCPU", "CPU"], "ZERO_SHOT", unlike, properties={"STREAMS": 1})


def test_profiling_and_calibrating_take_properties_as_compile_does(unlike):
    model = two_layers([1, 3, 16, 16])
    known = {"DEVICE_PROPERTIES": "{CPU:{INFERENCE_NUM_THREADS:1}}"}
    pair = ("XCPU", "CPU")
    transfers = TransferFit(pair, np.full((2, 2), 5e-6), np.full((2, 2), 1e-10), np.full(2, 1e-6))
    table = ov_autoplace.profile(model, pair, unlike, properties=known, transfers=transfers)
    assert table.devices == pair
    for asks in (
        lambda properties: ov_autoplace.profile(model, ["CPU"], unlike, properties=properties),
        lambda properties: calibrate(unlike, ["CPU"], properties=properties),
    ):
        with pytest.raises(OptionError, match="no property 'STREAMS'"):
            asks({"STREAMS": 1})
