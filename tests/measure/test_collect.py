"""Collecting on this machine: small networks, a real CPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import openvino as ov
import pytest

from command_line import gated_unit
from ov_autoplace.cost.samples import CostSamples
from ov_autoplace.devices.names import core_with
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure import calibrate as calibrating
from ov_autoplace.measure import collect as collecting
from ov_autoplace.measure.collect import NamedModel, collect
from ov_autoplace.measure.microbenchmarks import benchmarks
from random_models import random_model

MOST_SLOWNESS = collecting._MOST_SLOWNESS


def models(count: int) -> Iterator[NamedModel]:
    for seed in range(count):
        yield NamedModel(f"random-{seed}", "random", random_model(seed))


@pytest.fixture
def core() -> ov.Core:
    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return core


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One precision, a size of each class of ops, and little time for each network, at any speed."""
    monkeypatch.setattr(collecting, "_MOST_SLOWNESS", np.inf)
    monkeypatch.setattr(collecting, "_FLOATS", frozenset({"f32"}))
    monkeypatch.setattr(collecting, "_COUNTING_SECONDS", 0.01)
    monkeypatch.setattr("ov_autoplace.measure.timing.SECONDS", 0.02)
    smallest = {benchmark.op_class: benchmark for benchmark in reversed(benchmarks())}
    monkeypatch.setattr(calibrating, "benchmarks", lambda **_: list(smallest.values()))


def test_what_was_collected_adds_up_and_is_kept(core, tmp_path):
    path = tmp_path / "costs.npz"
    collect(models(2), path, core, ("CPU",), label="as it is")
    found = CostSamples.load(path)
    assert [network.name for network in found.networks] == ["random-0", "random-1"]
    assert len(found.measurements) == 2 * len(found.settings)
    for setting in found.settings:
        assert "as it is" in setting.name
        assert "f32" in setting.name
    for m in found.measurements:
        ops = found.networks[m.network].ops
        launch = found.settings[m.setting].targets[0].transfers.launch_seconds[0]
        assert len(m.kernel_of) == len(ops)
        assert m.kernel_of.max() < len(m.kernel_seconds)
        assert m.kernel_seconds.sum() == pytest.approx(max(m.seconds - launch, 0.0), rel=1e-5)
        assert m.seconds > 0

    # An interrupted collection goes on where it was.
    before = {(m.network, m.setting): m.seconds for m in found.measurements}
    collect(models(3), path, core, ("CPU",), label="as it is")
    again = CostSamples.load(path)
    assert [network.name for network in again.networks][:2] == ["random-0", "random-1"]
    assert before.items() <= {(m.network, m.setting): m.seconds for m in again.measurements}.items()
    assert len(again.networks) == 3


def test_nothing_is_set_on_the_core_that_the_process_keeps(core, tmp_path):
    before = [str(core.get_property("CPU", key)) for key in ("INFERENCE_NUM_THREADS", "NUM_STREAMS")]
    kept = core_with().get_property("CPU", "INFERENCE_NUM_THREADS")
    found = collect(models(1), tmp_path / "costs.npz", core, ("CPU",), label="; at night")
    assert core_with().get_property("CPU", "INFERENCE_NUM_THREADS") == kept
    assert [str(core.get_property("CPU", key)) for key in ("INFERENCE_NUM_THREADS", "NUM_STREAMS")] == before
    assert len({setting.device for setting in found.settings}) == 1
    for setting in found.settings:
        assert setting.device == f"{setting.without_hour[0]}; at night"
        threads = {target.devices[0].threads for target in setting.targets}
        assert threads == {int(setting.name.split(" threads")[0].split(", ")[-1])}
        assert {target.devices[0].precision for target in setting.targets} == {"f32"}


def test_constants_are_no_ops_of_a_network(core, tmp_path):
    found = collect(models(1), tmp_path / "costs.npz", core, ("CPU",))
    graph = extract(random_model(0))
    assert "Constant" not in found.networks[0].ops.op_types
    assert len(found.networks[0].ops) < len(graph)
    assert found.networks[0].ops.flops.sum() == pytest.approx(graph.flops.sum(), rel=1e-6)


def test_what_a_device_refuses_is_left_out(core, tmp_path, monkeypatch):
    real = collecting.count_nodes
    calls = iter(range(100))

    def failing(*arguments: object) -> object:
        if next(calls) == 0:
            raise RuntimeError("the device is gone")
        return real(*arguments)

    monkeypatch.setattr(collecting, "count_nodes", failing)
    found = collect(models(2), tmp_path / "costs.npz", core, ("CPU",))
    assert [network.name for network in found.networks] == ["random-1"]


@pytest.mark.parametrize(("slowness", "kept"), [(1.25, True), (2.0, False)])
def test_times_are_those_at_the_speed_of_the_calibration(core, tmp_path, monkeypatch, slowness, kept):
    """The machine is slower after it was calibrated: by what counts, or by so much that nothing does."""
    monkeypatch.setattr(collecting, "_MOST_SLOWNESS", MOST_SLOWNESS)
    real = collecting.time_in_turns

    def slower(executables, **how):
        turns = real(executables, **how)
        fixed = {name: 1e-3 if name.startswith("reference") else 2e-3 for name in turns}
        return {name: [np.full(5, slowness * fixed[name])] * 6 for name in turns}

    monkeypatch.setattr(collecting, "time_in_turns", slower)
    monkeypatch.setattr(collecting, "_undisturbed", lambda ran, **looks: dict.fromkeys(ran, 1e-3))
    found = collect(models(1), tmp_path / "costs.npz", core, ("CPU",))
    assert bool(found.measurements) is kept
    for m in found.measurements:
        assert m.seconds == pytest.approx(2e-3)


def test_narrow_settings_come_first_and_each_before_its_own_reference(core, tmp_path, monkeypatch):
    real, turns = collecting.time_in_turns, []

    def seen(executables, **how):
        turns.append(list(executables))
        return real(executables, **how)

    monkeypatch.setattr(collecting, "time_in_turns", seen)
    found = collect(models(1), tmp_path / "costs.npz", core, ("CPU",))
    threads = [setting.targets[0].devices[0].threads for setting in found.settings]
    assert threads == sorted(threads)
    names = [setting.name for setting in found.settings]
    assert turns[-1] == [name for own in names for name in (own, f"reference of {own}")]


def test_no_network_is_begun_after_the_time(core, tmp_path):
    found = collect(models(5), tmp_path / "costs.npz", core, ("CPU",), seconds=0.0)
    assert found.networks == ()
    assert np.isfinite([t.transfers.launch_seconds[0] for s in found.settings for t in s.targets]).all()


@pytest.mark.parametrize(
    ("looks", "calibrations", "kept", "seconds"),
    [
        ([1e-3, 1e-3], 1, 1, 1e-3),
        ([2e-3, 1e-3, 1e-3], 2, 2, 1e-3),  # it was slow at first
        ([1e-3, 2e-3, 2e-3], 2, 2, 2e-3),  # it became slow, and stays so
        ([1e-3, 2e-3, 1.6e-3, 1e-3], 3, 2, 1.6e-3 * 1.25**0.5),  # the second is the steadiest
    ],
)
def test_a_device_is_calibrated_at_the_speed_that_its_times_are_compared_with(
    core, monkeypatch, looks, calibrations, kept, seconds
):
    made, told = [], iter(looks)

    def calibrated(core, devices, **how):
        made.append(len(made) + 1)
        return made[-1]

    monkeypatch.setattr(collecting, "calibrate", calibrated)
    monkeypatch.setattr(collecting, "_undisturbed", lambda ran, looks: dict.fromkeys(ran, next(told)))
    assert collecting._calibrated(core, "CPU", {}, {"reference": None}) == (kept, pytest.approx(seconds))
    assert len(made) == calibrations


def test_a_slow_spell_while_the_reference_ran_is_not_what_others_are_compared_with():
    class Slow:
        """Half as fast in its first 20 calls."""

        calls = 0

        def run(self, count, warmup=0):
            self.calls += 1
            return np.full(count, 2e-3 if self.calls <= 20 else 1e-3)

    assert collecting._undisturbed({"CPU": Slow()}) == {"CPU": pytest.approx(1e-3)}
    assert collecting._undisturbed({}) == {}


def test_what_was_calibrated_in_a_slow_spell_is_brought_to_the_speed_of_the_rest(core, tmp_path, monkeypatch):
    real, made = collecting.calibrate, []

    def calibrated(core, devices, **how):
        made.append(real(core, devices, **how))
        return made[-1]

    def undisturbed(ran, looks=4):
        return dict.fromkeys(ran, 2e-3 if looks == 1 else 1e-3)

    monkeypatch.setattr(collecting, "calibrate", calibrated)
    monkeypatch.setattr(collecting, "_undisturbed", undisturbed)
    found = collect((), tmp_path / "costs.npz", core, ("CPU",))
    for setting, target in zip(found.settings, made, strict=True):
        told = setting.targets[0]
        assert setting.reference_seconds == 1e-3
        assert told.transfers.launch_seconds == pytest.approx(target.transfers.launch_seconds / 2)
        assert told.devices[0].op_overhead_seconds == pytest.approx(target.devices[0].op_overhead_seconds / 2)
        assert told.devices[0].rates[0].per_second == pytest.approx(2 * target.devices[0].rates[0].per_second)


def test_a_gated_unit_is_left_out_where_it_would_crash_the_compiler(monkeypatch, tmp_path):
    """On one thread of a processor with AMX, in bf16; what remains is measured."""
    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "bf16"})
    monkeypatch.setattr(collecting, "_FLOATS", frozenset({"bf16"}))
    monkeypatch.setattr(collecting, "has_tiles", lambda: True)
    given = [NamedModel("gated", "", gated_unit()), NamedModel("plain", "", random_model(0))]
    found = collect(given, tmp_path / "costs.npz", core, ("CPU",))
    threads = {name: set() for name in ("gated", "plain")}
    for m in found.measurements:
        threads[found.networks[m.network].name].add(found.settings[m.setting].targets[0].devices[0].threads)
    assert threads["plain"] - threads["gated"] == {1}
