from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ov_autoplace.errors import PlacementError
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.layouts import Layout
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.targets import EVERY_OBJECTIVE, RandomTargets, random_task
from ov_autoplace.training.teachers import canonical, teach
from random_tables import random_table


def problems(objective, groups, devices, count, limited=0.0):
    targets = replace(EVERY_OBJECTIVE, limits=((objective, limited),), unsupported=0.0, estimate=0.0)
    made = []
    for seed in range(count):
        workload = random_workload(RANDOM_FAMILIES[seed % len(RANDOM_FAMILIES)], groups, seed)
        task = random_task(workload, np.random.default_rng((7, seed)), targets, devices, objective)
        made.append(Problem.of(task.true, objective=objective))
    return made


@pytest.mark.parametrize(
    ("objective", "limited", "within"),
    [("hetero", 0.0, 1.02), ("hetero", 1.0, 1.05), ("overlap", 0.0, 1.05), ("rate", 0.0, 1.05)],
)
def test_teachers_come_near_to_the_best_of_all_placements(objective, limited, within):
    ratios = []
    for problem in problems(objective, 7, 3, 12, limited):
        every = np.array(list(product(range(3), repeat=len(problem.units))), dtype=np.int32)
        every = every[[problem.units.fits(row) for row in every]]
        try:
            answer, bound = teach(problem)
        except PlacementError:
            continue  # packing counts results as if none were freed, so some that fit are not found
        best = float(problem.evaluator.latencies(every).min())
        seconds = float(problem.evaluator.latencies([answer])[0])
        assert problem.units.fits(answer)
        assert bound <= best * (1 + 1e-9)
        ratios.append(seconds / best)
    assert len(ratios) >= 8
    assert np.mean(ratios) < within


def test_a_thorough_answer_is_no_slower():
    for problem in problems("overlap", 30, 4, 4):
        quick, thorough = (teach(problem, thorough)[0] for thorough in (False, True))
        seconds = problem.evaluator.latencies([quick, thorough])
        assert seconds[1] <= seconds[0] * (1 + 1e-9)


def test_a_teacher_answers_the_same_twice():
    for objective in ("hetero", "overlap", "rate"):
        first, second = (teach(problems(objective, 20, 4, 1, 1.0)[0])[0] for _ in range(2))
        assert first.tolist() == second.tolist()


def test_labels_do_not_depend_on_which_copy_is_which():
    workload = random_workload("random_layered", 20, 1)
    plain = RandomTargets(estimate=0.0, unsupported=0.0)
    kinds = random_task(workload, np.random.default_rng(5), plain, 2).true
    problem = Problem.of(Layout((0, 0, 0, 1, 1)).laid_out(kinds))
    rng = np.random.default_rng(0)
    for _ in range(20):
        device = rng.integers(5, size=len(problem.units)).astype(np.int32)
        renamed = np.concatenate([rng.permutation(3), 3 + rng.permutation(2)]).astype(np.int32)
        label = canonical(problem, device)
        assert label.tolist() == canonical(problem, renamed[device]).tolist()
        seconds = problem.evaluator.latencies([device, label])
        assert seconds[0] == pytest.approx(seconds[1], rel=1e-12)


@pytest.mark.parametrize("objective", ["hetero", "overlap", "rate"])
def test_no_teacher_asks_the_policy_that_is_there_already(
    monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    def refused(self: PolicyRunner, graph: object) -> None:
        raise AssertionError("a policy was asked")

    monkeypatch.setattr(PolicyRunner, "scores", refused)
    table = random_table(92_100, groups=12, devices=3, constrained=False)
    for thorough in (False, True):
        teach(Problem.of(table, objective=objective), thorough)
