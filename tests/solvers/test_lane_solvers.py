"""Lanes that work at once: where branches go, and the bound against all placements of small random graphs."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.plan.simulator import parts_of, simulate, simulate_batch
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve, solve_problem
from ov_autoplace.solvers.list_schedulers import LIST_SCHEDULERS, heft_assignment
from ov_autoplace.solvers.overlap_bound import overlap_bound
from ov_autoplace.solvers.tasks import TaskGraph, piece_seconds, task_graphs
from random_tables import legal_assignments, make_table, random_table

TOLERANCE = 1 + 1e-9
LAUNCH, HAND_OVER = 6e-6, 8e-6


def bound_of(table: CostTable) -> float:
    problem = Problem.of(table, objective="overlap")
    return overlap_bound(problem, next(task_graphs(problem)))


def towers(count: int, depth: int, seconds: float = 20e-6) -> CostTable:
    """So many chains between a stem and a join, on two lanes of a processor."""
    tensors, join = [], 1 + count * depth
    for tower in range(count):
        first = 1 + tower * depth
        tensors += [(g, 4e3, [g + 1]) for g in range(first, first + depth - 1)]
        tensors.append((first + depth - 1, 4e3, [join]))
    tensors.insert(0, (0, 4e3, [1 + tower * depth for tower in range(count)]))
    table = make_table(
        np.full((join + 1, 1), seconds), tensors, devices=("CPU",), launch_seconds=np.array([LAUNCH])
    )
    return with_lanes(table, "CPU", 2)


@pytest.mark.seeds(300)
def test_no_placement_is_below_the_bound(seed: int) -> None:
    random = np.random.default_rng((seed, 17))
    lanes = int(random.integers(2, 4))
    groups = int(random.integers(3, 10 if lanes == 2 else 7))
    table = random_table(seed + 300_000, groups, lanes, constrained=bool(seed % 2))
    table = replace(table, corun_factor=float(random.choice([1.0, 1.05])))
    legal = legal_assignments(table)
    if len(legal):
        optimum = simulate_batch(table, legal, objective="overlap").min()
        assert 0.2 * optimum < bound_of(table) <= optimum * TOLERANCE


@pytest.mark.parametrize(("count", "depth"), [(2, 16), (2, 5), (4, 8), (6, 10)])
def test_towers_go_to_both_lanes_in_a_few_submodels(count: int, depth: int) -> None:
    table = towers(count, depth)
    placement = solve(table, objective="overlap")
    schedule = simulate(table, placement, "overlap")
    assert schedule.subgraphs == 4  # stem, two times its half of the towers, join
    half = count // 2 * depth * 20e-6
    # The join is where the half is that started a hand-over later, so that it waits for no other.
    most = 2 * 20e-6 + half * table.corun_factor + 3 * LAUNCH + HAND_OVER
    assert most - HAND_OVER < placement.latency_seconds <= most * TOLERANCE
    assert placement.latency_seconds <= placement.lower_bound_seconds * 1.25


def test_branches_that_are_shorter_than_a_hand_over_stay_on_one_lane() -> None:
    table = towers(2, 2, seconds=3e-6)
    placement = solve(table, objective="overlap")
    assert simulate(table, placement, "overlap").subgraphs == 1
    assert placement.latency_seconds == solve(table, "single", objective="overlap").latency_seconds


def test_the_bound_knows_that_a_stem_cannot_be_shared() -> None:
    # Stem 10, four branches of 6 on two equal lanes for nothing, join 5: the optimum is the bound.
    table = make_table(
        np.repeat([[10.0], [6.0], [6.0], [6.0], [6.0], [5.0]], 2, axis=1),
        [(0, 0.0, [1, 2, 3, 4]), *[(g, 0.0, [5]) for g in range(1, 5)]],
    )
    assert bound_of(table) == pytest.approx(10 + 12 + 5)
    assert solve(table, objective="overlap").latency_seconds == pytest.approx(27)
    slowed = replace(table, corun_factor=1.25)
    assert bound_of(slowed) == pytest.approx(10 + 12 * 1.25 + 5)


def test_the_bound_spreads_work_over_unequal_lanes_like_the_linear_program() -> None:
    # 30 groups that take 2 on one lane and 6 on the other: 22.5 of them here, 7.5 there, 45 seconds.
    table = make_table([[2.0, 6.0]] * 30)
    assert bound_of(table) == pytest.approx(45.0)
    # What suits one lane each is no work for the other.
    table = make_table([[1.0, 9.0]] * 10 + [[9.0, 1.0]] * 10)
    assert bound_of(table) == pytest.approx(10.0)


def test_the_bound_counts_ways_with_their_cheapest_transfers() -> None:
    # Each group runs on one lane only: a chain of three crosses twice, with launches.
    inf = np.inf
    table = make_table(
        [[1.0, inf], [inf, 1.0], [1.0, inf]],
        [(0, 2.0, [1]), (1, 3.0, [2])],
        launch_seconds=np.array([0.5, 0.25]),
    )
    assert bound_of(table) == pytest.approx(3 + 2 + 3 + 0.5 + 0.25 + 0.5)
    assert solve(table, objective="overlap").latency_seconds == pytest.approx(9.25)


def test_bounds_of_stretches_between_bottlenecks_add_up() -> None:
    # Three times four branches of 6 between bottlenecks of 1: each time two lanes share 24.
    tensors, seconds = [], [1.0]
    for block in range(3):
        first = 5 * block
        tensors.append((first, 0.0, [first + 1, first + 2, first + 3, first + 4]))
        tensors += [(first + branch, 0.0, [first + 5]) for branch in range(1, 5)]
        seconds += [6.0] * 4 + [1.0]
    table = make_table(np.repeat(np.array(seconds)[:, None], 2, axis=1), tensors)
    assert bound_of(table) == pytest.approx(4 + 3 * 12)
    # A tensor past a bottleneck changes nothing; behind an output before the end there is no bottleneck.
    skip = make_table(table.op_seconds, [*tensors, (2, 0.0, [12])])
    assert bound_of(skip) == pytest.approx(4 + 3 * 12)
    stray = make_table([*table.op_seconds.tolist(), [30.0, 30.0]], [*tensors, (0, 0.0, [16])])
    assert bound_of(stray) == pytest.approx(1 + (75 + 30) / 2)


@pytest.mark.seeds(40)
def test_tasks_hold_every_piece_once_and_wait_for_none_behind_them(seed: int) -> None:
    table = random_table(seed, 40, 2)
    try:
        problem = Problem.of(table, objective="overlap")
    except PlacementError:
        return  # groups that must share a device have none in common
    total = np.where(parts_of(table).runs[:, None], piece_seconds(problem), 0.0).sum(axis=0)
    size = 1 + len(table)
    for tasks in task_graphs(problem):
        assert len(tasks) < size
        size = len(tasks)
        assert all(p < task for task in range(size) for p, _ in tasks.producers[task])
        assert tasks.seconds.sum(axis=0) == pytest.approx(total)
        members = np.concatenate(tasks.units)
        assert sorted(members.tolist()) == list(range(len(problem.units)))


def test_solvers_are_known_by_objective() -> None:
    table = towers(2, 3)
    with pytest.raises(
        OptionError, match=r"unknown solver of the objective overlap 'mincut'; .*valid: single"
    ):
        solve(table, "mincut", objective="overlap")
    with pytest.raises(OptionError, match="unknown solver of the objective hetero 'heft'"):
        solve(table, "heft")
    with pytest.raises(OptionError, match="unknown objective 'overlapped'; did you mean 'overlap'"):
        solve(table, objective="overlapped")
    with pytest.raises(OptionError, match="unknown objective"):
        Problem.of(table, objective="latency")


def test_a_thousand_groups_are_placed_with_a_bound() -> None:
    table = random_table(9, 1_000, 2, constrained=False)
    placement = solve(table, objective="overlap")
    single = solve(table, "single", objective="overlap")
    assert placement.lower_bound_seconds <= placement.latency_seconds < single.latency_seconds


@pytest.mark.parametrize("solver", ["heft", "portfolio"])
def test_where_the_time_is_up_one_list_schedule_is_enough(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem.of(random_table(5, groups=40, devices=3, constrained=False), objective="overlap")
    calls: list[int] = []

    def counted(problem: Problem, tasks: TaskGraph) -> np.ndarray | None:
        calls.append(len(tasks))
        return heft_assignment(problem, tasks)

    monkeypatch.setitem(LIST_SCHEDULERS, "heft", counted)
    hurried = solve_problem(problem, solver, SolverOptions(time.monotonic() - 1.0))
    assert calls == [40]
    answer = solve_problem(problem, solver, SolverOptions())
    assert len(calls) > 2, "without a deadline there are coarser graphs too"
    assert answer.latency_seconds <= hurried.latency_seconds * TOLERANCE
