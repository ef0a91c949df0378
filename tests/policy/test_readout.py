"""From scores to placements: allowed ones only, and the fastest of all that are compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.policy.features import PolicyGraph, policy_graph
from ov_autoplace.policy.readout import draw, fastest, fitting, fitting_or_single, likeliest
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.policy import policy_assignment
from random_tables import legal_assignments, make_table, random_table

OBJECTIVES = ("hetero", "overlap", "rate")


def graph_of(seed: int, groups: int, devices: int, objective: str = "hetero") -> PolicyGraph:
    """A random graph of units, some of which may not run on the last device."""
    table = random_table(seed, groups, devices, constrained=False)
    seconds = table.op_seconds.copy()
    seconds[np.random.default_rng(seed).random(groups) < 0.2, -1] = np.inf
    return policy_graph(Problem.of(replace(table, op_seconds=seconds), objective=objective))


def with_memory(sizes: list[float], capacity: list[float], seconds: list[list[float]]) -> PolicyGraph:
    table = make_table(seconds, memory_bytes=np.array(sizes), memory_capacity=np.array(capacity))
    return policy_graph(Problem.of(table))


def limited(seed: int, devices: int, objective: str = "hetero") -> PolicyGraph:
    """A random graph with limits that together hold little more than there is."""
    random = np.random.default_rng(seed)
    table = random_table(seed, groups=40, devices=devices, constrained=False)
    share = random.uniform(1.2, 1.8) * random.dirichlet(np.full(devices, 5.0))
    limits = dict(zip(table.devices, share * table.memory_bytes.sum(), strict=True))
    return policy_graph(Problem.of(table, limits, objective=objective))


def seconds_of(graph: PolicyGraph, answer: np.ndarray) -> float:
    problem = graph.problem
    return simulate(problem.table, problem.units.to_groups(answer), problem.objective).seconds_per_request


def test_without_limits_every_unit_is_on_its_highest_allowed_score() -> None:
    for seed in range(8):
        graph = graph_of(seed, 30, 3)
        scores = np.random.default_rng(seed).normal(size=graph.allowed.shape)
        expected = [
            max(np.flatnonzero(graph.allowed[u]), key=lambda d, u=u, scores=scores: scores[u, d])
            for u in range(len(graph))
        ]
        assert fitting(scores, graph).tolist() == expected


def test_the_units_that_leave_a_full_device_prefer_it_least_per_byte() -> None:
    graph = with_memory([4, 4, 4, 4], [9, np.inf], [[1, 1]] * 4)
    # Without transfers and with equal times nothing but the scores tells the units apart.
    scores = np.array([[1.0, 0.0], [4.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    assert fitting(scores, graph).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.seeds(12)
def test_answers_and_draws_are_within_tight_limits(seed: int, objective: str) -> None:
    graph = limited(seed, 2 + seed % 3, objective)
    units = graph.problem.units
    scores = np.random.default_rng(seed).normal(size=graph.allowed.shape)
    for answer in (fitting(scores, graph), *draw(scores, graph, 3, seed)):
        held = np.bincount(answer, units.memory_bytes, units.num_devices)
        assert (held <= units.memory_capacity * (1 + 1e-9)).all()


def test_lanes_of_one_device_share_its_memory() -> None:
    table = make_table(
        [[1.0, 1.0, 9.0]] * 6,
        memory_bytes=np.ones(6),
        memory_capacity=np.array([3.0, 3.0, np.inf]),
        lane_devices=("CPU", "CPU", "GPU"),
    )
    graph = policy_graph(Problem.of(table, objective="overlap"))
    answer = fitting(np.tile([2.0, 1.0, 0.0], (6, 1)), graph)
    assert (answer < 2).sum() <= 3


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.seeds(10)
def test_no_answer_is_slower_than_a_single_device_that_fits(seed: int, objective: str) -> None:
    graph = graph_of(seed, 25, 3, objective)
    answer = fitting_or_single(np.random.default_rng(seed).normal(size=graph.allowed.shape), graph)
    singles = [np.full(len(graph), d, dtype=np.int32) for d in range(3) if graph.allowed[:, d].all()]
    assert singles
    assert seconds_of(graph, answer) <= min(seconds_of(graph, one) for one in singles) * (1 + 1e-9)


def test_free_ops_and_equal_devices_lead_to_one_device() -> None:
    tensors = [(g, 1.0, [g + 1]) for g in range(5)]
    for seconds in (0.0, 1.0):
        graph = policy_graph(Problem.of(make_table(np.full((6, 3), seconds), tensors)))
        assert np.isfinite(graph.pair_features).all()
        assert np.isfinite(graph.edge_cost).all()
        answer = fitting_or_single(np.random.default_rng(1).normal(size=(6, 3)), graph)
        assert len(set(answer.tolist())) == 1


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_fastest_is_so_by_the_problems_own_objective(objective: str) -> None:
    graph = graph_of(3, 30, 3, objective)
    random = np.random.default_rng(0)
    answers = [likeliest(random.normal(size=graph.allowed.shape), graph) for _ in range(9)]
    seconds = [seconds_of(graph, answer) for answer in answers]
    assert fastest(graph, answers) == int(np.argmin(seconds))
    assert fastest(graph, [answers[0], answers[0]]) == 1


def test_what_does_not_fit_is_never_the_fastest() -> None:
    graph = with_memory([1, 1], [1, np.inf], [[1, 9], [1, 9]])
    alone, apart = np.array([0, 0], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    assert fastest(graph, [alone, apart]) == 1
    assert fastest(graph, [apart, alone]) == 0


def test_where_scores_lead_to_nothing_that_fits_first_fit_does() -> None:
    # 4 + 6 + 8 | 5 + 6 + 7 is the only way up to order.
    graph = with_memory([4, 5, 6, 6, 7, 8], [18, 18], [[1, 5], [1, 3], [1, 9], [1, 2], [1, 2], [1, 2]])
    scores = -graph.node_cost
    with pytest.raises(PlacementError, match="within the memory limits of 18, 18 bytes"):
        fitting(scores, graph)
    answer = policy_assignment(scores, graph)
    assert np.bincount(answer, graph.problem.units.memory_bytes).tolist() == [18, 18]


@pytest.mark.seeds(30)
def test_an_answer_is_found_wherever_there_is_one(seed: int) -> None:
    table = random_table(seed, groups=6, devices=3)
    legal = legal_assignments(table).tolist()
    try:
        graph = policy_graph(Problem.of(table))
        answer = policy_assignment(np.random.default_rng(seed).normal(size=graph.allowed.shape), graph)
    except PlacementError:
        assert not legal
    else:
        assert graph.problem.units.to_groups(answer).tolist() in legal
