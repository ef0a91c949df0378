"""What single solvers promise beyond the contract of all, and an open registry."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulate_batch
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SOLVERS, SolverOptions, solve
from random_tables import make_table, random_table


def test_local_search_mends_what_the_cut_cannot_see() -> None:
    """Branches that gain on DEV1, but not enough for a launch each; the relaxed objective knows no launch."""
    op_seconds = [[1, 9], *[[3, 1]] * 6, [1, 9]]
    tensors = [(0, 0.1, [1, 2, 3, 4, 5, 6]), *[(g, 0.1, [7]) for g in range(1, 7)]]
    table = make_table(op_seconds, tensors, launch_seconds=[0.0, 5.0])
    assert solve(table, "local").latency_seconds == pytest.approx(20.0)  # all on DEV0
    assert solve(table, "local").latency_seconds == solve(table).latency_seconds


def test_equally_fast_answers_go_to_the_single_device() -> None:
    table = make_table([[1, 1]] * 6, [(g, 0.0, [g + 1]) for g in range(5)])
    assert solve(table).assignment.tolist() == [0] * 6


def test_a_new_solver_plugs_into_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    def last_device(problem: Problem, options: SolverOptions) -> Placement:
        return Placement.of_groups(problem.table, np.full(len(problem.table), 1, dtype=np.int32))

    monkeypatch.setitem(SOLVERS, "last", last_device)
    placement = solve(make_table([[1, 2], [1, 2]]), "last")
    assert placement.latency_seconds == pytest.approx(4.0)
    assert placement.lower_bound_seconds is None
    assert placement.to_dict() == {"group0": "DEV1", "group1": "DEV1"}


def test_the_greedy_solver_counts_a_tensor_that_has_arrived_once() -> None:
    # group0 on DEV0; its tensor costs 1.5 to move; two readers gain 1 each on DEV1, so neither goes alone,
    # but a third reader that gains 2 goes, and a fourth that gains 1 follows for nothing.
    table = make_table(
        [[1, 9], [2, 1], [2, 1], [3, 1], [2, 1]], [(0, 1.5, [1, 2, 3, 4])], memory_bytes=np.zeros(5)
    )
    assert solve(table, "greedy").assignment.tolist() == [0, 0, 0, 1, 1]


def test_a_large_graph_with_cyclic_subgraphs_is_not_simulated_for_ever() -> None:
    """Random wiring makes the plain cut one big cycle of subgraphs; the answer must still beat one device."""
    rng = np.random.default_rng(0)
    G = 4000
    tensors = [(int(rng.integers(c)), 1.0, [c]) for c in range(1, G)]
    tensors += [(int(rng.integers(c)), 1.0, [c]) for c in range(1, G)]
    table = make_table(rng.lognormal(0, 1.5, (G, 2)), tensors)
    single, portfolio = solve(table, "single"), solve(table)
    assert isinstance(portfolio, Placement)
    assert portfolio.lower_bound_seconds <= portfolio.latency_seconds <= single.latency_seconds


def test_a_latency_that_was_cut_off_at_a_limit_is_not_taken_for_the_latency() -> None:
    table = random_table(5, groups=30, devices=2, constrained=False)
    units = Problem.of(table).units
    evaluator = Evaluator(table, units)
    scattered = np.random.default_rng(6).integers(2, size=len(units)).astype(np.int32)
    exact = simulate_batch(table, scattered[None, units.unit_of])[0]
    assert evaluator.latencies([scattered], exact / 100)[0] > exact / 100
    assert evaluator.latencies([scattered])[0] == exact


def test_a_graph_of_too_many_placements_for_the_exact_solver_is_refused() -> None:
    with pytest.raises(PlacementError, match="30 units have more; use the solver portfolio"):
        solve(random_table(1, 30, 3, constrained=False), "exact")
