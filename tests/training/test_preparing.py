"""From a model to a cost table within a budget, on real devices."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from command_line import two_layers
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target import Target
from ov_autoplace.errors import ModelError, ProfilingError, TrainingError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.training.finetuning import preparing as module
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.preparing import Machine, PreparedModel, prepare

AMPLE = 3600.0


@pytest.fixture
def machine(unequal_pair: ov.Core) -> Machine:
    return Machine(unequal_pair, ("XCPU", "CPU"))


@pytest.fixture
def model() -> ov.Model:
    return two_layers([1, 3, 16, 16])


def prepared(model: ov.Model, machine: Machine, seconds: float = AMPLE, **options) -> PreparedModel:
    result = prepare(model, machine, TuningBudget(seconds), **options)
    result.session.close()
    return result


def assumed(machine: Machine) -> Target:
    """Hand-over costs that nobody measured, which spares seconds."""
    return generic_target(machine.core, machine.devices)


def test_costs_are_profiled_and_cover_every_op(machine, model):
    machine.target = assumed(machine)
    result = prepared(model, machine)
    assert result.table.source == "profiled"
    assert result.table.devices == ("XCPU", "CPU")
    assert result.table.members is not None
    placed = {name for group in result.table.members for name in group}
    assert placed == {op.get_friendly_name() for op in result.model.get_ops()}
    assert result.compile_seconds > 0


def test_hand_overs_are_measured_once_for_all_models(machine, model, monkeypatch):
    calls = []
    measure = module.measure_transfers

    def counting(*arguments, **options):
        calls.append(arguments)
        return measure(*arguments, **options)

    monkeypatch.setattr(module, "measure_transfers", counting)
    first, second = prepared(model, machine), prepared(model, machine)
    assert len(calls) == 1
    assert first.digest == second.digest
    assert (first.table.launch_seconds > 0).any()


def test_where_there_is_no_time_to_measure_costs_are_estimated(machine, model, monkeypatch, caplog):
    monkeypatch.setattr(module, "_PROFILE_SECONDS", AMPLE)
    with caplog.at_level(logging.WARNING, logger="ov_autoplace"):
        result = prepared(model, machine)
    assert result.table.source == "analytic"
    assert "costs are estimated instead" in caplog.text


def test_where_there_is_little_time_only_the_probes_are_left_out(machine, model, monkeypatch, caplog):
    monkeypatch.setattr(module, "_PROBE_RUNS", 1e9)
    machine.target = assumed(machine)
    compiled: list[frozenset[str]] = []
    compile_placement = ProfilingSession.compile_placement

    def counting(session, device_of, **options):
        compiled.append(frozenset(device_of.values()))
        return compile_placement(session, device_of, **options)

    monkeypatch.setattr(ProfilingSession, "compile_placement", counting)
    result = prepared(model, machine)
    assert result.table.source == "profiled"
    assert all(len(devices) == 1 for devices in compiled)
    assert "estimated instead" not in caplog.text


def test_measuring_hand_overs_is_given_up_when_it_takes_too_long(machine, model, monkeypatch, caplog):
    steps = []

    def slow(profiler, devices, *, sizes, progress):
        for step in range(1000):
            steps.append(step)
            progress(step, 1000, "")
        raise AssertionError("was not given up")

    monkeypatch.setattr(module, "measure_transfers", slow)
    monkeypatch.setattr(module, "_LARGEST_SHARE", 0.0)
    for _ in range(2):
        assert prepared(model, machine).table.source == "profiled"
    assert len(steps) == 1
    assert caplog.text.count("it is estimated instead") == 1


def test_what_an_earlier_run_knew_is_not_measured_again(machine, model, monkeypatch):
    machine.target = assumed(machine)
    first = prepared(model, machine)
    monkeypatch.setattr(module, "profile_session", None)
    assert prepared(model, machine, known=first.table).table is first.table


def test_a_budget_that_is_spent_is_told(machine, model):
    with pytest.raises(TrainingError, match="does not suffice to compile the model for each device"):
        prepare(model, machine, TuningBudget(1e-9))


def test_ctrl_c_is_noticed(machine, model):
    budget = TuningBudget(AMPLE)
    budget.stop_requested = True
    with pytest.raises(KeyboardInterrupt):
        prepare(model, machine, budget)


def failing(monkeypatch: pytest.MonkeyPatch, *devices: str) -> None:
    """Let the model not compile on these devices, whatever they say they support."""
    compile_device = ProfilingSession.compile_device

    def compile_or_fail(session, device, **options):
        if device in devices:
            raise ProfilingError(f"the model cannot be timed on {device}: out of luck")
        return compile_device(session, device, **options)

    monkeypatch.setattr(ProfilingSession, "compile_device", compile_or_fail)


def test_devices_that_fail_are_left_out_while_two_are_left(unequal_pair, model, monkeypatch, caplog):
    machine = Machine(unequal_pair, ("XCPU", "CPU", "YCPU"))
    plugin = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"
    unequal_pair.register_plugin(str(plugin), "YCPU")
    machine.target = assumed(machine)
    failing(monkeypatch, "YCPU")
    assert prepared(model, machine).table.devices == ("XCPU", "CPU")
    assert "YCPU is left out" in caplog.text


def test_one_device_that_works_leaves_nothing_to_tune(machine, model, monkeypatch):
    failing(monkeypatch, "XCPU")
    with pytest.raises(ModelError, match="only CPU can run the model, so there is nothing to tune"):
        prepared(model, machine)


def test_no_device_that_works_is_their_failure(machine, model, monkeypatch):
    failing(monkeypatch, "XCPU", "CPU")
    with pytest.raises(ProfilingError, match="out of luck"):
        prepared(model, machine)


def test_names_that_occur_twice_are_told_apart(machine, model):
    machine.target = assumed(machine)
    for op in model.get_ops():
        if op.get_type_name() == "Convolution":
            op.set_friendly_name("same")
    names = [op.get_friendly_name() for op in prepared(model, machine).model.get_ops()]
    assert len(names) == len(set(names))
    assert np.sum([op.get_friendly_name() == "same" for op in model.get_ops()]) == 2
