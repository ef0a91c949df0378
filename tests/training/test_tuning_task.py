"""What a tuning run knows of one model: corrections, constraints, and the way through the log and back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ov_autoplace.errors import TrainingError
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.files import check_line
from ov_autoplace.training.finetuning.task import ZERO_SHOT, Event, TuningTask, placement_text
from ov_autoplace.training.finetuning.trials import ReferenceRaces, Trial
from training.chains import chain_seconds, chain_table, fast_and_slow
from training.scripted_devices import ScriptedSession, scripted_model, scripted_trial

pytestmark = pytest.mark.torch

SECONDS = fast_and_slow([0, 0, 0, 1, 1, 1], ratio=4.0)
TRUE = chain_table(SECONDS)
BELIEVED = chain_table(SECONDS, transfer=20.0)  # crossing devices looks forty times as dear as it is
MIX = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)


def task_of(believed=BELIEVED, true=TRUE, memory=None, pins=None, noise: float = 0.0) -> TuningTask:
    session = ScriptedSession(true, noise=noise)
    races = ReferenceRaces(session, believed, TuningBudget(1e6), 12, 0)  # type: ignore[arg-type]
    return TuningTask("net", scripted_model(believed, session, "digest", memory, pins), races)


def raced(task: TuningTask, *trials: Trial) -> list[Event]:
    """Race the devices and then some placements, as a run does."""
    ran = task.races.race_singles(task.singles)
    task.reference = ran[0]
    events = []
    for trial in [*ran, *task.races.race(task.reference, trials)]:
        task.adopt(trial)
        events.append(Event("measured", trial, tuple(trial.samples), tuple(trial.reference)))
    return events


def test_costs_are_corrected_by_what_was_measured():
    task = task_of()
    mix = scripted_trial("policy", MIX, task.predicted(MIX))
    assert task.score(MIX) > 1  # as profiled, the mix looks worse than a device
    raced(task, mix)
    task.correct()
    truth = chain_seconds(TRUE, MIX) / chain_seconds(TRUE, (0,) * 6)
    assert task.score(MIX) == pytest.approx(truth)  # measured
    other = np.array([0, 0, 1, 1, 1, 1], dtype=np.int32)
    predicted = task.predicted(other) / task.predicted(task.best_single.assignment)
    assert predicted == pytest.approx(chain_seconds(TRUE, other) / chain_seconds(TRUE, (0,) * 6), rel=0.2)
    assert task.predicted(other) < chain_seconds(BELIEVED, other) / 2


def test_corrections_do_not_add_up():
    task = task_of()
    raced(task, scripted_trial("policy", MIX))
    task.correct()
    once = task.corrected.op_seconds
    task.correct()
    assert np.array_equal(once, task.corrected.op_seconds)


def test_placements_are_numbered_in_the_order_in_which_they_were_measured():
    task = task_of()
    raced(task, scripted_trial("policy", MIX))
    assert sorted(trial.number for trial in task.trials.values()) == [1, 2, 3]
    assert task.measurements == 3
    task.adopt(task.trials[MIX.tobytes()])
    assert task.measurements == 3


def test_the_log_tells_everything_that_a_run_knew():
    task = task_of(noise=0.05)
    mix = scripted_trial(ZERO_SHOT, MIX)
    failed = scripted_trial("policy", 1 - MIX, 2.0, dropped="no such kernel")
    events = raced(task, mix)
    task.before = mix
    task.rounds = 3
    task.adopt(failed)
    events.append(Event("measured", failed))
    events += [
        Event("proposed", task.singles[0], note="policy"),
        Event("again", mix, tuple(mix.samples), tuple(mix.reference)),
        Event("confirmed", mix, note="twice"),
    ]
    mix.add(mix.samples, mix.reference)
    task.confirm(mix)
    lines = json.loads(json.dumps([task.line(event) for event in events]))

    again = task_of(noise=0.05)
    again.restore(lines)
    assert again.trials.keys() == task.trials.keys()
    for key, trial in task.trials.items():
        copy = again.trials[key]
        assert np.allclose(copy.samples, trial.samples, rtol=1e-12)
        assert copy.ratio == pytest.approx(trial.ratio)
        assert (copy.number, copy.name, copy.dropped) == (trial.number, trial.name, trial.dropped)
    assert again.reference is again.trials[task.reference.key]
    assert again.champion.key == task.champion.key
    assert again.before is not None
    assert again.before.key == mix.key
    assert again.rounds == 3
    assert again.trials[task.singles[0].key].proposed
    task.correct()
    assert np.allclose(again.corrected.op_seconds, task.corrected.op_seconds)


def test_a_refuted_champion_is_none_after_a_resume():
    task = task_of()
    mix = scripted_trial("policy", MIX)
    lines = [task.line(event) for event in raced(task, mix)]
    lines += [task.line(Event("confirmed", mix)), task.line(Event("refuted", mix))]
    again = task_of()
    again.restore(lines)
    assert again.champion is again.best_single
    assert again.trials[mix.key].refuted


def test_a_log_of_another_model_is_refused():
    task = task_of()
    lines = [task.line(event) for event in raced(task)]
    longer = chain_table(fast_and_slow([0] * 9))
    with pytest.raises(TrainingError, match="placements of another model than 'net'"):
        task_of(longer, longer).restore(lines)


def test_a_log_that_compares_with_a_device_that_is_not_here_is_refused():
    task = task_of()
    lines = [task.line(event) | {"reference": "NPU"} for event in raced(task)]
    with pytest.raises(TrainingError, match="compares 'net' with 'NPU'"):
        task_of().restore(lines)


def test_a_placement_on_a_device_beyond_all_is_of_another_model():
    task = task_of()
    lines = [task.line(event) | {"placement": "2" * len(task.table)} for event in raced(task)]
    with pytest.raises(TrainingError, match="placements of another model"):
        task_of().restore(lines)


def test_a_prediction_that_was_not_finite_comes_back_from_the_log():
    task = task_of()
    failed = scripted_trial("policy", MIX, np.inf, dropped="no such kernel")
    lines = [task.line(event) for event in [*raced(task), Event("measured", failed)]]
    lines[-1]["predicted_ms"] = None  # as the log's file has it
    again = task_of()
    again.restore(lines)
    assert again.trials[MIX.tobytes()].expected_seconds == np.inf


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "guessed"),
        ("ms", [0.0]),
        ("reference_ms", [1e300]),
    ],
)
def test_a_line_that_no_run_wrote_is_refused(key, value):
    task = task_of()
    line = json.loads(json.dumps(task.line(raced(task)[0])))
    check_line(line, "line 3")
    with pytest.raises(TrainingError, match=f"^line 3.*{'kind' if key == 'kind' else repr(key)}"):
        check_line(line | {key: value}, "line 3")
    del line[key]
    with pytest.raises(TrainingError, match=f"^line 3: '{key}'"):
        check_line(line, "line 3")


def test_pins_that_no_device_honours_leave_the_solver_to_compare_with():
    task = task_of(believed=TRUE, pins={"group0": "DEV0", "group5": "DEV1"})
    (only,) = task.singles
    assert tuple(only.assignment) == (0, 0, 0, 1, 1, 1)  # the optimum, found by trying everything
    assert not only.is_single
    assert task.single_name(only) == only.name


def test_a_device_that_is_too_small_is_no_rival():
    table = chain_table(SECONDS, memory_bytes=np.ones(6), memory_capacity=np.array([np.inf, np.inf]))
    task = task_of(table, table, memory={"DEV0": 3.0})
    assert [task.single_name(single) for single in task.singles] == ["DEV1"]


def test_placements_of_many_devices_are_text():
    many = scripted_trial("policy", [0, 9, 10, 61, 300])
    text = placement_text(many.assignment)
    assert len(text) == 5
    assert text.startswith("09")
    assert json.loads(json.dumps(text)) == text
