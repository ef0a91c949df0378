"""Target profiles: their rules, files, catalogue, and what is assumed without a profile."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import openvino as ov
import pytest

from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target import OP_CLASSES, DeviceProfile, Rate, RateSample, Target
from ov_autoplace.cost.target_json import catalogue, load_target, save_target, target_text
from ov_autoplace.cost.transfers import TransferFit, TransferSample
from ov_autoplace.devices.conditions import generation
from ov_autoplace.errors import DeviceError, OutputError, TargetError


def make_device(name: str, **changes: object) -> DeviceProfile:
    rates = [Rate(c, "f32", np.array([1e3, 1e6]), np.array([1e9, 1e11]), "measured") for c in OP_CLASSES]
    values = {
        "name": name,
        "full_name": f"Maker's {name}",
        "precision": "f32",
        "rates": (*rates, Rate("matmul", "i8", np.array([1e4]), np.array([1 / 3 * 1e12]), "a data sheet")),
        "op_overhead_seconds": 1e-7,
        "memory_bytes": np.inf,
        "sources": {"op_overhead_seconds": "measured", "memory_bytes": "not known"},
    }
    return DeviceProfile(**{**values, **changes})


def make_target(*names: str) -> Target:
    D = len(names)
    generator = np.random.default_rng(3)
    return Target(
        name="test machine",
        openvino="2026.4.1",
        created="2026-11-20",
        fingerprint="0123456789abcdef",
        devices=tuple(make_device(name) for name in names),
        transfers=TransferFit(
            names,
            generator.random((D, D)),
            generator.random((D, D)) * 1e-10,
            generator.random(D) / 3,
            (TransferSample((names[0],) * 4, 1024, generator.random(5)),),
        ),
        transfers_source="measured",
        samples=(RateSample(names[0], "matmul", "f32", 65536.0, 17, generator.random(7)),),
    )


def assert_same(left: object, right: object, where: str = "target") -> None:
    """Deep equality of nested dataclasses and arrays."""
    if isinstance(left, np.ndarray):
        np.testing.assert_array_equal(left, right, err_msg=where)
    elif isinstance(left, tuple) and left and hasattr(left[0], "__dataclass_fields__"):
        assert len(left) == len(right), where
        for i, (one, other) in enumerate(zip(left, right, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    elif hasattr(left, "__dataclass_fields__"):
        for field in left.__dataclass_fields__:
            assert_same(getattr(left, field), getattr(right, field), f"{where}.{field}")
    else:
        assert left == right, where


def test_the_generation_of_a_processor_comes_back(tmp_path):
    here = generic_target(ov.Core(), ("CPU",))
    assert here.devices[0].generation == generation()
    save_target(here, tmp_path / "target.json")
    assert load_target(tmp_path / "target.json").devices[0].generation == generation()


def test_factors_come_back_and_must_be_above_0(tmp_path):
    target = make_target("CPU")
    corrected = replace(target, devices=(replace(target.devices[0], factors={"matmul": 1.5}),))
    save_target(corrected, tmp_path / "target.json")
    assert load_target(tmp_path / "target.json").devices[0].factors == {"matmul": 1.5}
    with pytest.raises(TargetError, match="factor of matmul"):
        make_device("CPU", factors={"matmul": 0.0})


def test_a_rate_is_interpolated_on_logarithmic_scales_and_flat_outside():
    rate = Rate("matmul", "f32", np.array([1e3, 1e5]), np.array([1e9, 1e11]), "measured")
    np.testing.assert_allclose(rate.at(np.array([0.0, 1e3, 1e4, 1e5, 1e9])), [1e9, 1e9, 1e10, 1e11, 1e11])


def test_an_unknown_precision_falls_back_to_the_devices_own():
    device = make_device("GPU")
    assert device.rate("matmul", "i8").source == "a data sheet"
    assert device.rate("convolution", "i8").precision == "f32"
    assert device.rate("matmul").precision == "f32"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Rate("fft", "f32", np.ones(1), np.ones(1), ""), "'fft' is no class of ops"),
        (lambda: Rate("copy", "f32", np.ones(0), np.ones(0), ""), "at least one size"),
        (lambda: Rate("copy", "f32", np.ones(2), np.ones(1), ""), "one speed per size"),
        (lambda: Rate("copy", "f32", np.ones(1), np.zeros(1), ""), "above 0"),
        (lambda: Rate("copy", "f32", np.array([2.0, 1.0]), np.ones(2), ""), "ascending"),
        (lambda: make_device("GPU", precision="f16"), "device 'GPU' lacks its f16 matmul rate"),
        (lambda: make_device("GPU", sources={}), "does not say where its op_overhead_seconds comes from"),
        (lambda: make_device("GPU", rates=make_device("GPU").rates * 2), "two f32 matmul rates"),
        (lambda: make_target("CPU", "CPU"), "names a device twice"),
        (lambda: replace(make_target("CPU"), devices=()), "has no devices"),
        (lambda: replace(make_target("CPU"), devices=(make_device("GPU"),)), "transfers of CPU"),
    ],
)
def test_a_contradicting_target_is_refused(make, sentence):
    with pytest.raises(TargetError, match=sentence):
        make()


def test_a_target_survives_its_file_bit_by_bit(tmp_path):
    target = make_target("GPU", "CPU")
    save_target(target, tmp_path / "target.json")
    assert_same(load_target(tmp_path / "target.json"), target)


def test_a_file_is_laid_out_for_people():
    """As deep as brackets are open, and what holds plain values alone on a line of its own."""
    target = make_target("GPU", "CPU")
    depth, whole = 0, 0
    for line in target_text(target).splitlines():
        text = line.strip()
        value = text.rstrip(",")
        depth -= value in ("]", "}")
        assert len(line) - len(text) == depth, line
        if value.startswith("{") and value != "{":
            json.loads(value)
            whole += 1
        depth += value.endswith(("[", "{"))
    assert depth == 0
    rates = sum(len(device.rates) for device in target.devices)
    assert whole == rates + len(target.transfers.samples) + len(target.samples)


def test_devices_are_resolved_by_name():
    target = make_target("GPU", "CPU")
    assert target.resolve_devices() == ("GPU", "CPU")
    assert target.resolve_devices("CPU, GPU") == ("CPU", "GPU")
    assert target.resolve_devices(["CPU"]) == ("CPU",)
    with pytest.raises(TargetError, match="has no device 'NPU'; it has GPU, CPU"):
        target.resolve_devices("NPU")
    with pytest.raises(TargetError, match="'CPU' is listed twice"):
        target.resolve_devices("CPU,CPU")


def test_a_file_that_contradicts_itself_is_one_sentence_that_names_it(tmp_path):
    path = tmp_path / "target.json"
    save_target(make_target("GPU", "CPU"), path)
    whole = path.read_text()
    for change, sentence in (
        (lambda d: d.update(devices=[]), "has no devices|must hold 0"),
        (lambda d: d["devices"][0].update(rates=[]), "lacks its f32 matmul rate"),
        (lambda d: d["transfers"].update(latency=[[0.0]]), "'latency' must hold 2 rows, not 1"),
        (lambda d: d["transfers"].update(launch_seconds=[0.0]), "'launch_seconds' must hold 2 numbers"),
        (
            lambda d: d["transfers"]["samples"][0].update(tensor_bytes=2**63 + 1),
            "'tensor_bytes'.* 9223372036854775809",
        ),
    ):
        document = json.loads(whole)
        change(document)
        path.write_text(json.dumps(document))
        with pytest.raises(TargetError, match=sentence) as raised:
            load_target(path)
        assert str(raised.value).startswith(str(path))


def test_an_unknown_name_lists_the_catalogue(tmp_path):
    with pytest.raises(TargetError, match=r"no target profile 'laptop'.*core-ultra-7-155h"):
        load_target("laptop")
    with pytest.raises(OutputError):
        save_target(make_target("CPU"), tmp_path / "missing" / "target.json")


@pytest.mark.parametrize("name", catalogue())
def test_the_catalogue_says_that_nothing_was_measured(name):
    target = load_target(name)
    assert "not measured" in target.name
    assert not target.is_measured
    assert target.fingerprint == ""
    for device in target.devices:
        assert all("not measured" in rate.source for rate in device.rates)
    assert "not measured" in target.transfers_source


def test_the_catalogue_holds_the_papers_machine_and_a_laptop_with_three_devices():
    assert load_target("i9-12900k-flex-170").device_names == ("GPU", "CPU")
    assert load_target("core-ultra-7-155h").device_names == ("GPU", "NPU", "CPU")


def test_a_generic_target_scales_with_the_threads_that_the_core_gives(unequal_pair):
    target = generic_target(unequal_pair, ("XCPU", "CPU"))
    one, two = target.device("XCPU"), target.device("CPU")
    for op_class in OP_CLASSES:  # XCPU has one thread, CPU two
        speeds = [device.rate(op_class).per_second[0] for device in (one, two)]
        assert speeds[1] == pytest.approx(2 * speeds[0])
        assert "assumed" in one.rate(op_class).source
    assert one.full_name == unequal_pair.get_property("CPU", "FULL_DEVICE_NAME")
    assert not target.is_measured


@pytest.mark.parametrize(
    ("allowed", "precision", "share"),
    [
        ("", "f32", 1),
        ("avx2", "f32", 1 / 2),
        ("SSE41", "f32", 1 / 4),
        ("AVX512_CORE_BF16", "f32", 1),
        ("AVX512_CORE_BF16", "bf16", 1 / 2),
        ("AVX512_CORE_VNNI", "bf16", 1 / 4 / 40),
    ],
)
def test_a_generic_target_counts_on_no_more_than_the_environment_allows(
    monkeypatch, allowed, precision, share
):
    told = {"flags": "avx2 avx512f avx512_bf16 amx_tile amx_bf16", "cpu MHz": "2500"}
    monkeypatch.setattr("ov_autoplace.devices.conditions.cpu_information", lambda: told)
    peaks = []
    for setting in (allowed, "ALL"):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", setting)
        target = generic_target(ov.Core(), ("CPU",), {"INFERENCE_PRECISION_HINT": precision})
        peaks.append(target.devices[0].rate("matmul").per_second[0])
    assert peaks[0] / peaks[1] == pytest.approx(share)


def test_instructions_for_a_precision_speed_up_products_of_matrices_alone(monkeypatch):
    told = {"flags": "avx2 avx512f avx512_bf16 avx512_fp16 amx_tile amx_bf16", "cpu MHz": "2500"}
    monkeypatch.setattr("ov_autoplace.devices.conditions.cpu_information", lambda: told)
    f32, bf16, f16 = (
        generic_target(ov.Core(), ("CPU",), {"INFERENCE_PRECISION_HINT": precision}).devices[0]
        for precision in ("f32", "bf16", "f16")
    )
    for op_class, faster in (("matmul", True), ("convolution", True), ("depthwise", False)):
        speeds = [device.rate(op_class).per_second[0] for device in (f16, f32, bf16)]
        assert (speeds[0] < speeds[1] < speeds[2]) == faster
        assert (len(set(speeds)) == 1) != faster


def test_vectors_of_avx_512_take_two_cycles_before_zen_5(monkeypatch):
    peaks = []
    for maker, family, sets in (
        ("AuthenticAMD", "26", "avx2 avx512f"),
        ("GenuineIntel", "6", "avx2 avx512f"),
        ("AuthenticAMD", "25", "avx2 avx512f"),
        ("AuthenticAMD", "25", "avx2"),
    ):
        told = {"vendor_id": maker, "cpu family": family, "flags": sets, "cpu MHz": "2500"}
        for module in ("devices.conditions", "cost.generic_target"):
            monkeypatch.setattr(f"ov_autoplace.{module}.cpu_information", lambda told=told: told)
        target = generic_target(ov.Core(), ("CPU",), {"INFERENCE_PRECISION_HINT": "f32"})
        peaks.append(target.devices[0].rate("matmul").per_second[0])
    np.testing.assert_allclose(np.array(peaks) / peaks[0], [1, 1, 0.5, 0.5])


def test_threads_have_to_be_woken_for_every_op(unequal_pair):
    one, two = generic_target(unequal_pair, ("XCPU", "CPU")).devices
    assert two.op_overhead_seconds - one.op_overhead_seconds == pytest.approx(1.6e-6)
    assert "2 threads" in two.sources["op_overhead_seconds"]


def test_a_profile_on_fewer_threads_waits_less_and_works_longer():
    device = make_device(
        "CPU",
        op_overhead_seconds=10e-6,
        threads=16,
        synchronisation_seconds=2e-6,
        sources={**make_device("CPU").sources, "synchronisation_seconds": "measured"},
    )
    half, one = device.on_threads(8), device.on_threads(1)
    assert half.op_overhead_seconds == pytest.approx(8e-6)
    assert one.op_overhead_seconds == pytest.approx(2e-6)  # four doublings from 1 to 16
    size = np.array([1e4])
    speeds = [d.rate("matmul", "f32").at(size)[0] for d in (device, half, one)]
    assert speeds[0] / speeds[1] == pytest.approx(2**0.7)
    assert speeds[0] / speeds[2] == pytest.approx(16**0.7)


def test_where_a_profile_has_its_synchronisation_from_must_be_told():
    with pytest.raises(TargetError, match="does not say where its synchronisation_seconds comes from"):
        make_device("CPU", threads=2, synchronisation_seconds=1e-6)


def test_a_profile_need_not_know_threads(tmp_path):
    path = tmp_path / "target.json"
    sources = {**make_device("CPU").sources, "synchronisation_seconds": "measured"}
    device = make_device("CPU", threads=8, synchronisation_seconds=1e-6, sources=sources)
    save_target(replace(make_target("CPU"), devices=(device,)), path)
    assert load_target(path).device("CPU").threads == 8
    document = json.loads(path.read_text())
    for key in ("threads", "synchronisation_seconds"):
        del document["devices"][0][key]
    path.write_text(json.dumps(document))
    old = load_target(path).device("CPU")
    assert (old.threads, old.synchronisation_seconds) == (0, 0.0)


def test_a_generic_target_needs_devices_that_exist():
    with pytest.raises(DeviceError, match="there is no device 'GPU'"):
        generic_target(ov.Core(), ("GPU",))
