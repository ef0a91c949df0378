"""CP-SAT against all legal placements of tiny random problems, under each objective."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError
from ov_autoplace.placement.simulator import OBJECTIVES, simulate_batch
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve
from ov_autoplace.solvers.greedy import solve_greedy
from ov_autoplace.solvers.oracle import oracle
from random_tables import legal_assignments, random_table

PROVEN = 2e-5  # twice what the solver calls proven


def tiny_table(seed: int) -> CostTable:
    """Unequal devices, or two lanes of one beside another; with constraints or without."""
    devices = 2 + seed % 2
    table = random_table(seed + 910_000, 5 if devices == 3 else 7, devices, constrained=bool(seed % 4 < 2))
    if seed % 5 == 0:
        table = replace(table, memory_capacity=np.full(devices, np.inf))
        table = with_lanes(table, table.devices[0], 2, hand_over_seconds=0.3)
    mix, corun = (0.4, 1.05) if seed % 3 == 0 else (0.0, 1.0)
    return replace(table, mix_seconds=mix, corun_factor=corun)


@pytest.mark.oracle
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.seeds(12)
def test_its_answer_is_the_best_of_all_placements_and_proven(objective: str, seed: int) -> None:
    table = tiny_table(seed)
    legal = legal_assignments(table)
    if not len(legal):
        return
    latencies = simulate_batch(table, legal, objective=objective)
    problem = Problem.of(table, objective=objective)
    answer = oracle(solve_greedy)(problem, SolverOptions())
    matches = np.flatnonzero((legal == answer.assignment).all(axis=1))
    assert len(matches) == 1
    assert latencies[matches[0]] == pytest.approx(latencies.min(), rel=PROVEN)
    assert answer.lower_bound_seconds == pytest.approx(latencies.min(), rel=PROVEN)
    assert answer.lower_bound_seconds <= latencies.min() * (1 + 1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_larger_problems_get_a_bound_and_nothing_slower_than_auto(objective: str) -> None:
    table = random_table(920_000, 30, 3, constrained=False)
    portfolio = solve(table, objective=objective)
    answer = solve(table, "oracle", objective=objective, time_limit=4.0)
    assert answer.latency_seconds <= portfolio.latency_seconds * (1 + 1e-9)
    assert (portfolio.lower_bound_seconds or 0.0) <= answer.lower_bound_seconds * (1 + 1e-9)
    assert answer.lower_bound_seconds <= answer.latency_seconds


def test_without_its_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(
        OptionError,
        match=r"needs the package 'ortools'; install it with: pip install 'ov-autoplace\[oracle\]'",
    ):
        solve(random_table(1, 5, 2), "oracle")


@pytest.mark.oracle
def test_a_graph_that_is_too_large_for_it_is_refused() -> None:
    with pytest.raises(OptionError, match="takes 400 units at most, not 500; use portfolio"):
        solve(random_table(1, 500, 2, constrained=False), "oracle")
