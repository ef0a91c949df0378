"""The distribution over placements, against enumeration of all of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from ov_autoplace.policy.networks.distribution import PlacementDistribution, PolicyOutput

pytestmark = pytest.mark.torch

INF = math.inf
# Graph 0: row 0 decides for units 0 and 2, row 1 for unit 1. Graph 1: row 2 for units 3 and 4.
LOGITS = [[0.5, -1.0, 2.0], [0.0, -INF, 1.5], [-INF, 0.25, -0.75]]
ROW_OF = [0, 1, 0, 2, 2]
GRAPH_OF_ROW = [0, 0, 1]


def output(logits: torch.Tensor | None = None) -> PolicyOutput:
    return PolicyOutput(
        logits=torch.tensor(LOGITS) if logits is None else logits,
        row_of=torch.tensor(ROW_OF),
        graph_of_row=torch.tensor(GRAPH_OF_ROW),
        num_graphs=2,
    )


def row_probabilities() -> np.ndarray:
    weights = np.exp(np.array(LOGITS))
    return weights / weights.sum(axis=1, keepdims=True)


def test_probabilities_of_all_placements_are_products_over_rows_and_add_up_to_one():
    probability = row_probabilities()
    rows = list(itertools.product(range(3), repeat=3))
    actions = torch.tensor([[choice[row] for row in ROW_OF] for choice in rows])
    found = PlacementDistribution(output()).log_prob(actions).exp().numpy()
    for choice, (first, second) in zip(rows, found, strict=True):
        np.testing.assert_allclose(first, probability[0, choice[0]] * probability[1, choice[1]], rtol=1e-5)
        np.testing.assert_allclose(second, probability[2, choice[2]], rtol=1e-5)
    assert found.prod(axis=1).sum() == pytest.approx(1.0, abs=1e-5)


def test_entropy_is_the_mean_of_the_rows_entropies():
    probability = row_probabilities()
    entropies = [-sum(p * math.log(p) for p in row if p > 0) for row in probability]
    found = PlacementDistribution(output()).entropy()
    assert found.tolist() == pytest.approx([(entropies[0] + entropies[1]) / 2, entropies[2]], abs=1e-6)


def test_greedy_is_the_likeliest_of_all_placements():
    distribution = PlacementDistribution(output())
    rows = list(itertools.product(range(3), repeat=3))
    actions = torch.tensor([[choice[row] for row in ROW_OF] for choice in rows])
    best = int(distribution.log_prob(actions).sum(dim=1).argmax())
    assert torch.equal(distribution.greedy(), actions[best])


def test_samples_follow_the_probabilities_and_never_use_a_forbidden_device():
    generator = torch.Generator().manual_seed(0)
    actions = PlacementDistribution(output()).sample(20_000, generator)
    assert actions.shape == (20_000, 5)
    assert torch.equal(actions[:, 0], actions[:, 2])
    assert torch.equal(actions[:, 3], actions[:, 4])
    probability = row_probabilities()
    for row, unit in ((0, 0), (1, 1), (2, 3)):
        share = np.bincount(actions[:, unit].numpy(), minlength=3) / 20_000
        assert np.abs(share - probability[row]).max() < 0.015
        assert not share[probability[row] == 0].any()


def test_a_device_with_a_vanishing_probability_beside_forbidden_ones_is_no_exception():
    logits = torch.tensor([[-INF, 90.0, -90.0, -INF]]).repeat(1000, 1)
    rows = torch.arange(1000)
    distribution = PlacementDistribution(PolicyOutput(logits, rows, torch.zeros_like(rows), 1))
    actions = distribution.sample(100, torch.Generator().manual_seed(1))
    assert set(actions.unique().tolist()) <= {1, 2}


def test_samples_are_repeated_by_the_same_seed_only():
    distribution = PlacementDistribution(output())
    first, again, other = (distribution.sample(50, torch.Generator().manual_seed(s)) for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_gradients_of_log_probability_and_entropy_are_those_of_finite_differences():
    possible = torch.isfinite(torch.tensor(LOGITS))
    actions = torch.tensor([[0, 2, 0, 1, 1], [2, 0, 2, 2, 2]])

    def value(free: torch.Tensor) -> torch.Tensor:
        logits = torch.where(possible, free, -INF)
        distribution = PlacementDistribution(output(logits))
        return distribution.log_prob(actions).sum() + 0.3 * distribution.entropy().sum()

    free = torch.tensor(LOGITS, dtype=torch.float64).masked_fill(~possible, 0.0).requires_grad_()
    assert torch.autograd.gradcheck(value, (free,))


def test_a_placement_from_another_grouping_counts_the_mean_of_its_units():
    probability = np.log(row_probabilities()[0])
    actions = torch.tensor([[0, 0, 2, 1, 1]])
    found = PlacementDistribution(output()).log_prob(actions)
    expected = (probability[0] + probability[2]) / 2 + math.log(row_probabilities()[1, 0])
    assert float(found[0, 0]) == pytest.approx(expected, abs=1e-5)


def test_a_graph_without_units_has_probability_one_and_no_entropy():
    none = torch.zeros(0, dtype=torch.int64)
    distribution = PlacementDistribution(PolicyOutput(torch.zeros(0, 2), none, none, 1))
    assert distribution.sample(3, torch.Generator().manual_seed(0)).shape == (3, 0)
    assert distribution.log_prob(torch.zeros(3, 0, dtype=torch.int64)).tolist() == [[0.0]] * 3
    assert distribution.entropy().tolist() == [0.0]
    assert distribution.greedy().shape == (0,)
