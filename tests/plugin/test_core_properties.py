"""Properties of AUTOPLACE on a Core and on what it compiled, beside those of a plain CPU.

What is parametrised over ``device`` holds for OpenVINO's CPU plugin too, which is what it is compared with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino import properties as props

from ov_autoplace._base.releases import facts
from ov_autoplace.errors import DeviceError, OptionError

PAIR = "AUTOPLACE:XCPU,CPU"
NOTHING_MEASURED = {"AUTOPLACE_MODE": "ZERO_SHOT"}
MIXED = {**NOTHING_MEASURED, "AUTOPLACE_PINS": {"first": "XCPU", "second": "CPU"}}
MODES = props.hint.PerformanceMode


@pytest.fixture
def model() -> ov.Model:
    x = ops.parameter([1, 16], np.float32, name="x")
    weights = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    first = ops.softmax(ops.matmul(x, ops.constant(weights), False, False), 1, name="first")
    second = ops.tanh(ops.matmul(first, ops.constant(weights.T.copy()), False, False), name="second")
    return ov.Model([ops.result(second, name="y")], [x], "pair")


@pytest.fixture(params=["CPU", "AUTOPLACE", "AUTOPLACE:CPU", PAIR])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def core(unequal_pair: ov.Core, device: str) -> ov.Core:
    """A Core on which AUTOPLACE decides by estimates, where it is asked."""
    if device.startswith("AUTOPLACE"):
        unequal_pair.set_property("AUTOPLACE", NOTHING_MEASURED)
        return unequal_pair
    return ov.Core()


SETTABLE = {
    "PERFORMANCE_HINT": ("THROUGHPUT", MODES.THROUGHPUT),
    "PERFORMANCE_HINT_NUM_REQUESTS": ("3", 3),
    "NUM_STREAMS": ("2", 2),
    "INFERENCE_NUM_THREADS": (1, 1),
    "INFERENCE_PRECISION_HINT": ("f32", ov.Type.f32),
    "EXECUTION_MODE_HINT": ("ACCURACY", props.hint.ExecutionMode.ACCURACY),
    "PERF_COUNT": (True, True),
    "ENABLE_CPU_PINNING": ("NO", False),
    "ENABLE_HYPER_THREADING": (False, False),
}


@pytest.mark.parametrize("key", SETTABLE)
def test_a_property_is_told_as_it_was_set(core, device, key):
    given, expected = SETTABLE[key]
    core.set_property(device, {key: given})
    assert core.get_property(device, key) == expected
    assert type(core.get_property(device, key)) is type(expected)
    assert core.get_property(device, "SUPPORTED_PROPERTIES")[key] == "RW"


def test_every_property_that_can_be_read_is_told(core, device):
    supported = core.get_property(device, props.supported_properties())
    assert {"FULL_DEVICE_NAME", "AVAILABLE_DEVICES", "OPTIMIZATION_CAPABILITIES"} <= set(supported)
    for key, access in supported.items():
        if access in ("RO", "RW") and key != "COMPATIBILITY_CHECK":  # the bindings cannot convert that one
            core.get_property(device, key)


@pytest.mark.parametrize("form", ["mapping", "pair", "keywords", "keyword pair"])
def test_properties_are_set_in_every_form_that_openvino_takes(core, device, form):
    pair = props.hint.performance_mode(MODES.THROUGHPUT)
    if form == "mapping":
        core.set_property(device, dict([pair]))
    elif form == "pair":
        core.set_property(device, pair)
    elif form == "keywords":
        core.set_property(device_name=device, properties={"PERFORMANCE_HINT": "THROUGHPUT"})
    else:
        core.set_property(device_name=device, property=("PERFORMANCE_HINT", "THROUGHPUT"))
    for read in (props.hint.performance_mode, props.hint.performance_mode()):
        assert core.get_property(device, read) == MODES.THROUGHPUT
    assert core.get_property(device_name=device, property="PERFORMANCE_HINT") == MODES.THROUGHPUT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("UNKNOWN", 1),
        ("FULL_DEVICE_NAME", "mine"),
        ("SUPPORTED_PROPERTIES", {}),
        ("PERFORMANCE_HINT", "FAST"),
        ("PERFORMANCE_HINT_NUM_REQUESTS", -1),
        ("NUM_STREAMS", "many"),
        ("INFERENCE_NUM_THREADS", -5),
        *([("INFERENCE_PRECISION_HINT", "f12")] if facts().refuses_unknown_precisions else []),
        ("PERF_COUNT", "maybe"),
    ],
)
class TestRefused:
    def test_when_it_is_set(self, core, device, model, key, value):
        core.get_property(device, "NUM_STREAMS")  # a CPU plugin that is not loaded takes everything
        before = core.get_property(device, "PERFORMANCE_HINT")
        with pytest.raises(RuntimeError, match=".*" if device == "CPU" else key) as raised:
            core.set_property(device, {key: value})
        self._is_one_sentence(device, raised.value)
        assert core.get_property(device, "PERFORMANCE_HINT") == before
        assert core.compile_model(model, device) is not None

    def test_when_it_is_given_to_compile(self, core, device, model, key, value):
        with pytest.raises(RuntimeError, match=".*" if device == "CPU" else key) as raised:
            core.compile_model(model, device, {key: value})
        self._is_one_sentence(device, raised.value)

    @staticmethod
    def _is_one_sentence(device: str, error: BaseException) -> None:
        if device != "CPU":
            assert isinstance(error, OptionError)
            assert "\n" not in str(error)
            assert "Exception from" not in str(error)


def test_a_property_that_nobody_knows_is_not_told(core, device):
    with pytest.raises(RuntimeError, match="NUM_STREAM"):
        core.get_property(device, "NUM_STREAM")


def test_the_nearest_property_is_named(unequal_pair):
    with pytest.raises(OptionError, match="no property 'NUM_STREAM'; did you mean NUM_STREAMS"):
        unequal_pair.get_property(PAIR, "NUM_STREAM")
    with pytest.raises(OptionError, match="did you mean NUM_STREAMS"):
        unequal_pair.set_property(PAIR, {"NUM_STREAM": 2})


@pytest.mark.parametrize("hint", ["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"])
@pytest.mark.parametrize("how", ["set before", "given", "set after another was compiled"])
def test_a_hint_reaches_what_is_compiled(core, device, model, hint, how):
    if how == "set after another was compiled":
        core.compile_model(model, device)
    if how != "given":
        core.set_property(device, {"PERFORMANCE_HINT": hint})
    config = {"PERFORMANCE_HINT": hint} if how == "given" else {}
    compiled = core.compile_model(model, device, config)
    assert _text(compiled.get_property("PERFORMANCE_HINT")) == hint
    assert "PERFORMANCE_HINT" in compiled.get_property("SUPPORTED_PROPERTIES")
    if hint == "LATENCY":
        assert compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 1


def test_a_rate_is_reached_with_as_many_requests_as_on_the_device(model):
    for config in (
        {"PERFORMANCE_HINT": "THROUGHPUT"},
        {"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT"},
        {"PERFORMANCE_HINT": "THROUGHPUT", "PERFORMANCE_HINT_NUM_REQUESTS": 1},
        {"NUM_STREAMS": 2},
        {"NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 1},
    ):
        core = ov.Core()
        plain = core.compile_model(model, "CPU", config)
        ours = core.compile_model(model, "AUTOPLACE:CPU", {**config, **NOTHING_MEASURED})
        for key in ("OPTIMAL_NUMBER_OF_INFER_REQUESTS", "NUM_STREAMS", "INFERENCE_NUM_THREADS"):
            assert ours.get_property(key) == plain.get_property(key), (config, key)


@pytest.mark.alone
def test_options_are_taken_as_the_functions_of_openvino_wrap_them(unequal_pair, model):
    config = {"AUTOPLACE_MODE": ov.OVAny("ZERO_SHOT"), "NUM_STREAMS": ov.OVAny(2)}
    assert unequal_pair.compile_model(model, "AUTOPLACE:CPU", config).get_property("NUM_STREAMS") == 2
    unequal_pair.set_property("AUTOPLACE", {"AUTOPLACE_MODE": ov.OVAny("TUNE")})
    assert unequal_pair.get_property("AUTOPLACE", "AUTOPLACE_MODE") == "TUNE"
    unequal_pair.set_property("AUTOPLACE", {props.hint.performance_mode(): "throughput"})
    assert unequal_pair.get_property("AUTOPLACE", "PERFORMANCE_HINT") == MODES.THROUGHPUT


def test_a_call_wins_over_what_was_set(core, device, model):
    core.set_property(device, {"NUM_STREAMS": 2, "PERF_COUNT": True})
    compiled = core.compile_model(model, device, {"NUM_STREAMS": 1})
    assert compiled.get_property("NUM_STREAMS") == 1
    assert compiled.create_infer_request().profiling_info is not None
    assert _text(compiled.get_property("PERF_COUNT")) in ("True", "YES")


def test_one_core_knows_nothing_of_what_another_was_told(core, device):
    core.set_property(device, {"NUM_STREAMS": 2})
    other = ov.Core()
    assert other.get_property(device.split(":")[0], "NUM_STREAMS") == 1


def test_models_compiled_before_keep_their_properties(core, device, model):
    before = core.compile_model(model, device)
    core.set_property(device, {"PERFORMANCE_HINT": "THROUGHPUT"})
    assert _text(before.get_property("PERFORMANCE_HINT")) == "LATENCY"


def test_what_is_set_of_all_devices_is_set_of_autoplace(core, device, model):
    core.set_property({"PERFORMANCE_HINT": "THROUGHPUT"})
    assert core.get_property(device, "PERFORMANCE_HINT") == MODES.THROUGHPUT
    assert _text(core.compile_model(model, device).get_property("PERFORMANCE_HINT")) == "THROUGHPUT"


def test_properties_that_hetero_does_not_know_do_not_spoil_a_mix(unequal_pair, model):
    unequal_pair.set_property({"PERF_COUNT": True})
    assert unequal_pair.compile_model(model, PAIR, MIXED)(np.zeros((1, 16), np.float32))
    unequal_pair.set_property({"PERF_COUNT": False})
    assert unequal_pair.get_property("XCPU", "PERF_COUNT") is False
    compiled = unequal_pair.compile_model(model, PAIR, MIXED)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}


def test_devices_can_be_named_by_a_property(unequal_pair, model):
    key = "MULTI_DEVICE_PRIORITIES"
    given = unequal_pair.compile_model(model, "AUTOPLACE", {**NOTHING_MEASURED, key: "XCPU"})
    assert given.get_property("EXECUTION_DEVICES") == ["XCPU"]
    unequal_pair.set_property("AUTOPLACE", {key: "XCPU"})
    assert unequal_pair.get_property("AUTOPLACE", key) == "XCPU"
    compiled = unequal_pair.compile_model(model, "AUTOPLACE", NOTHING_MEASURED)
    assert compiled.get_property("EXECUTION_DEVICES") == ["XCPU"]
    listed = unequal_pair.compile_model(model, "AUTOPLACE:CPU", NOTHING_MEASURED)
    assert listed.get_property("EXECUTION_DEVICES") == ["CPU"]
    with pytest.raises(DeviceError, match="no device 'FPGA'"):
        unequal_pair.set_property("AUTOPLACE", {key: "FPGA"})
    assert unequal_pair.get_property("AUTOPLACE", key) == "XCPU"


def test_properties_of_single_devices_are_set_on_them(unequal_pair):
    with pytest.raises(OptionError, match="on the device itself"):
        unequal_pair.set_property("AUTOPLACE", {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 2}}})


def test_the_device_tells_what_it_is(unequal_pair):
    assert unequal_pair.get_property(PAIR, "FULL_DEVICE_NAME") == PAIR
    assert unequal_pair.get_property(PAIR, "AVAILABLE_DEVICES") == ["XCPU", "CPU"]
    assert unequal_pair.get_property("AUTOPLACE", "AVAILABLE_DEVICES") == ["CPU", "XCPU"]
    told = set(unequal_pair.get_property("CPU", "OPTIMIZATION_CAPABILITIES"))
    assert set(unequal_pair.get_property(PAIR, "OPTIMIZATION_CAPABILITIES")) == told | {"EXPORT_IMPORT"}


def test_versions_are_those_of_hetero_and_of_the_devices(unequal_pair):
    versions = unequal_pair.get_versions(PAIR)
    assert list(versions) == ["AUTOPLACE", "XCPU", "CPU"]
    assert "hetero" in versions["AUTOPLACE"].description
    assert versions["AUTOPLACE"].build_number == versions["CPU"].build_number
    assert versions["CPU"].build_number == ov.Core().get_versions("CPU")["CPU"].build_number


def test_there_is_no_remote_context(core, device):
    with pytest.raises(RuntimeError, match="context"):
        core.get_default_context(device)
    with pytest.raises(RuntimeError, match="context"):
        core.create_context(device, {})


def test_a_plugin_can_be_unloaded_and_used_again(core, device, model):
    core.compile_model(model, device)
    core.unload_plugin(device.split(":")[0])
    assert core.compile_model(model, device) is not None


# What was compiled.


@pytest.mark.alone
def test_a_mix_tells_what_its_devices_agree_about(unequal_pair, model):
    compiled = unequal_pair.compile_model(model, PAIR, {**MIXED, "NUM_STREAMS": 1})
    supported = compiled.get_property("SUPPORTED_PROPERTIES")
    assert compiled.get_property("NUM_STREAMS") == 1
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ov.Type.f32
    assert {"NUM_STREAMS", "PERFORMANCE_HINT", "HETERO_NUMBER_OF_SUBMODELS"} <= set(supported)
    for key in supported:
        compiled.get_property(key)
    assert "INFERENCE_NUM_THREADS" not in supported
    with pytest.raises(OptionError, match=r"differ in INFERENCE_NUM_THREADS \(CPU 2, XCPU 1\)"):
        compiled.get_property("INFERENCE_NUM_THREADS")


def test_every_property_of_a_compiled_model_is_told(core, device, model):
    compiled = core.compile_model(model, device)
    supported = compiled.get_property(props.supported_properties)
    assert {"OPTIMAL_NUMBER_OF_INFER_REQUESTS", "PERFORMANCE_HINT", "EXECUTION_DEVICES"} <= set(supported)
    for key in supported:
        compiled.get_property(key)
    with pytest.raises(RuntimeError):
        compiled.get_property("UNKNOWN")
    with pytest.raises(RuntimeError):
        compiled.set_property({"PERFORMANCE_HINT": "LATENCY"})


def _text(value: Any) -> str:
    return str(getattr(value, "name", value))
