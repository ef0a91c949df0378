"""Collecting on this machine: small networks, a real CPU."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import openvino as ov
import pytest

from collected import collect_little, profile, target
from command_line import gated_unit
from ov_autoplace.cost.samples import CostSamples, Setting
from ov_autoplace.devices.names import core_with
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure import collect as collecting
from ov_autoplace.measure.collect import NamedModel, collect
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
    """Nothing takes long."""
    collect_little(monkeypatch)


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

    def undisturbed(core, places, references):
        return [replace(p, setting=replace(p.setting, reference_seconds=1e-3)) for p in places]

    monkeypatch.setattr(collecting, "_undisturbed", undisturbed)
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


def test_a_slow_spell_while_the_reference_ran_is_not_what_others_are_compared_with(core):
    class Slow:
        """Half as fast in its first 20 calls."""

        calls = 0

        def run(self, count, warmup=0):
            self.calls += 1
            return np.full(count, 2e-3 if self.calls <= 20 else 1e-3)

    setting = Setting("CPU", "CPU", (target(profile(1)), target(profile(1))), math.inf)
    place = collecting._Place(setting, "CPU", {})
    (found,) = collecting._undisturbed(core, [place], {"CPU": Slow()})
    assert found.setting.reference_seconds == pytest.approx(1e-3)
    assert collecting._undisturbed(core, [], {}) == []


@pytest.mark.parametrize("fastest", [0, 1, 2])
def test_a_slow_spell_while_a_device_is_calibrated_counts_for_nothing(core, tmp_path, monkeypatch, fastest):
    """Calibrations and looks at the reference come in turns; the machine is at its fastest in one of them."""
    speeds = [1.0 if look == fastest else 0.5 for look in range(3)]
    monkeypatch.setattr(collecting, "_LOOKS", len(speeds))
    calibrations, looks = defaultdict(list), iter(speeds)

    def calibrated(core, devices, *, properties, **how):
        own = calibrations[properties.get("INFERENCE_NUM_THREADS")]
        own.append(target(profile(1, speeds[len(own)])))
        return own[-1]

    monkeypatch.setattr(collecting, "calibrate", calibrated)

    def looked(ran, **how):
        turns = [np.full(5, 1e-3 / next(looks))]
        return dict.fromkeys(ran, turns)

    monkeypatch.setattr(collecting, "time_in_turns", looked)
    found = collect((), tmp_path / "costs.npz", core, ("CPU",))
    assert found.settings
    for setting, own in zip(found.settings, calibrations.values(), strict=True):
        assert len(own) == len(speeds)
        kept = setting.targets[0].devices[0].rates[0]
        assert kept.per_second == own[fastest].devices[0].rates[0].per_second
        assert setting.reference_seconds == 1e-3


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
