"""What every solver of every objective keeps, against all legal placements of small random tables."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

import reference_hetero
import reference_overlap
from ov_autoplace._base import releases
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import OBJECTIVES, simulate, simulate_batch
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SOLVERS_OF, SolverOptions, solve, solve_problem
from ov_autoplace.solvers.oracle import oracle
from ov_autoplace.solvers.search import best_of, greedy_proposals
from random_tables import legal_assignments, make_table, random_table

TOLERANCE = 1 + 1e-9
PROVEN = 2e-5  # twice what the solver oracle calls proven
ALL = [
    pytest.param(objective, solver, marks=[pytest.mark.oracle] if solver == "oracle" else [])
    for objective in OBJECTIVES
    for solver in SOLVERS_OF[objective]
]
REFUSES = {
    "single": lambda problem: not problem.evaluator.singles(),
    "mincut": lambda problem: len(problem.units.usable_devices) > 2,
}
"""Which problems that have an answer a solver does not take; the others take every one."""
EVERY = pytest.mark.parametrize(("objective", "solver"), ALL)


@pytest.fixture(autouse=True)
def _oracles_begin_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the greedy placement, the oracle has to find the optimum itself."""
    for solvers in SOLVERS_OF.values():
        monkeypatch.setitem(solvers, "oracle", oracle(best_of(greedy_proposals)))


def small_table(seed: int) -> CostTable:
    """Unequal devices or lanes that are copies, with missing ops, groups that share a device, and limits."""
    rng = np.random.default_rng((seed, 17))
    devices = int(rng.integers(2, 4))
    groups = int(rng.integers(3, 9 if devices == 2 else 7))
    table = random_table(seed + 300_000, groups, devices if seed % 4 else 1, constrained=bool(seed % 3))
    if seed % 4 == 0:
        capacity = np.full(1, np.inf)  # brute force counts each lane's memory by itself
        table = with_lanes(replace(table, memory_capacity=capacity), "DEV0", devices, hand_over_seconds=0.4)
    mix, corun = (0.4, 1.05) if seed % 5 == 0 else (0.0, 1.0)
    return replace(table, mix_seconds=mix, corun_factor=corun)


def answer_of(problem: Problem, solver: str, **options: float | None) -> Placement:
    return solve_problem(problem, solver, SolverOptions(**options))


def plain_seconds(table: CostTable, devices: list[int], objective: str) -> float:
    """What an objective says of a placement, in plain Python."""
    if objective == "overlap":
        return reference_overlap.latency_seconds(table, devices)
    if objective == "hetero":
        return reference_hetero.latency_seconds(table, devices)[0]
    busy = reference_hetero.busy_seconds(table, devices)
    return float(busy.max()) * (table.corun_factor if (busy > 0).sum() > 1 else 1.0)


@EVERY
@pytest.mark.seeds(120, cost=3)
def test_answers_are_legal_and_simulated_and_bounds_hold(
    objective: str, solver: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each of HETERO's sets of rules in turn.
    monkeypatch.setattr(releases, "installed", lambda: "2026.2.1" if seed % 7 < 3 else "2026.3.0")
    table = small_table(seed)
    pins = {"group1": table.devices[-1]} if seed % 6 == 1 else {}
    legal = legal_assignments(table, pins)
    tries_all = seed % 2 == 0  # else the search has to find the way itself
    try:
        problem = Problem.of(table, pins=pins, objective=objective)
        answer = answer_of(problem, solver, enumerated=4096 if tries_all else 1)
    except (PlacementError, OptionError):
        assert not len(legal) or REFUSES[solver](problem)
        return
    seconds = simulate_batch(table, legal, objective=objective)
    own = np.flatnonzero((legal == answer.assignment).all(axis=1))
    assert len(own) == 1, "the answer breaks a constraint"
    assert answer.latency_seconds == seconds[own[0]]
    plain = plain_seconds(table, answer.assignment.tolist(), objective)
    assert answer.latency_seconds == pytest.approx(plain, rel=1e-9)
    optimum = seconds.min()
    if answer.lower_bound_seconds is not None:
        assert answer.lower_bound_seconds <= optimum * TOLERANCE
    alone = (legal == legal[:, :1]).all(axis=1)
    if solver != "greedy":
        assert answer.latency_seconds <= seconds[alone].min(initial=np.inf) * TOLERANCE
    if solver in ("exact", "oracle") or (solver == "portfolio" and tries_all):
        assert answer.latency_seconds == pytest.approx(optimum, rel=PROVEN)
        assert answer.lower_bound_seconds == pytest.approx(optimum, rel=PROVEN)


@pytest.mark.parametrize(
    ("objective", "solver", "devices", "groups", "tables", "equal_at_least", "worst"),
    [
        ("hetero", "portfolio", 2, 10, 30, 0.95, 1.1),
        ("hetero", "portfolio", 3, 7, 20, 0.95, 1.2),
        ("hetero", "portfolio", 5, 5, 10, 0.9, 1.001),
        ("overlap", "portfolio", 2, 8, 10, 0.9, 1.1),
        ("overlap", "heft", 2, 9, 6, 0.8, 1.1),
        ("overlap", "critical", 2, 9, 6, 0.8, 1.1),
        ("rate", "portfolio", 2, 8, 10, 0.9, 1.1),
    ],
)
def test_what_is_searched_is_nearly_always_optimal(
    objective: str, solver: str, devices: int, groups: int, tables: int, equal_at_least: float, worst: float
) -> None:
    ratios = []
    for seed in range(1000, 1000 + tables):
        table = random_table(seed, groups, devices, constrained=seed % 2 == 0 and objective == "hetero")
        legal = legal_assignments(table)
        if len(legal):
            optimum = simulate_batch(table, legal, objective=objective).min()
            answer = answer_of(Problem.of(table, objective=objective), solver, enumerated=1)
            ratios.append(answer.latency_seconds / optimum)
    print(f"{np.isclose(ratios, 1.0).mean():.3f} optimal, worst {max(ratios):.4f}")
    assert len(ratios) > tables / 2
    assert np.isclose(ratios, 1.0).mean() >= equal_at_least
    assert max(ratios) <= worst


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.seeds(12, cost=10)
def test_portfolio_is_never_slower_than_simple_solvers_on_larger_tables(seed: int, objective: str) -> None:
    table = random_table(seed, 150, 2 + seed % 2, constrained=False)
    portfolio = solve(table, objective=objective)
    assert portfolio.lower_bound_seconds <= portfolio.latency_seconds
    for other in {"single", "greedy", "chains"} & set(SOLVERS_OF[objective]):
        simple = solve(table, other, objective=objective)
        assert portfolio.latency_seconds <= simple.latency_seconds * TOLERANCE


@EVERY
def test_the_same_call_gives_the_same_placement(objective: str, solver: str) -> None:
    groups = 8 if solver in ("exact", "oracle") else 40
    table = random_table(5, groups, devices=2, constrained=False)
    first, second = (answer_of(Problem.of(table, objective=objective), solver, seed=7) for _ in range(2))
    assert first.assignment.tolist() == second.assignment.tolist()
    assert (first.latency_seconds, first.solver) == (second.latency_seconds, solver)
    assert first.latency_seconds == simulate(table, first, objective).seconds_per_request


@pytest.mark.parametrize(("objective", "solver"), [p for p in ALL if p.values[1] in ("local", "portfolio")])
def test_a_time_limit_ends_the_search_and_is_used(
    monkeypatch: pytest.MonkeyPatch, objective: str, solver: str
) -> None:
    problem = Problem.of(random_table(4, 80, 3, constrained=False), objective=objective)
    simulated = []
    simulating = Evaluator._simulate
    monkeypatch.setattr(
        Evaluator,
        "_simulate",
        lambda self, batch, limit: simulated.append(len(batch)) or simulating(self, batch, limit),
    )
    answers, counts = [], []
    for seconds in (-1.0, None, 1.0):
        deadline = None if seconds is None else time.monotonic() + seconds
        simulated.clear()
        answers.append(answer_of(replace(problem), solver, deadline=deadline))
        counts.append(sum(simulated))
    assert counts[0] < counts[1] / 2
    single = solve(problem.table, "single", objective=objective)
    for answer in answers:
        assert answer.latency_seconds <= min(single.latency_seconds, answers[0].latency_seconds) * TOLERANCE


@EVERY
def test_one_device_and_one_group_are_solved_and_no_group_is_refused(objective: str, solver: str) -> None:
    assert solve(make_table([[2.0]]), solver, objective=objective).latency_seconds == pytest.approx(2.0)
    with pytest.raises(OptionError, match="no groups"):
        solve(make_table(np.empty((0, 2))), solver, objective=objective)


@EVERY
def test_pins_name_a_device_or_one_of_its_lanes(objective: str, solver: str) -> None:
    table = with_lanes(make_table([[1.0, 2.0]] * 4, [(0, 0.0, [1, 2, 3])], devices=("CPU", "GPU")), "CPU", 2)
    alone = solver in REFUSES
    pins = {"*": "CPU"} if alone else {"group1": "CPU#1", "group2": "GPU", "group3": "CPU"}
    lanes = solve(table, solver, objective=objective, pins=pins).assignment.tolist()
    if alone:
        assert set(lanes) <= {0, 1}
    else:
        assert (lanes[1], lanes[2]) == (1, 2)
        assert lanes[3] in (0, 1)


@EVERY
def test_lanes_of_a_device_share_its_memory(objective: str, solver: str) -> None:
    # Two lanes of a processor with room for 50 of 80 bytes, and a slow device with room for all.
    table = make_table(
        [[1.0, 9.0]] * 8,
        [(g, 0.0, [g + 1]) for g in range(7)],
        devices=("CPU", "GPU"),
        memory_bytes=np.full(8, 10.0),
    )
    table = with_lanes(table, "CPU", 2, hand_over_seconds=0.1)
    if solver == "mincut":
        table = replace(table, op_seconds=np.where([True, False, True], table.op_seconds, np.inf))
    on_lanes = [
        (answer_of(Problem.of(table, limits, objective=objective), solver).assignment != 2).sum()
        for limits in ({}, {"CPU": 50.0}, {"CPU#0": 0.0})
    ]
    assert on_lanes[0] == 8
    assert on_lanes[1] <= (0 if solver == "single" else 5)
    assert on_lanes[2] == 0


@pytest.mark.parametrize(("objective", "solver"), [p for p in ALL if p.values[1] not in REFUSES])
def test_a_tight_packing_is_found(objective: str, solver: str) -> None:
    # 7 + 5 | 6 + 6 | 8 + 4 is the only way up to order; filling the fastest device first fails.
    sizes = np.array([4.0, 5.0, 6.0, 6.0, 7.0, 8.0])
    table = make_table(np.tile([1.0, 2.0, 3.0], (6, 1)), memory_bytes=sizes, memory_capacity=np.full(3, 12.0))
    placement = solve(table, solver, objective=objective)
    assert np.bincount(placement.assignment, sizes).tolist() == [12.0, 12.0, 12.0]


@EVERY
def test_a_model_that_no_devices_hold_together_is_refused(objective: str, solver: str) -> None:
    """Each group fits on each of two devices, and two of them on none."""
    table = make_table(
        np.ones((4, 2)),
        [(g, 1.0, [g + 1]) for g in range(3)],
        memory_bytes=np.full(4, 30.0),
        memory_capacity=np.full(2, 40.0),
    )
    with pytest.raises(PlacementError, match="no single device" if solver == "single" else "does not fit"):
        solve(table, solver, objective=objective)
