"""The search that moves whole groups of units: where it ends, and who begins there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.unit_costs import UnitCosts
from ov_autoplace.solvers import search, solve
from ov_autoplace.solvers.cuts import descend
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.list_schedulers import heft_assignment
from ov_autoplace.solvers.regions import region_proposals, regions_moved
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import task_graphs
from random_tables import make_table, random_table

GRAPHS = Path(__file__).parents[1] / "data" / "dnn-partitioning"


def moved(table: CostTable, objective: str = "hetero", **options: object) -> tuple[Problem, np.ndarray]:
    problem = Problem.of(table, objective=objective)
    return problem, regions_moved(UnitCosts.of(problem), **options)


def seconds_of(problem: Problem, *found: np.ndarray) -> np.ndarray:
    return problem.evaluator.latencies(list(found))


@pytest.mark.parametrize("devices", [2, 5])
def test_it_is_no_slower_than_one_device_or_where_cuts_and_a_walk_along_the_graph_lead(devices: int) -> None:
    better = 0
    for seed in range(2):
        problem, answer = moved(random_table(seed + 300, groups=40, devices=devices, constrained=False))
        single = problem.evaluator.best(list(problem.evaluator.singles().values()))
        cut = descend(problem.units.with_launches(1.0), single, SolverOptions())
        walked = greedy_assignment(problem.table, problem.units)
        found, *others = seconds_of(problem, answer, single, cut, walked)
        assert found <= min(others) * (1 + 1e-9)
        better += found < min(others) * (1 - 1e-6)
    assert better, "nothing is searched around where it begins"


def test_units_leave_together_where_single_ones_would_cut_many_tensors() -> None:
    # A chain of pairs with heavy tensors inside each and light ones between them; half of it has to leave.
    tensors = [(u, 100.0 if u % 2 == 0 else 0.01, [u + 1]) for u in range(11)]
    table = make_table(
        [[1, 1.1]] * 12, tensors, memory_bytes=np.ones(12), memory_capacity=np.array([6.0, np.inf])
    )
    _, answer = moved(table)
    assert np.bincount(answer, minlength=2)[0] <= 6
    assert (answer[::2] == answer[1::2]).all()


@pytest.mark.parametrize("objective", ["hetero", "overlap", "rate"])
@pytest.mark.seeds(4, cost=30)
def test_no_answer_is_slower_than_its_start(seed: int, objective: str) -> None:
    table = random_table(seed + 8_000, groups=60, devices=3, constrained=False)
    good = solve(table, "portfolio", objective=objective)
    problem, answer = moved(table, objective, start=good.assignment)
    assert seconds_of(problem, answer)[0] <= good.latency_seconds * (1 + 1e-9)
    assert answer.tolist() == moved(table, objective, start=good.assignment)[1].tolist()


def test_on_lanes_the_answer_is_no_slower_than_the_best_list_schedule() -> None:
    better = 0
    for seed in range(4):
        table = random_table(seed + 9_000, groups=24, devices=4, constrained=False)
        problem, answer = moved(table, "overlap")
        schedules = [heft_assignment(problem, tasks) for tasks in task_graphs(problem)]
        found, *others = seconds_of(problem, answer, *(s for s in schedules if s is not None))
        assert found <= min(others) * (1 + 1e-9)
        better += found < min(others) * (1 - 1e-6)
    assert better > 1, "nothing is searched around the schedule"


def test_memory_that_results_share_one_after_the_other_is_used() -> None:
    # Of 24 results in a row, each device has room for two and for a third of the weights: in this order, and
    # only in pieces of eight, everything fits. Crossing costs as much as two operations.
    chain = [(g, 10.0, [g + 1]) for g in range(23)]
    table = make_table(
        np.ones((24, 3)),
        chain,
        transfer_latency=np.full((3, 3), 2.0),
        transfer_seconds_per_byte=np.zeros((3, 3)),
        memory_bytes=np.full(24, 11.0),
        result_bytes=np.full(24, 10.0),
        memory_capacity=np.full(3, 8.0 + 2 * 10.0),
    )
    problem, answer = moved(table)
    for assignment in (answer, solve(table).assignment):
        assert seconds_of(problem, assignment)[0] == pytest.approx(24.0 + 2 * 2.0)
        assert (held_bytes(table, assignment) <= table.memory_capacity).all()


@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.json")), ids=lambda path: path.stem)
def test_a_graph_of_the_public_format_is_placed(path: Path) -> None:
    problem, answer = moved(load_dnn_partitioning(path, accelerators=1, memory=False))
    found, *singles = seconds_of(problem, answer, *problem.evaluator.singles().values())
    assert found <= min(singles) * (1 + 1e-9)


@pytest.mark.parametrize("objective", ["overlap", "rate"])
def test_the_default_solver_begins_there_where_nothing_is_exact(
    monkeypatch: pytest.MonkeyPatch, objective: str
) -> None:
    asked = []
    monkeypatch.setattr(search, "region_proposals", lambda *a: asked.append(1) or region_proposals(*a))
    table = random_table(92_000, groups=20, devices=3, constrained=False)
    problem, answer = moved(table, objective)
    assert solve(table, objective=objective).latency_seconds <= seconds_of(problem, answer)[0] * (1 + 1e-9)
    assert asked
    asked.clear()
    solve(table, "local", objective=objective)
    assert not asked


def test_nothing_is_proposed_where_nothing_fits() -> None:
    table = make_table(np.ones((3, 2)), memory_bytes=np.full(3, 2.0), memory_capacity=np.ones(2))
    problem = Problem.of(table, objective="overlap")
    assert region_proposals(problem, SolverOptions()) == []
    with pytest.raises(PlacementError):
        regions_moved(UnitCosts.of(problem))
