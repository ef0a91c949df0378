"""Placement under binding memory limits against enumeration: programs, bounds, copies, peaks, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulate_batch
from ov_autoplace.problem.constraints import Constraints
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve, solve_problem
from ov_autoplace.solvers import milp as milp_module
from ov_autoplace.solvers.milp_model import solve_model
from ov_autoplace.solvers.pooling import copies_of, pooled
from random_tables import legal_assignments, make_table, random_table, relaxed_seconds


def tight_table(seed: int, groups: int = 7, devices: int = 3, *, peaks: bool = False) -> CostTable:
    """Constrained tables whose limits bind; with ``peaks`` the results' liveness is known."""
    rng = np.random.default_rng(seed)
    table = random_table(seed, groups, devices)
    if peaks:
        results = rng.integers(0, 30, groups).astype(float)
        np.add.at(results, table.tensor_producer, table.tensor_bytes)
        table = replace(table, result_bytes=results, memory_bytes=table.memory_bytes + results)
    share = rng.uniform(0.4, 0.75, devices)
    return replace(table, memory_capacity=share * table.memory_bytes.sum())


def legal(table: CostTable) -> np.ndarray:
    """All placements that honour everything, memory judged by peaks."""
    unlimited = replace(table, memory_capacity=np.full(table.num_devices, np.inf))
    fitting = [
        (held_bytes(table, a) <= table.memory_capacity * (1 + 1e-12)).all()
        for a in legal_assignments(unlimited)
    ]
    return legal_assignments(unlimited)[fitting]


@pytest.mark.parametrize("peaks", [False, True])
@pytest.mark.seeds(12)
def test_the_program_is_the_enumerated_optimum_of_the_relaxed_objective(seed: int, peaks: bool) -> None:
    table = tight_table(seed, groups=6, peaks=peaks)
    every = legal(table)
    try:
        units = Problem.of(table).units
    except PlacementError:
        assert not len(every)
        return
    solved = solve_model(units, np.isfinite(units.op_seconds))
    if not len(every):
        assert solved.assignment is None
        assert np.isinf(solved.bound)
        return
    optimum = min(relaxed_seconds(table, a) for a in every)
    assert relaxed_seconds(table, solved.assignment[units.unit_of]) == pytest.approx(optimum, rel=2e-4)
    assert solved.bound <= optimum * (1 + 1e-6)
    assert solved.bound == pytest.approx(optimum, rel=2e-4)


@pytest.mark.parametrize("peaks", [False, True])
@pytest.mark.parametrize("solver", ["portfolio", "milp"])
def test_answers_fit_are_near_the_optimum_and_their_bounds_hold(solver: str, peaks: bool) -> None:
    ratios = []
    for seed in range(8):
        table = tight_table(seed, peaks=peaks)
        every = legal(table) if any_placement(table) else np.empty((0, len(table)))
        if not len(every):
            with pytest.raises(PlacementError):
                searched(table, solver)
            continue
        optimum = simulate_batch(table, every).min()
        placement = searched(table, solver)
        assert (every == placement.assignment).all(axis=1).any(), f"seed {seed}"
        assert placement.lower_bound_seconds <= optimum * (1 + 1e-6)
        ratios.append(placement.latency_seconds / optimum)
    print(f"{solver}: {len(ratios)} tables, mean {np.mean(ratios):.4f}, worst {max(ratios):.4f}")
    assert len(ratios) >= 4
    assert np.mean(ratios) <= 1.02


def searched(table: CostTable, solver: str = "portfolio", seconds: float = 20.0) -> Placement:
    """The answer of a solver that does not try all placements, and whose programs the clock ends."""
    return solve_problem(Problem.of(table), solver, SolverOptions(enumerated=1, program_seconds=seconds))


def any_placement(table: CostTable) -> bool:
    try:
        Constraints.of(table)
    except PlacementError:
        return False
    return True


def table_with_copies(seed: int) -> CostTable:
    """Three equal accelerators and a slower host without a limit."""
    rng = np.random.default_rng(seed)
    fast = rng.lognormal(0, 1, (6, 1))
    tensors = [(g, float(rng.lognormal(0, 1)), [g + 1]) for g in range(5)]
    return make_table(
        np.concatenate([fast, fast, fast, 8 * fast], axis=1),
        tensors,
        memory_bytes=rng.integers(1, 10, 6).astype(float),
        memory_capacity=np.array([12.0, 12.0, 12.0, np.inf]),
    )


@pytest.mark.seeds(8, cost=15)
def test_pools_of_copies_bound_the_optimum_from_below(seed: int) -> None:
    table = table_with_copies(seed)
    units = Problem.of(table).units
    assert copies_of(units) == [[0, 1, 2], [3]]
    optimum = min(relaxed_seconds(table, a) for a in legal(table))
    bounds = []
    for pools in ([[0, 1, 2], [3]], [[0], [1, 2], [3]], [[0], [1], [2], [3]]):
        taken = pooled(units, pools)
        bounds.append(solve_model(taken, np.isfinite(taken.op_seconds)).bound)
    assert max(bounds) <= optimum * (1 + 1e-6)
    assert bounds[-1] == pytest.approx(optimum, rel=2e-4)
    placement = solve(table, "milp")
    assert placement.lower_bound_seconds <= optimum * (1 + 1e-6)
    assert placement.latency_seconds <= optimum * 1.05


def test_devices_that_differ_in_one_thing_are_no_copies() -> None:
    table = table_with_copies(0)
    for change in (
        {"launch_seconds": np.array([0, 0, 1.0, 0])},
        {"memory_capacity": np.array([12.0, 12.0, 13.0, np.inf])},
        {"transfer_latency": np.eye(4)[[0, 1, 3, 2]]},
    ):
        other = replace(table, **change)
        assert [0, 1, 2] not in copies_of(Problem.of(other).units)
    pinned = Problem.of(table, pins={"group2": table.devices[1]}).units
    assert [0, 1, 2] not in copies_of(pinned)


def test_copies_that_memory_does_not_need_are_left_idle_and_the_bound_is_close() -> None:
    table = replace(table_with_copies(1), memory_capacity=np.full(4, np.inf))
    assert solve(table).lower_bound_seconds == pytest.approx(solve(table).latency_seconds, rel=1e-6)


def test_results_that_are_freed_let_a_model_fit_that_would_not_fit_otherwise() -> None:
    chain = [(g, 10.0, [g + 1]) for g in range(9)]
    sizes = {"memory_bytes": np.full(10, 11.0), "memory_capacity": np.array([30.0, 0.0])}
    fields = {"transfer_seconds_per_byte": np.zeros((2, 2))}
    knows = make_table(np.ones((10, 2)), chain, result_bytes=np.full(10, 10.0), **sizes, **fields)
    assert solve(knows).assignment.tolist() == [0] * 10
    with pytest.raises(PlacementError, match="it needs at least 110 bytes on DEV0"):
        solve(make_table(np.ones((10, 2)), chain, **sizes, **fields))
    short = replace(knows, memory_capacity=np.array([29.0, 0.0]))
    with pytest.raises(PlacementError, match="it needs at least 30 bytes on DEV0 or"):
        solve(short)


@pytest.mark.seeds(6, cost=30)
def test_the_limits_that_a_refusal_names_are_enough_and_one_byte_less_is_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = make_table(np.ones((12, 2)), memory_bytes=rng.integers(5, 50, 12).astype(float))
    total = table.memory_bytes.sum()
    limits = {"DEV0": 0.3 * total, "DEV1": 0.4 * total}
    with pytest.raises(PlacementError) as refusal:
        solve(table, memory_limits=limits)
    each = int(str(refusal.value).split(" bytes each on")[0].split()[-1])
    solve(table, memory_limits=dict.fromkeys(limits, each))
    with pytest.raises(PlacementError):
        solve(table, memory_limits=dict.fromkeys(limits, each - 1))


def test_without_a_time_limit_the_clock_ends_the_programs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def watched(*arguments, **limited):
        limits.append((limited["node_limit"], limited["time_limit"]))
        return solve_model(*arguments, **limited)

    monkeypatch.setattr(milp_module, "solve_model", watched)
    table = table_with_copies(0)
    answer = searched(table)
    assert limits
    assert all(nodes > 0 and 0 < seconds <= 20.0 for nodes, seconds in limits)
    programs = len(limits)
    hurried = searched(table, seconds=0.0)
    assert len(limits) - programs < programs
    assert (legal(table) == hurried.assignment).all(axis=1).any()
    assert hurried.lower_bound_seconds <= answer.latency_seconds * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_the_relaxation_bounds_the_program_and_its_rounding_is_allowed(seed: int) -> None:
    table = random_table(seed, 6, 3)
    table = replace(table, memory_capacity=np.full(3, np.inf))
    every = legal(table)
    if not len(every):
        return
    units = Problem.of(table).units
    relaxed = solve_model(units, np.isfinite(units.op_seconds), is_fractional=True)
    optimum = min(relaxed_seconds(table, a) for a in every)
    assert 0 < relaxed.bound <= optimum * (1 + 1e-6)
    assert (every == relaxed.assignment[units.unit_of]).all(axis=1).any()
