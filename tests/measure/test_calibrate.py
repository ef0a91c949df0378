"""Calibration on two real devices of unequal speed."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import pytest

from ov_autoplace.cost.target import MEASURED, OP_CLASSES
from ov_autoplace.cost.target_json import load_target, save_target
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure.calibrate import calibrate, reported_precisions
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.microbenchmarks import benchmarks

DEVICES = ("XCPU", "CPU")


@pytest.mark.parametrize("benchmark", benchmarks(), ids=lambda b: f"{b.op_class}-{b.work:.0f}")
def test_the_work_of_a_benchmark_is_what_the_graph_counts(benchmark):
    for count in benchmark.counts:
        graph = extract(benchmark.build(count))
        if benchmark.op_class == "copy":
            is_copy = np.array([op_type == "Relu" for op_type in graph.op_types])
            assert is_copy.sum() == count
            assert (benchmark.work == (graph.input_bytes + graph.output_bytes)[is_copy]).all()
        else:
            assert benchmark.work * count == graph.flops.sum()


def test_what_is_small_is_timed_as_what_further_ops_add():
    assert all((len(b.counts) > 1) == (b.work <= 1e8) for b in benchmarks())


@pytest.mark.skipif(
    "INT8" not in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"),
    reason="this CPU has no 8-bit kernels",
)
@pytest.mark.parametrize("op_class", ["matmul", "convolution"])
def test_quantized_benchmarks_really_run_in_8_bits(op_class):
    benchmark = next(b for b in benchmarks(quantized=True) if b.op_class == op_class and b.work > 1e7)
    compiled = ov.Core().compile_model(benchmark.build(1), "CPU")
    kernels = {
        op.get_rt_info()["layerType"].astype(str): op.get_rt_info()["runtimePrecision"].astype(str)
        for op in compiled.get_runtime_model().get_ops()
    }
    name = {"matmul": "FullyConnected", "convolution": "Convolution"}[op_class]
    assert kernels[name] in ("i8", "u8")


def test_the_devices_own_precision_comes_first(unequal_pair):
    capabilities = unequal_pair.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    others = {"FP32": "f32", "BF16": "bf16", "FP16": "f16", "INT8": "i8"}
    precisions = reported_precisions(unequal_pair, "CPU", {"INFERENCE_PRECISION_HINT": ov.Type.f32})
    assert precisions[0] == "f32"
    assert set(precisions) == {"f32", *(others[c] for c in capabilities if c in others)}


def test_a_single_device_has_a_launch_time_too(unequal_pair):
    target = calibrate(unequal_pair, ("CPU",), quick=True)
    assert target.transfers.launch_seconds[0] > 0
    assert target.transfers.latency.tolist() == [[0.0]]


def failing_at(op_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every device fails at models with such an op."""
    real = IsolatedProfiler.compile

    def compile_others(self: IsolatedProfiler, path: str, *others: Any) -> Any:
        if op_type in {op.get_type_name() for op in ov.Core().read_model(path).get_ops()}:
            raise ProfilingError("incompatible input element types")
        return real(self, path, *others)

    monkeypatch.setattr(IsolatedProfiler, "compile", compile_others)


def test_attention_that_a_device_fails_at_is_assumed_from_products(monkeypatch, caplog):
    failing_at("ScaledDotProductAttention", monkeypatch)
    [device] = calibrate(ov.Core(), ("CPU",), quick=True).devices
    assert {rate.op_class for rate in device.rates} == {*OP_CLASSES, "recurrent"}
    assert "assumed" in device.rate("attention").source
    assert sum("attention" in record.message for record in caplog.records) == 1


def test_a_device_that_fails_at_what_every_target_needs_cannot_be_calibrated(monkeypatch):
    failing_at("Convolution", monkeypatch)
    with pytest.raises(ProfilingError, match="incompatible"):
        calibrate(ov.Core(), ("CPU",), quick=True)


def test_a_quick_calibration_measures_everything_that_a_target_needs(unequal_pair, tmp_path):
    seen: list[tuple[int, int, str]] = []
    properties = {"INFERENCE_PRECISION_HINT": "f32"}
    target = calibrate(
        unequal_pair, DEVICES, properties=properties, progress=lambda *step: seen.append(step), quick=True
    )

    assert target.device_names == DEVICES
    assert target.is_measured
    assert target.openvino == ov.get_version()
    for device in target.devices:
        assert device.precision == "f32"  # as the properties asked
        assert device.op_overhead_seconds >= 0
        assert device.threads == {"XCPU": 1, "CPU": 2}[device.name]  # as the fixture sets them
        assert device.sources["synchronisation_seconds"] == MEASURED
        for op_class in OP_CLASSES:
            rate = device.rate(op_class)
            assert rate.source == MEASURED
            assert len(rate.sizes) >= 1
            assert (rate.per_second > 0).all()
    assert all((sample.seconds > 0).all() for sample in target.samples)
    assert {sample.ops for sample in target.samples} > {1, 17}

    transfers = target.transfers
    for pair in (DEVICES, DEVICES[::-1]):  # both directions are cut
        sizes = {s.tensor_bytes for s in transfers.samples if s.devices == (pair[0], pair[0], pair[1])}
        assert len(sizes) >= 6
    for costs in (transfers.latency, transfers.seconds_per_byte, transfers.launch_seconds):
        assert np.isfinite(costs).all()
        assert (costs >= 0).all()

    done = [step[0] for step in seen]
    assert done == sorted(done)
    assert seen[-1][:2] == (seen[-1][1], seen[-1][1])

    save_target(target, tmp_path / "target.json")
    again = load_target(tmp_path / "target.json")
    assert again.fingerprint == target.fingerprint
    assert len(target.fingerprint) == 16
    np.testing.assert_array_equal(again.transfers.latency, transfers.latency)
    for device, loaded in zip(target.devices, again.devices, strict=True):
        np.testing.assert_array_equal(loaded.rate("matmul").per_second, device.rate("matmul").per_second)
        assert loaded.threads == device.threads
        assert loaded.synchronisation_seconds == device.synchronisation_seconds
    one, two = target.devices
    assert one.synchronisation_seconds == 0.0
    assert two.op_overhead_seconds >= two.synchronisation_seconds  # of which it is a part
