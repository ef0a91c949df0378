"""Parts of the learned rivals: which moves GiPH may make, its graph of options, what Placeto pools."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rival_tables import random_problem

from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.problem import Problem
from random_tables import make_table
from rivals import hierarchical, local_moves, placeto

pytestmark = pytest.mark.torch


def first_allowed(graph) -> np.ndarray:
    return graph.allowed.argmax(axis=1).astype(np.int32)


@pytest.mark.seeds(3)
def test_giph_may_move_any_unit_to_another_device_that_can_run_it_but_the_one_just_moved(seed: int) -> None:
    graph = PolicyGraph.of(Problem.of(random_problem(seed, 3)))
    placement = first_allowed(graph)
    scores = local_moves._Policy(graph)(placement, 4)
    may = graph.allowed.copy()
    may[np.arange(len(graph)), placement] = False
    may[4] = False
    assert (torch.isfinite(scores).numpy() == may).all()


def test_giph_moves_the_same_unit_again_when_no_other_can_move() -> None:
    graph = PolicyGraph.of(Problem.of(make_table([[1.0, 1.0], [1.0, np.inf]], [(0, 1.0, [1])])))
    scores = local_moves._Policy(graph)(np.zeros(2, dtype=np.int32), 0)
    assert torch.isfinite(scores).tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize("devices", [2, 3])
def test_every_edge_between_options_has_a_pivot_and_stands_once_with_its_price(devices: int) -> None:
    graph = PolicyGraph.of(Problem.of(random_problem(1, devices)))
    placement = first_allowed(graph)
    policy = local_moves._Policy(graph)
    pivot = torch.from_numpy(placement).long()
    edges = torch.arange(len(graph.edge_source))
    received = policy.price[edges, pivot[policy.source]]
    sent = policy.price[edges, :, pivot[policy.target]]
    tail, head, about = (part.numpy() for part in policy._edges(pivot, received, sent))
    found = {}
    for t, h, row in zip(tail.tolist(), head.tolist(), about, strict=True):
        assert (t, h) not in found
        found[t, h] = row[0]
    expected = {}
    for e, (a, b) in enumerate(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True)):
        for d in range(devices):
            for p in range(devices):
                if placement[a] == d or placement[b] == p:
                    expected[a * devices + d, b * devices + p] = np.log1p(graph.edge_cost[e, d, p])
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(expected[key], rel=1e-5, abs=1e-6) for key in expected)


def test_placeto_tells_ancestors_by_every_way_through_the_graph() -> None:
    graph = PolicyGraph.of(Problem.of(random_problem(2, 2)))
    step = np.zeros((len(graph), len(graph)), dtype=bool)
    step[graph.edge_target, graph.edge_source] = True
    reached = step.copy()
    for _ in range(len(graph)):
        reached |= (reached.astype(int) @ step.astype(int)) > 0
    assert (placeto._ancestors(graph) == reached).all()


def test_placeto_scores_a_batch_as_it_scores_one_placement_at_a_time() -> None:
    graph = PolicyGraph.of(Problem.of(random_problem(3, 3)))
    policy = placeto._Policy(graph)
    placements = np.random.default_rng(0).integers(3, size=(5, len(graph))).astype(np.int32)
    nodes = np.array([0, 7, 7, 20, 29])
    together = policy(placements, nodes)
    alone = [policy(placements[i : i + 1], nodes[i : i + 1])[0] for i in range(5)]
    torch.testing.assert_close(together, torch.stack(alone))
    assert (torch.isfinite(together).numpy() == graph.allowed[nodes]).all()


def test_the_placer_puts_each_unit_where_its_group_is_put() -> None:
    graph = PolicyGraph.of(Problem.of(random_problem(4, 3)))
    policy = hierarchical._Policy(graph)
    # A grouper that is sure of itself: unit i is in group i modulo 4.
    with torch.no_grad():
        for parameter in policy.grouper.parameters():
            parameter.zero_()
    group = torch.arange(len(graph)) % 4
    policy.grouper.forward = lambda features: torch.nn.functional.one_hot(group, policy.groups) * 1e4
    devices, log_prob = policy.sample(6, torch.Generator().manual_seed(0))
    assert devices.shape == (6, len(graph))
    for row in devices:
        assert all(len(set(row[group == k].tolist())) == 1 for k in range(4))
    # Four groups are placed on three devices by a network that knows nothing yet; empty groups are no
    # decisions, and the grouper has no doubts.
    each = log_prob.detach().numpy() / 4
    assert (np.log(0.2) < each).all()
    assert (each < np.log(0.5)).all()
