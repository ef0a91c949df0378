"""Devices of the environment: every Core has them, whenever it was made and whoever made it."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from ov_autoplace.devices.extra_devices import are_wanted
from ov_autoplace.devices.names import bare_core, device_settings, resolve_devices
from ov_autoplace.errors import DeviceError
from places import CPU_PLUGIN

VARIABLE = "AUTOPLACE_EXTRA_DEVICES"
TWO = "XCPU=CPU,INFERENCE_NUM_THREADS=1; YCPU=CPU"


@pytest.fixture
def model() -> ov.Model:
    x = ops.parameter([1, 4], np.float32, name="x")
    return ov.Model([ops.relu(x)], [x])


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TWO)


USES = {
    "compile_model": lambda core, model: core.compile_model(model, "XCPU"),
    "AUTOPLACE": lambda core, model: core.compile_model(model, "AUTOPLACE:XCPU"),
    "HETERO": lambda core, model: core.compile_model(model, "HETERO:XCPU,CPU"),
    "query_model": lambda core, model: core.query_model(model, "XCPU"),
    "get_property": lambda core, _: core.get_property("XCPU", "FULL_DEVICE_NAME"),
    "set_property": lambda core, _: core.set_property("XCPU", {"NUM_STREAMS": 2}),
    "set_property of all": lambda core, _: core.set_property({"PERF_COUNT": True}),
    "get_versions": lambda core, _: core.get_versions("XCPU")["XCPU"],
    "available_devices": lambda core, _: core.available_devices.index("XCPU"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_plain_core_has_them_at_whatever_is_called_first(two, model, use):
    core = ov.Core()
    use(core, model)
    assert core.get_property("XCPU", "INFERENCE_NUM_THREADS") == 1
    assert resolve_devices(core) == ("CPU", "XCPU", "YCPU")


def test_exported_models_are_imported_on_them(two, model):
    exported = ov.Core().compile_model(model, "XCPU").export_model().getvalue()
    assert ov.Core().import_model(exported, "XCPU").get_property("INFERENCE_NUM_THREADS") == 1


def test_the_module_level_function_has_them(two, model):
    assert ov.compile_model(model, "XCPU").get_property("INFERENCE_NUM_THREADS") == 1


def test_a_core_made_before_the_import_has_them(monkeypatch):
    monkeypatch.setenv(VARIABLE, TWO)
    code = "import openvino; core = openvino.Core(); import ov_autoplace; print(*core.available_devices)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["CPU", "XCPU", "YCPU"]


def test_the_package_is_imported_whatever_the_variable_says(monkeypatch):
    monkeypatch.setenv(VARIABLE, "XCPU")
    code = "import ov_autoplace, openvino; print(openvino.Core().get_property('CPU', 'NUM_STREAMS'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


@pytest.mark.parametrize("text", ["XCPU", "=CPU", "XCPU=", "XCPU=CPU,THREADS"])
@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_malformed_variable_is_told_at_whatever_is_called_first(monkeypatch, model, text, use):
    monkeypatch.setenv(VARIABLE, text)
    core = ov.Core()
    for _ in range(2):
        if text == "=CPU" and not are_wanted("XCPU"):
            use = USES["available_devices"]  # what it was to be called is not known
        with pytest.raises(DeviceError, match="ALIAS=DEVICE"):
            use(core, model)
    assert core.get_property("CPU", "FULL_DEVICE_NAME")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SECOND=CPU", "like XCPU"),
        ("XCPU=FPGA", "'XCPU=FPGA': there is no device 'FPGA'"),
        ("XCPU=CPU,NUM_STREAMS=many", "takes none of these properties"),
        ("XCPU=CPU,STREAMS=2", "takes none of these properties"),
    ],
)
def test_what_openvino_refuses_is_explained_every_time(monkeypatch, text, message):
    monkeypatch.setenv(VARIABLE, text)
    core = ov.Core()
    for _ in range(2):
        with pytest.raises(DeviceError, match=message):
            resolve_devices(core)


def test_properties_set_later_stay(two):
    core = ov.Core()
    assert core.get_property("XCPU", "INFERENCE_NUM_THREADS") == 1
    core.set_property("XCPU", {"INFERENCE_NUM_THREADS": 2})
    assert core.available_devices
    assert core.get_property("XCPU", "INFERENCE_NUM_THREADS") == 2


def test_a_device_that_somebody_registered_under_the_same_name_gets_the_properties(two):
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    assert core.get_property("XCPU", "INFERENCE_NUM_THREADS") == 1


def test_cores_know_nothing_of_them_when_the_package_is_unregistered(two):
    ov_autoplace.unregister()
    try:
        assert ov.Core().available_devices == ["CPU"]
        core = ov.Core()
    finally:
        ov_autoplace.register()
    assert core.available_devices == ["CPU", "XCPU", "YCPU"]


def test_threads_that_share_a_core_find_them_all_at_once(two):
    core, found, failures = ov.Core(), [], []
    barrier = threading.Barrier(8)

    def use() -> None:
        barrier.wait()
        try:
            found.append(core.get_property("XCPU", "INFERENCE_NUM_THREADS"))
        except Exception as cause:
            failures.append(cause)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert found == [1] * 8


def test_measuring_copies_their_properties_though_every_core_has_them(two):
    settings = device_settings(ov.Core(), ["XCPU", "YCPU"])
    assert settings == {"XCPU": {"INFERENCE_NUM_THREADS": "1"}, "YCPU": {}}
    assert bare_core().available_devices == ["CPU"]


@pytest.mark.parametrize(
    ("device", "wanted"),
    [
        (None, True),
        ("AUTO", True),
        ("AUTOPLACE", True),
        ("AUTO:-CPU", True),
        ("XCPU", True),
        ("XCPU.0", True),
        ("HETERO:GPU,YCPU", True),
        ("MULTI:XCPU(2)", True),
        ("CPU", False),
        ("GPU.1", False),
        ("HETERO:GPU,CPU", False),
    ],
)
def test_only_requests_that_can_be_about_them_wait_for_them(two, device, wanted):
    assert are_wanted(device) is wanted


@pytest.mark.parametrize("text", ["", " ; "])
def test_an_empty_variable_asks_for_nothing(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    assert not are_wanted(None)
    assert ov.Core().available_devices == ["CPU"]


def test_programs_that_ask_before_they_compile_find_autoplace(two):
    devices: Any = ov.Core().available_devices
    assert "AUTOPLACE" in devices
    assert "AUTOPLACE:XCPU,CPU" in devices
    assert "AUTOPLACER" not in devices
    assert list(devices) == ["CPU", "XCPU", "YCPU"]
