"""From a model to a cost table within a budget, on real devices."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from command_line import two_layers
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import save_target
from ov_autoplace.decide import costs
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import ModelError, ProfilingError, TrainingError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.transfers import measure_transfers
from ov_autoplace.training.finetuning import preparing as module
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.preparing import ProfiledModel, profiled_model

AMPLE = 3600.0


@pytest.fixture
def machine(unequal_pair: ov.Core) -> Machine:
    return Machine(unequal_pair, ("XCPU", "CPU"))


@pytest.fixture
def model() -> ov.Model:
    return two_layers([1, 3, 16, 16])


def prepared(model: ov.Model, machine: Machine, seconds: float = AMPLE, **options) -> ProfiledModel:
    result = profiled_model(model, machine, TuningBudget(seconds), **options)
    result.session.close()
    return result


def assuming(machine: Machine, folder: Path) -> Machine:
    """A machine whose transfers nobody measures, which spares seconds."""
    save_target(generic_target(machine.core, machine.devices), folder / "target.json")
    return replace(machine, options=PlacerOptions(target=str(folder / "target.json")))


def test_costs_are_profiled_and_cover_every_op(machine, model, tmp_path):
    machine = assuming(machine, tmp_path)
    result = prepared(model, machine)
    assert result.table.source == "profiled"
    assert result.table.devices == ("XCPU", "CPU")
    assert result.table.members is not None
    placed = {name for group in result.table.members for name in group}
    assert placed == {op.get_friendly_name() for op in result.prepared.model.get_ops()}
    assert result.compile_seconds > 0


def test_transfers_are_measured_once_for_all_models(machine, model, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # Properties that no other test has, since this process remembers what it measured too.
    options = PlacerOptions(properties={"CPU_DENORMALS_OPTIMIZATION": True})
    machine = replace(machine, options=options)
    calls = []

    def counting(*arguments, **options):
        calls.append(arguments)
        return measure_transfers(*arguments, **options)

    monkeypatch.setattr(costs, "measure_transfers", counting)
    first = prepared(model, machine)
    measured = len(calls)
    second = prepared(model, machine)
    assert len(calls) == measured > 0
    assert first.digest == second.digest
    assert (first.table.launch_seconds > 0).any()


def test_where_there_is_no_time_to_measure_costs_are_estimated(machine, model, monkeypatch, caplog):
    monkeypatch.setattr(module, "_PROFILE_SECONDS", AMPLE)
    with caplog.at_level(logging.WARNING, logger="ov_autoplace"):
        result = prepared(model, machine)
    assert result.table.is_estimate
    assert "costs are estimated instead" in caplog.text


def test_where_there_is_little_time_only_the_probes_are_left_out(
    machine, model, monkeypatch, caplog, tmp_path
):
    monkeypatch.setattr(module, "_PROBE_RUNS", 1e9)
    machine = assuming(machine, tmp_path)
    compiled: list[frozenset[str]] = []
    compile_split = ProfilingSession.compile_split

    def counting(session, plan, **options):
        compiled.append(frozenset(plan.devices))
        return compile_split(session, plan, **options)

    monkeypatch.setattr(ProfilingSession, "compile_split", counting)
    result = prepared(model, machine)
    assert result.table.source == "profiled"
    assert all(len(devices) == 1 for devices in compiled)
    assert "estimated instead" not in caplog.text


def test_what_an_earlier_run_knew_is_not_measured_again(machine, model, monkeypatch, tmp_path):
    machine = assuming(machine, tmp_path)
    first = prepared(model, machine)
    monkeypatch.setattr(module, "profile_session", None)
    assert prepared(model, machine, known=first.table).table is first.table


def test_a_budget_that_is_spent_is_told(machine, model):
    with pytest.raises(TrainingError, match="does not suffice to compile the model for each device"):
        profiled_model(model, machine, TuningBudget(1e-9))


def test_ctrl_c_is_noticed(machine, model):
    budget = TuningBudget(AMPLE)
    budget.stop_requested = True
    with pytest.raises(KeyboardInterrupt):
        profiled_model(model, machine, budget)


def failing(monkeypatch: pytest.MonkeyPatch, *devices: str) -> None:
    """Let the model not compile on these devices, whatever they say they support."""
    compile_device = ProfilingSession.compile_device

    def compile_or_fail(session, device, **options):
        if device in devices:
            raise ProfilingError(f"the model cannot be timed on {device}: out of luck")
        return compile_device(session, device, **options)

    monkeypatch.setattr(ProfilingSession, "compile_device", compile_or_fail)


def test_devices_that_fail_are_left_out_while_two_are_left(
    unequal_pair, model, monkeypatch, caplog, tmp_path
):
    machine = Machine(unequal_pair, ("XCPU", "CPU", "YCPU"))
    plugin = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"
    unequal_pair.register_plugin(str(plugin), "YCPU")
    machine = assuming(machine, tmp_path)
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


def test_names_that_occur_twice_are_told_apart(machine, model, tmp_path):
    machine = assuming(machine, tmp_path)
    for op in model.get_ops():
        if op.get_type_name() == "Convolution":
            op.set_friendly_name("same")
    names = [op.get_friendly_name() for op in prepared(model, machine).prepared.model.get_ops()]
    assert len(names) == len(set(names))
    assert np.sum([op.get_friendly_name() == "same" for op in model.get_ops()]) == 2
