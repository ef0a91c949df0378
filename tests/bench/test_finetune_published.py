"""HSDAG's own protocol on measured latency: what is run, what is counted, and that it stops in time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import openvino as ov
import pytest

from command_line import two_layers
from harness.process import in_child
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.solvers import Problem
from ov_autoplace.training.finetuning.trials import Trial
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.targets import RandomTargets, random_task
from sections.finetune_runs import BudgetEndedError, MeasuredEnvironment, tune_as_published

EVALUATIONS = 25


def test_every_sample_is_an_evaluation_and_every_placement_is_run_once(tmp_path: Path) -> None:
    model, costs = tmp_path / "net.xml", tmp_path / "net.table.json"
    ov.save_model(two_layers([1, 3, 16, 16]), model, compress_to_fp16=False)
    what = {"model": str(model), "table": str(costs), "pair": "alias", "seed": 0, "budget": 300.0}

    result = in_child(tune_as_published, {**what, "evaluations": EVALUATIONS})

    lines, table = result["lines"], load_table(costs)
    assert result["stopped"] == "evaluations"
    assert result["best_single"] in table.devices
    asked = [line for line in lines if line["kind"] == "proposed" or line["source"] not in table.devices]
    # The likeliest placement is looked at besides, before and after.
    assert len(asked) == EVALUATIONS + 2
    run = [line["placement"] for line in lines if line["kind"] == "measured"]
    assert len(run) == len(set(run)) == max(line["measurement"] for line in lines)
    assert {line["placement"] for line in lines} == set(run)
    assert all(len(line["placement"]) == len(table) for line in lines)
    assert result["wall"] >= max(line["at_seconds"] for line in lines)


class Races:
    """Measures nothing but what it was told."""

    def __init__(self, ratios: dict[bytes, float]) -> None:
        self.ratios = ratios
        self.raced: list[bytes] = []
        self.bench = SimpleNamespace(keep_only=lambda trials: None)

    def race(self, reference: Trial | None, others: list[Trial]) -> None:
        for trial in others:
            self.raced.append(trial.key)
            if trial.key in self.ratios:
                trial.add(np.full(6, self.ratios[trial.key]), np.ones(6))


@pytest.fixture
def measured() -> tuple[MeasuredEnvironment, Races]:
    """Two devices; only the placement with unit 1 on the second of them is ever run, at half the time."""
    targets = RandomTargets(estimate=0.0, untyped=0.0, unsupported=0.0)
    table = random_task(
        random_workload("random_tree", 8, 0), np.random.default_rng(0), targets, devices=2
    ).true
    mix = np.zeros(len(table), dtype=np.int32)
    mix[1] = 1
    races, trials = Races({mix.tobytes(): 0.5}), {}
    problem = Problem.of(table)
    task = SimpleNamespace(
        problem=problem,
        groups_of=problem.units.to_groups,
        races=races,
        reference=None,
        known=lambda assignment: trials.get(assignment.tobytes()),
        adopt=lambda trial: trials.setdefault(trial.key, trial),
        trial=lambda name, assignment: Trial(name, 1.0, 0, assignment=assignment),
        relative=lambda trial: trial.ratio.median,
        line=lambda event: {"kind": event.kind, "samples": len(event.samples)},
    )
    return MeasuredEnvironment(task, SimpleNamespace(spent=1.0)), races  # type: ignore[arg-type]


def test_a_known_placement_is_answered_without_running_it(
    measured: tuple[MeasuredEnvironment, Races],
) -> None:
    environment, races = measured
    mix = np.zeros((2, len(environment.problems[0].units)), dtype=np.int64)
    mix[:, 1] = 1

    seconds = environment.latencies([mix])

    assert seconds == pytest.approx(np.full((1, 2), 0.5 * environment.best_single[0]))
    assert len(races.raced) == 1
    assert [(line["kind"], line["samples"]) for line in environment.lines] == [
        ("measured", 6),
        ("proposed", 0),
    ]
    assert environment.rewards(seconds) == pytest.approx(np.full((1, 2), np.log(2)))


def test_a_placement_for_which_there_is_no_time_ends_the_search(
    measured: tuple[MeasuredEnvironment, Races],
) -> None:
    environment, _ = measured
    with pytest.raises(BudgetEndedError):
        environment.latencies([np.zeros((1, len(environment.problems[0].units)), dtype=np.int64)])
    assert environment.lines == []
