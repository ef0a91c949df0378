"""The environment: many tables behind the simulator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ov_autoplace.errors import TrainingError
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.environment import Environment
from random_tables import legal_assignments, make_table, random_table
from training.chains import chain_seconds, chain_table, fast_and_slow


def environment_of(*tables):
    return Environment([Problem.of(table) for table in tables])


def test_latencies_are_those_of_the_simulator_for_every_table():
    tables = [random_table(seed, groups=6 + seed, devices=2, constrained=False) for seed in range(3)]
    rng = np.random.default_rng(1)
    actions = [rng.integers(0, 2, (4, len(table))) for table in tables]
    latencies = environment_of(*tables).latencies(actions)
    assert latencies.shape == (3, 4)
    for b, k in itertools.product(range(3), range(4)):
        assert latencies[b, k] == simulate(tables[b], actions[b][k]).latency_seconds


@pytest.mark.seeds(12)
def test_exactly_the_placements_that_break_a_constraint_are_masked(seed):
    table = random_table(seed, groups=6, devices=2)
    problem = Problem.of(table)
    environment = Environment([problem])
    every = np.array(list(itertools.product(range(2), repeat=len(problem.units))))
    latencies = environment.latencies([every])[0]
    legal = {tuple(row) for row in legal_assignments(table)}
    # What the simulator itself refuses is HETERO's cut through ops that must stay in one subgraph.
    assert legal
    for action, seconds in zip(every, latencies, strict=True):
        assignment = problem.units.to_groups(action)
        possible = np.isfinite(simulate(table, assignment).latency_seconds)
        assert np.isfinite(seconds) == (possible and tuple(assignment) in legal)


def test_units_act_for_all_their_groups():
    table = chain_table(fast_and_slow([0, 1, 0, 1]), colocation=np.array([0, -1, 0, -1], dtype=np.int32))
    environment = environment_of(table)
    units = environment.problems[0].units
    assert len(units) == 3
    assert units.to_groups(np.array([1, 0, 1])).tolist() == [1, 0, 1, 1]
    expected = chain_seconds(table, [1, 0, 1, 1])
    assert environment.latencies([np.array([[1, 0, 1]])])[0, 0] == pytest.approx(expected)


def test_pins_and_memory_limits_of_the_graph_are_kept():
    table = chain_table(fast_and_slow([0, 0, 1, 1]), memory_bytes=np.full(4, 10.0))
    environment = Environment([Problem.of(table, {"DEV0": 20}, {"group3": "DEV1"})])
    actions = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 0], [1, 1, 1, 1]])
    assert np.isfinite(environment.latencies([actions])[0]).tolist() == [True, False, False, True]
    assert environment.reference == ("DEV1",)


def test_a_reward_of_zero_is_the_fastest_single_device_and_masked_is_minus_infinity():
    table = chain_table(fast_and_slow([0, 0, 0, 1]), memory_bytes=np.full(4, 10.0))
    environment = environment_of(table)
    single = chain_seconds(table, [0, 0, 0, 0])
    assert environment.reference == ("DEV0",)
    assert environment.best_single == pytest.approx([single])
    latencies = environment.latencies([np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]])])
    expected = [0.0, -np.log(chain_seconds(table, [1, 1, 1, 1]) / single)]
    expected.append(-np.log(chain_seconds(table, [0, 0, 0, 1]) / single))
    assert environment.rewards(latencies)[0] == pytest.approx(expected, abs=1e-12)
    assert environment.rewards(np.array([[np.inf, single / 2]]))[0].tolist() == [-np.inf, np.log(2)]


@pytest.mark.parametrize("reason", ["support", "memory"])
def test_without_a_legal_single_device_rewards_compare_with_the_portfolio_solver(reason):
    fields = {}
    seconds = fast_and_slow([0, 0, 1, 1])
    if reason == "support":
        seconds[0, 1] = seconds[3, 0] = np.inf
    else:
        fields = {"memory_bytes": np.full(4, 10.0), "memory_capacity": np.full(2, 20.0)}
    table = chain_table(seconds, **fields)
    environment = environment_of(table)
    assert environment.reference == ("portfolio",)
    assert environment.best_single == pytest.approx([chain_seconds(table, [0, 0, 1, 1])])


def test_actions_of_a_batch_are_cut_at_the_graphs():
    tables = [chain_table(fast_and_slow([0] * n)) for n in (2, 5, 1)]
    environment = environment_of(*tables)
    parts = environment.split(np.arange(16).reshape(2, 8))
    assert [part.tolist() for part in parts] == [
        [[0, 1], [8, 9]],
        [[2, 3, 4, 5, 6], [10, 11, 12, 13, 14]],
        [[7], [15]],
    ]
    with pytest.raises(TrainingError, match=r"int\[k, 8\], not \[2, 7\]"):
        environment.split(np.zeros((2, 7), dtype=int))


def test_a_placement_whose_subgraphs_wait_for_each_other_in_a_huge_cycle_is_masked():
    """A ladder with all rungs on the other device: HETERO would cut it rung by rung."""
    rungs = 50
    tensors = [(2 * i, 1.0, [2 * i + 1, 2 * i + 2]) for i in range(rungs)]
    tensors += [(2 * i + 1, 1.0, [2 * i + 2]) for i in range(rungs)]
    table = make_table(np.ones((2 * rungs + 1, 2)), tensors)
    cycle = np.arange(len(table)) % 2
    halves = (np.arange(len(table)) > rungs).astype(int)
    environment = environment_of(table)
    assert np.isfinite(environment.latencies([np.stack([cycle, halves])])).all()
    environment = Environment([Problem.of(table)], most_work=1000)
    assert np.isfinite(environment.latencies([np.stack([cycle, halves])])[0]).tolist() == [False, True]
