from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from examples import JUDGED, judged_problem
from held_out_machines import held_out_task
from held_out_shapes import shape_workload
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import solve
from ov_autoplace.solvers.pooling import copies_of
from ov_autoplace.training.random_graphs import random_workload
from problems.judged import best_seconds
from sections.policy import Judged, _remarks, judge, summary

ROW = Judged("a", 100, 2.0, 1.1, 1.05, 1.05, 1.0, 1.2, np.nan, np.nan, 10.0, 20.0)
WORKLOAD = shape_workload("stencil", 40, 1)


def task(seed, devices, objective, limited=False):
    return held_out_task(WORKLOAD, np.random.default_rng(seed), devices, objective, limited)


def test_figures_of_a_kind_are_what_they_are_called() -> None:
    rows = [
        ROW,
        replace(ROW, policy=2.5, single=2.4, lists=5.0),  # worse than the best single device
        replace(ROW, policy=np.nan),  # no answer
        replace(
            ROW, single=1.005, policy=1.0, portfolio=1.0, alone=1.0, lists=0.5, groups=60
        ),  # nothing to place, small
    ]
    found = summary(("hetero", 2, False), rows)
    assert (found["problems"], found["matters"]) == (4, 3)
    assert (found["worse_than_single"], found["missed"]) == (1, 1)
    assert found["mean"] == pytest.approx((0.1 + 1.5 + 0.0) / 3)
    assert found["worst"] == pytest.approx(1.5)
    assert found["portfolio"] == pytest.approx(0.15 / 4)
    # Where it matters portfolio loses 5 % each time, and the policy is never better than it.
    assert found["both"] == pytest.approx(1.0)
    assert found["over_lists"] == pytest.approx(np.sqrt(1.1 / 1.2 * 2.5 / 5.0))


def test_many_requests_are_held_to_the_bound_of_mixtures() -> None:
    kind = ("rate", 3, False)
    problem = judged_problem([[random_workload("random_layered", 9, 4)]], 3, 0, kind)
    row = judge(problem, problem.best_seconds, "")
    table = problem.task.true
    on_one = table.op_seconds.sum(axis=0) + table.launch_seconds
    side_by_side = table.corun_factor / (1 / on_one).sum()
    assert row.mixture <= side_by_side * (1 + 1e-9)
    assert row.bound <= row.mixture <= row.best
    text, whole, *_ = _remarks({kind: [replace(row, mixture=1.02, policy=1.5, best=1.25, bound=1.0)]})
    assert "the mixture above the bound, %: 2" in text
    assert "is 50.00 % above the bound, the best known 25.00 %" in whole


@pytest.mark.parametrize("kind", JUDGED)
def test_machines_are_of_the_kind_asked_for(kind: tuple[str, int, bool]) -> None:
    objective, devices, limited = kind
    tables = [task(seed, devices, objective, limited).true for seed in range(8)]
    assert {table.num_devices for table in tables} == {devices}
    problems = [Problem.of(table, objective=objective) for table in tables]
    assert all(problem.units.has_memory_limits for problem in problems) == limited
    if objective == "overlap":
        assert all(table.lane_devices is not None for table in tables)
    if devices == 8:
        assert any(len(copies_of(problem.units)) < 8 for problem in problems)


def test_a_judged_problem_depends_on_its_number_alone() -> None:
    families = [[WORKLOAD], [random_workload("random_tree", 12, 0)]]
    first, again, next_one = (judged_problem(families, 3, n, ("overlap", 3, False)) for n in (0, 0, 1))
    assert first.assignment.tolist() == again.assignment.tolist()
    assert first.best_seconds == again.best_seconds
    assert (first.task.family, next_one.task.family) == ("stencil", "random_tree")


def test_nobody_is_better_than_the_best_known() -> None:
    problem = judged_problem([[random_workload("random_layered", 9, 4)]], 3, 0, ("overlap", 2, False))
    known = best_seconds(problem, 0.2)
    table = problem.task.true
    exact = solve(table, "exact", objective="overlap").latency_seconds
    assert known == pytest.approx(exact)
    row = judge(problem, known, "")
    assert row.portfolio == pytest.approx(exact)
    assert row.best == pytest.approx(exact)
