"""Solvers and the bound of the objective ``overlap`` against all legal placements of small random graphs."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import reference_overlap as reference
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.placement.simulator import parts_of, simulate, simulate_batch
from ov_autoplace.problem.overlap_bound import overlap_bound, piece_seconds
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SOLVERS_OF, exact, overlap, solve
from ov_autoplace.solvers.heft import heft_assignment
from ov_autoplace.solvers.overlap import LIST_SCHEDULERS
from ov_autoplace.solvers.registry import solve_problem
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import TaskGraph, task_graphs
from random_tables import legal_assignments, make_table, random_table

TOLERANCE = 1 + 1e-9
SOLVERS = sorted(set(SOLVERS_OF["overlap"]) - {"oracle"})  # see test_oracle
LAUNCH, HAND_OVER = 6e-6, 8e-6


def small_table(seed: int) -> CostTable:
    """Unequal devices, or lanes that are copies of one another."""
    random = np.random.default_rng((seed, 17))
    lanes = int(random.integers(2, 4))
    groups = int(random.integers(3, 10 if lanes == 2 else 7))
    table = random_table(seed + 300_000, groups, lanes if seed % 3 else 1, constrained=bool(seed % 2))
    if seed % 3 == 0:
        capacity = np.full(1, np.inf)  # brute force counts each lane's memory by itself
        table = with_lanes(replace(table, memory_capacity=capacity), "DEV0", lanes, hand_over_seconds=0.4)
    return replace(table, corun_factor=float(random.choice([1.0, 1.05])))


@pytest.mark.seeds(300, cost=4)
def test_bound_optimum_and_answers_stand_in_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(seed)
    searches = seed % 6 < 2
    if searches:
        # Few placements are all tried; here the search has to find the way itself.
        monkeypatch.setattr(overlap, "is_tiny", lambda problem: False)
    legal = legal_assignments(table)
    if not len(legal):
        for solver in SOLVERS:
            with pytest.raises(PlacementError):
                solve(table, solver, objective="overlap")
        return
    latencies = simulate_batch(table, legal, objective="overlap")
    optimum = latencies.min()
    assert overlap_bound(Problem.of(table, objective="overlap")) <= optimum * TOLERANCE
    alone = (legal == legal[:, :1]).all(axis=1)
    best_single = latencies[alone].min(initial=np.inf)
    for solver in SOLVERS:
        if (solver == "single" and not alone.any()) or (solver == "local" and not searches):
            continue
        if solver in LIST_SCHEDULERS and seed % 30:  # see test_list_schedules
            continue
        placement = solve(table, solver, objective="overlap")
        matches = np.flatnonzero((legal == placement.assignment).all(axis=1))
        assert len(matches) == 1, f"{solver} breaks a constraint"
        assert placement.latency_seconds == latencies[matches[0]]
        assert placement.latency_seconds >= optimum
        if solver != "greedy":
            assert placement.latency_seconds <= best_single * TOLERANCE
        if placement.lower_bound_seconds is not None:
            assert placement.lower_bound_seconds <= optimum * TOLERANCE
        if solver == "exact":
            assert placement.latency_seconds == pytest.approx(optimum, rel=1e-9)
            assert placement.lower_bound_seconds == placement.latency_seconds


@pytest.mark.seeds(25)
def test_exact_is_the_best_of_all_placements_of_the_plain_simulator(seed: int) -> None:
    table = random_table(seed + 600_000, 6, 2)
    legal = legal_assignments(table)
    if not len(legal):
        return
    optimum = min(reference.latency_seconds(table, lanes.tolist()) for lanes in legal)
    assert solve(table, "exact", objective="overlap").latency_seconds == pytest.approx(optimum, rel=1e-9)


def test_portfolio_without_enumeration_is_nearly_always_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "is_tiny", lambda problem: False)
    ratios = []
    for seed in range(10):
        table = random_table(seed + 700_000, 8, 2, constrained=False)
        optimum = simulate_batch(table, legal_assignments(table), objective="overlap").min()
        ratios.append(solve(table, objective="overlap").latency_seconds / optimum)
    print(f"{np.isclose(ratios, 1.0).mean():.3f} optimal, worst {max(ratios):.4f}")
    assert np.isclose(ratios, 1.0).mean() >= 0.9
    assert max(ratios) <= 1.1


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
    assert overlap_bound(Problem.of(table, objective="overlap")) == pytest.approx(10 + 12 + 5)
    assert solve(table, objective="overlap").latency_seconds == pytest.approx(27)
    slowed = replace(table, corun_factor=1.25)
    assert overlap_bound(Problem.of(slowed, objective="overlap")) == pytest.approx(10 + 12 * 1.25 + 5)


def test_the_bound_spreads_work_over_unequal_lanes_like_the_linear_program() -> None:
    # 30 groups that take 2 on one lane and 6 on the other: 22.5 of them here, 7.5 there, 45 seconds.
    table = make_table([[2.0, 6.0]] * 30)
    assert overlap_bound(Problem.of(table, objective="overlap")) == pytest.approx(45.0)
    # What suits one lane each is no work for the other.
    table = make_table([[1.0, 9.0]] * 10 + [[9.0, 1.0]] * 10)
    assert overlap_bound(Problem.of(table, objective="overlap")) == pytest.approx(10.0)


def test_the_bound_counts_ways_with_their_cheapest_transfers() -> None:
    # Each group runs on one lane only: a chain of three crosses twice, with launches.
    inf = np.inf
    table = make_table(
        [[1.0, inf], [inf, 1.0], [1.0, inf]],
        [(0, 2.0, [1]), (1, 3.0, [2])],
        launch_seconds=np.array([0.5, 0.25]),
    )
    problem = Problem.of(table, objective="overlap")
    assert overlap_bound(problem) == pytest.approx(3 + 2 + 3 + 0.5 + 0.25 + 0.5)
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
    assert overlap_bound(Problem.of(table, objective="overlap")) == pytest.approx(4 + 3 * 12)
    # A tensor past a bottleneck changes nothing; behind an output before the end there is no bottleneck.
    skip = make_table(table.op_seconds, [*tensors, (2, 0.0, [12])])
    assert overlap_bound(Problem.of(skip, objective="overlap")) == pytest.approx(4 + 3 * 12)
    stray = make_table([*table.op_seconds.tolist(), [30.0, 30.0]], [*tensors, (0, 0.0, [16])])
    assert overlap_bound(Problem.of(stray, objective="overlap")) == pytest.approx(1 + (75 + 30) / 2)


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


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_call_gives_the_same_placement(solver: str) -> None:
    table = towers(2, 4) if solver == "exact" else random_table(5, 30, 3, constrained=False)
    first, second = (solve(table, solver, objective="overlap", seed=7) for _ in range(2))
    assert first.assignment.tolist() == second.assignment.tolist()
    assert (first.latency_seconds, first.solver) == (second.latency_seconds, solver)


@pytest.mark.seeds(8, cost=15)
def test_portfolio_is_never_slower_than_other_solvers_on_larger_graphs(seed: int) -> None:
    table = random_table(seed, 150, 3, constrained=False)
    portfolio = solve(table, objective="overlap")
    for other in ("single", "greedy", "chains"):
        assert (
            portfolio.latency_seconds <= solve(table, other, objective="overlap").latency_seconds * TOLERANCE
        )
    assert portfolio.lower_bound_seconds <= portfolio.latency_seconds


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != "single"])
def test_lanes_of_a_device_share_its_memory(solver: str) -> None:
    # Two lanes of a processor with room for 50 of 80 bytes, and a slow device with room for all.
    table = make_table(
        [[1.0, 9.0]] * 8,
        [(g, 0.0, [g + 1]) for g in range(7)],
        devices=("CPU", "GPU"),
        memory_bytes=np.full(8, 10.0),
    )
    table = with_lanes(table, "CPU", 2, hand_over_seconds=0.1)
    free = solve(table, solver, objective="overlap")
    assert (free.assignment != 2).all()
    placement = solve(table, solver, objective="overlap", memory_limits={"CPU": 50.0})
    assert (placement.assignment != 2).sum() <= 5
    assert (solve(table, solver, objective="overlap", memory_limits={"CPU#1": 0.0}).assignment == 2).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_pins_name_a_device_or_one_of_its_lanes(solver: str) -> None:
    table = with_lanes(make_table([[1.0, 2.0]] * 4, [(0, 0.0, [1, 2, 3])], devices=("CPU", "GPU")), "CPU", 2)
    pins = {"*": "CPU"} if solver == "single" else {"group1": "CPU#1", "group2": "GPU", "group3": "CPU"}
    placement = solve(table, solver, objective="overlap", pins=pins)
    lanes = placement.assignment.tolist()
    if solver == "single":
        assert set(lanes) <= {0, 1}
    else:
        assert (lanes[1], lanes[2]) == (1, 2)
        assert lanes[3] in (0, 1)


def test_solvers_are_known_by_objective() -> None:
    table = towers(2, 3)
    with pytest.raises(
        OptionError, match=r"unknown solver of the objective overlap 'mincut'; .*valid: single"
    ):
        solve(table, "mincut", objective="overlap")
    with pytest.raises(OptionError, match="unknown solver 'heft'"):
        solve(table, "heft")
    with pytest.raises(OptionError, match="unknown objective 'overlapped'; did you mean 'overlap'"):
        solve(table, objective="overlapped")
    with pytest.raises(OptionError, match="unknown objective"):
        Problem.of(table, objective="latency")


def test_a_graph_too_large_for_the_exact_solver_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_MOST_OPEN", 200)
    with pytest.raises(
        PlacementError, match=r"placements of .* units still to try; use the solver portfolio"
    ):
        solve(random_table(1, 30, 3, constrained=False), "exact", objective="overlap")


def test_a_time_limit_is_used_and_never_makes_the_answer_worse() -> None:
    table = random_table(4, 80, 3, constrained=False)
    short, long = (solve(table, objective="overlap", time_limit=t).latency_seconds for t in (0.05, 0.5))
    assert long <= short * TOLERANCE
    assert long <= solve(table, "chains", objective="overlap").latency_seconds * TOLERANCE


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
    answers = [
        solve_problem(problem, solver, SolverOptions(deadline)) for deadline in (time.monotonic() - 1.0, None)
    ]
    assert calls[0] == 40
    assert len(calls) > 2, "without a deadline there are coarser graphs too"
    assert calls.count(40) == 2
    assert answers[1].latency_seconds <= answers[0].latency_seconds * TOLERANCE


def test_the_default_solver_is_no_slower_than_the_policy() -> None:
    for seed in range(2):
        table = random_table(seed + 77_000, groups=20, devices=3, constrained=False)
        policy = solve(table, "policy", objective="overlap")
        portfolio = solve(table, objective="overlap")
        assert portfolio.latency_seconds <= policy.latency_seconds * TOLERANCE


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "single"])
def test_a_model_that_no_lanes_hold_together_is_refused_by_every_solver(solver):
    """Each task fits on each of twelve devices, and two of them on none."""
    table = make_table(
        np.ones((14, 12)),
        [(g, 1.0, [g + 1]) for g in range(13)],
        memory_bytes=np.full(14, 30.0),
        memory_capacity=np.full(12, 40.0),
    )
    with pytest.raises(PlacementError, match="does not fit"):
        solve(table, solver, objective="overlap")
