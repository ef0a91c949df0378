"""Local search: what it never does, and what it has to be able to do."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.simulator import simulate, simulate_batch
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.neighbourhood import Moves, Neighbourhood
from ov_autoplace.solvers.solver import SolverOptions
from random_tables import legal_assignments, make_table, random_table


def drawn_problem(seed: int, devices: int) -> Problem:
    """A random table with missing ops, limits and co-location; or lanes of one device."""
    random = np.random.default_rng((seed, devices, 71))
    objective = ("hetero", "overlap", "rate")[int(random.integers(3))]
    while True:
        table = random_table(int(random.integers(1 << 30)), int(random.integers(5, 60)), devices)
        if objective == "overlap" and random.random() < 0.5:
            table = replace(table, lane_devices=("CPU",) * devices)
        with suppress(PlacementError):
            problem = Problem.of(table, objective=objective)
            first_fit(problem.table, problem.units)
            return problem


def seconds_of(problem: Problem, device: np.ndarray) -> float:
    groups = problem.units.to_groups(device)
    return simulate(problem.table, groups, problem.objective).seconds_per_request


@pytest.mark.parametrize("devices", [1, 2, 3, 5, 8, 16])
@pytest.mark.seeds(12, cost=5)
def test_an_answer_is_allowed_and_no_slower_than_its_start_and_the_same_again(
    seed: int, devices: int
) -> None:
    problem = drawn_problem(seed, devices)
    units, random = problem.units, np.random.default_rng(seed)
    start = first_fit(problem.table, units)
    blocks = [np.sort(random.choice(len(units), size=3, replace=False)).astype(np.int32) for _ in range(9)]
    for arguments in ({}, {"blocks": blocks}):
        found = improve(problem.evaluator, start, SolverOptions(seed=seed), work=30_000, **arguments)
        assert np.isfinite(units.op_seconds[np.arange(len(units)), found]).all()
        assert (units.memory_of(found) <= units.memory_capacity * (1 + 1e-9)).all()
        assert seconds_of(problem, found) <= seconds_of(problem, start) * (1 + 1e-9)
        again = improve(
            drawn_problem(seed, devices).evaluator, start, SolverOptions(seed=seed), work=30_000, **arguments
        )
        assert found.tolist() == again.tolist()


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_free_and_equal_units_stay_on_one_device(seconds: float) -> None:
    chain = [(g, 1.0, [g + 1]) for g in range(11)]
    table = make_table(np.full((12, 4), seconds), chain, launch_seconds=np.full(4, 0.5))
    evaluator = Problem.of(table).evaluator
    found = improve(evaluator, np.arange(12, dtype=np.int32) % 4, SolverOptions())
    assert len(set(found.tolist())) == 1


def test_limits_are_crossed_where_no_move_within_them_is_better() -> None:
    # Both devices are full. The one large unit has to change places with the two small ones, and none of the
    # three can go first; of runs of neighbours none holds the two small ones alone.
    seconds = [[9.0, 1.0], [1.0, 1.0], [1.0, 9.0], [1.0, 1.0], [1.0, 9.0]]
    table = make_table(
        seconds,
        memory_bytes=np.array([4.0, 3.0, 2.0, 3.0, 2.0]),
        memory_capacity=np.array([7.0, 7.0]),
    )
    start = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    found = improve(Problem.of(table).evaluator, start, SolverOptions())
    assert simulate(table, found).latency_seconds == 5.0
    assert (np.bincount(found, table.memory_bytes) <= 7.0).all()


@pytest.mark.parametrize("objective", ["hetero", "overlap", "rate"])
def test_within_tight_limits_most_answers_are_optimal(objective: str) -> None:
    ratios = []
    for seed in range(30):
        table = random_table(seed + 70_000, groups=9, devices=2, constrained=False)
        share = np.random.default_rng(seed).uniform(0.5, 0.7, 2)
        table = replace(table, memory_capacity=share * table.memory_bytes.sum())
        legal = legal_assignments(table)
        if not len(legal):
            continue
        problem = Problem.of(table, objective=objective)
        found = improve(problem.evaluator, first_fit(table, problem.units), SolverOptions())
        optimum = simulate_batch(table, legal, objective=objective).min()
        ratios.append(seconds_of(problem, found) / optimum)
    assert len(ratios) > 20
    assert np.isclose(ratios, 1.0).mean() >= 0.85
    assert max(ratios) <= 1.2


def test_moves_are_made_alone_or_together_and_then_the_first_one_counts() -> None:
    moves = Moves(
        np.array([0, 1, 1, 2], dtype=np.int32), np.array([1, 1, 2, 2], dtype=np.int32), np.array([2, 1, 1])
    )
    start = np.zeros(3, dtype=np.int32)
    assert moves.each(start).tolist() == [[1, 1, 0], [0, 2, 0], [0, 0, 2]]
    assert moves.together(start).tolist() == [1, 1, 2]
    assert moves.chosen(np.array([1, 0])).together(start).tolist() == [1, 2, 0]


@pytest.mark.seeds(6)
def test_no_move_goes_where_a_unit_cannot_run(seed: int) -> None:
    table = random_table(seed + 80_000, groups=20, devices=4)
    problem = Problem.of(table)
    units, random = problem.units, np.random.default_rng(seed)
    blocks = [np.arange(i, i + 3, dtype=np.int32) for i in range(0, len(units) - 3, 2)]
    around = Neighbourhood(problem.evaluator, blocks)
    device = units.op_seconds.argmin(axis=1).astype(np.int32)
    for moves in (around.listed(device, random), around.drawn(device, 50, random)):
        assert np.isfinite(units.op_seconds[moves.units, moves.targets]).all()
        assert moves.lengths.sum() == len(moves.units) == len(moves.targets)
    changed = around.listed(device, random).each(device) != device
    # Single units, the three of a block, and subgraphs are among them.
    assert {1, 3} <= set(changed.sum(axis=1).tolist())
