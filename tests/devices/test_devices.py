from __future__ import annotations

import openvino as ov
import pytest

from ov_autoplace.devices import conditions
from ov_autoplace.devices.conditions import machine_lines, measuring_conditions
from ov_autoplace.devices.names import (
    device_properties,
    device_settings,
    emulation,
    full_device_name,
    is_emulated,
    plugin_library,
    property_text,
    resolve_devices,
)
from ov_autoplace.errors import DeviceError
from ov_autoplace.measure.isolation.interface import profiler_for


def test_without_a_list_all_real_devices_are_taken_and_cpus_come_last(unequal_pair):
    assert resolve_devices(unequal_pair) == ("CPU", "XCPU")


def test_a_list_keeps_its_order(unequal_pair):
    assert resolve_devices(unequal_pair, "XCPU, CPU") == ("XCPU", "CPU")
    assert resolve_devices(unequal_pair, ["CPU"]) == ("CPU",)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("FPGA", "no device 'FPGA' here; available: CPU, XCPU"),
        ("CPU,CPU", "listed twice"),
        ("CPU,,XCPU", "empty name"),
        ("AUTO", "virtual device"),
        ("HETERO:CPU", "virtual device"),
        ("cpu", "no device 'cpu'"),
    ],
)
def test_a_bad_list_is_refused_in_one_sentence(unequal_pair, devices, message):
    with pytest.raises(DeviceError, match=message):
        resolve_devices(unequal_pair, devices)


def test_the_plugin_library_of_an_alias_is_that_of_its_device(unequal_pair):
    assert plugin_library(unequal_pair, "XCPU") == plugin_library(unequal_pair, "CPU")
    assert plugin_library(unequal_pair, "CPU").exists()


def test_property_values_become_text_that_the_runtime_parses():
    assert property_text(True) == "YES"
    assert property_text(ov.Type.f32) == "f32"
    assert property_text(ov.properties.hint.PerformanceMode.LATENCY) == "LATENCY"
    assert property_text(4) == "4"


def test_flat_properties_go_to_every_device_and_own_ones_win(unequal_pair):
    result = device_properties(
        unequal_pair,
        ["XCPU", "CPU"],
        {"PERF_COUNT": True, "DEVICE_PROPERTIES": {"CPU": {"PERF_COUNT": False}}},
    )
    assert result["XCPU"] == {"EXCLUSIVE_ASYNC_REQUESTS": False, "PERF_COUNT": True}
    assert result["CPU"] == {"EXCLUSIVE_ASYNC_REQUESTS": False, "PERF_COUNT": False}


def test_the_profiler_sees_the_callers_devices_and_their_settings(unequal_pair, tmp_path):
    from openvino import opset13 as ops

    parameter = ops.parameter([1, 8], ov.Type.f32, name="x")
    ov.save_model(ov.Model([ops.relu(parameter)], [parameter]), tmp_path / "m.xml", compress_to_fp16=False)
    profiler = profiler_for(unequal_pair, ["XCPU", "CPU"])
    executable = profiler.compile(str(tmp_path / "m.xml"), "XCPU")
    assert executable.execution_devices == ["XCPU"]
    assert len(executable.run(3)) == 3


def test_properties_that_a_plugin_never_tells_again_are_copied_too(unequal_pair):
    with pytest.raises(RuntimeError):
        unequal_pair.get_property("XCPU", "SNIPPETS_MODE")
    settings = device_settings(unequal_pair, ["XCPU", "CPU"], {"CPU": {"NUM_STREAMS": 1}})
    assert settings["XCPU"] == {
        "INFERENCE_NUM_THREADS": "1",
        "INFERENCE_PRECISION_HINT": "f32",
        "EXCLUSIVE_ASYNC_REQUESTS": "NO",
        "SNIPPETS_MODE": "DISABLE",
    }
    assert settings["CPU"]["NUM_STREAMS"] == "1"


class NamedDevices:
    """A Core whose devices have these full names; one without a name does not tell it."""

    def __init__(self, **names: str) -> None:
        self.names = names

    def get_property(self, device: str, key: str) -> str:
        if key != "FULL_DEVICE_NAME" or not self.names[device]:
            raise RuntimeError("no such property")
        return self.names[device]


def test_devices_that_say_so_are_emulated_and_numbers_name_them():
    core = NamedDevices(CPU="A processor", GPU="A GPU (paced, outputs undefined; factor 2)", NPU="")
    assert [device for device in core.names if is_emulated(core, device)] == ["GPU"]
    assert full_device_name(core, "NPU") == ""
    assert emulation(core, ("CPU", "NPU")) == ""
    assert emulation(core, ("GPU", "CPU")) == " (emulated: GPU)"


def test_processors_of_one_name_are_of_one_generation_if_family_and_instructions_are_the_same(monkeypatch):
    zen_4, zen_5 = "sse2 avx2 avx512f avx512_bf16", "sse2 avx2 avx512f avx512_bf16 avx_vnni movdiri"
    seen = []

    def see(maker: str, family: str, model: str, flags: str, allowed: str = "") -> None:
        told = {"vendor_id": maker, "model name": "A processor", "cpu family": family, "model": model}
        monkeypatch.setattr(conditions, "cpu_information", lambda: {**told, "flags": flags})
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", allowed)
        seen.append(conditions.generation())

    see("AuthenticAMD", "25", "17", zen_4)
    see("AuthenticAMD", "25", "160", f"{zen_4} la57", "ALL")
    see("AuthenticAMD", "26", "2", zen_5)
    see("AuthenticAMD", "26", "2", zen_5, "avx2")
    see("GenuineIntel", "6", "173", "avx2")
    see("GenuineIntel", "6", "207", "avx2")
    assert seen[0] == seen[1] == "AuthenticAMD cpu family 25 avx2 avx512f avx512_bf16"
    alone = "AuthenticAMD cpu family 26 avx2 avx_vnni avx512f avx512_bf16"
    assert seen[2:4] == [alone, f"{alone} ONEDNN_MAX_CPU_ISA=AVX2"]
    assert seen[4:] == [f"GenuineIntel cpu family 6 model {model} avx2" for model in (173, 207)]


def test_measurements_hold_for_one_processor_among_those_of_one_name(monkeypatch):
    name = "Intel(R) Xeon(R) Processor"
    seen = set()
    # The last is a set of instructions that this package does not know.
    for model, allowed in (("143", ""), ("173", ""), ("173", "AVX2"), ("173", "AVX10_2_512")):
        told = {"model name": name, "cpu family": "6", "model": model, "stepping": "1"}
        monkeypatch.setattr(conditions, "cpu_information", lambda told=told: told)
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", allowed)
        lines = measuring_conditions(ov.Core(), ("CPU",), {})
        assert any(line.startswith(name) for line in lines)
        assert lines[-1] in machine_lines(ov.Core(), ("CPU",))
        seen.add(lines)
    assert len(seen) == 4
