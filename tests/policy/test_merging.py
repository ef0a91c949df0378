"""Problems that are too large for the policy."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.policy import merging
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.merging import graph_within_reach
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import solve
from report_tables import layered_table


@pytest.fixture
def problem():
    return Problem.of(layered_table(300, seed=8))


def test_a_problem_within_reach_is_seen_as_it_is(problem, caplog):
    seen = graph_within_reach(problem, most_units=len(problem.units))
    assert seen.problem is problem
    np.testing.assert_array_equal(seen.node_cost, policy_graph(problem).node_cost)
    assert not caplog.messages


def test_a_larger_one_is_seen_in_fewer_units_that_cost_the_same_together(problem, caplog):
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        seen = graph_within_reach(problem, most_units=100)
    units = seen.problem.units
    assert 25 < len(seen) <= 100
    (message,) = caplog.messages
    assert f"{len(seen)} groups of the model's {len(problem.units)} units" in message
    np.testing.assert_allclose(units.op_seconds.sum(axis=0), problem.units.op_seconds.sum(axis=0))
    alternating = (np.arange(len(seen)) % 2).astype(np.int32)
    latency = seen.problem.evaluator.latencies(alternating[None])
    same = problem.units.from_groups(units.to_groups(alternating))
    np.testing.assert_allclose(latency, problem.evaluator.latencies(same[None]))


def test_units_that_may_run_on_different_devices_are_never_merged(problem):
    table = problem.table
    pins = {table.names[g]: table.devices[g % 2] for g in range(0, len(table), 5)}
    pinned = Problem.of(table, pins=pins)
    seen = graph_within_reach(pinned, most_units=100)
    np.testing.assert_array_equal(
        seen.allowed[seen.problem.constraints.unit_of], policy_graph(pinned).allowed[pinned.units.unit_of]
    )
    assert len(seen) < len(pinned.units)


def test_answers_of_the_policy_are_about_all_groups_of_the_table(problem, monkeypatch):
    monkeypatch.setattr(merging.graph_within_reach, "__defaults__", (100,))
    answer = solve(problem.table, "policy")
    assert answer.names == problem.table.names
    assert len(answer.assignment) == len(problem.table)
    merged = graph_within_reach(problem).problem.constraints.unit_of
    proposals = propose(problem, ProposalSource((), PolicyRunner(), policy_is_required=True))
    drawn = [c.assignment for c in proposals if c.name.startswith("policy sample")]
    assert drawn
    for assignment in drawn:
        for unit in range(merged.max() + 1):
            assert len(set(assignment[merged == unit])) == 1
