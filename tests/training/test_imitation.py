import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.imitation import expected_seconds, imitation_loss
from solvers.random_tables import make_table, random_table

pytestmark = pytest.mark.torch


def chain(seed, groups=5):
    """A chain, on which every tensor has one consumer and edges say all there is to say."""
    random = np.random.default_rng(seed)
    return make_table(
        random.lognormal(size=(groups, 2)), [(g, random.lognormal(), [g + 1]) for g in range(groups - 1)]
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_expected_latency_is_the_mean_over_all_placements(seed):
    table = chain(seed)
    graph = policy_graph(Problem.of(table))
    units = Problem.of(table).units.with_launches(1.0)
    probability = np.random.default_rng(seed).dirichlet((1.0, 1.0), len(graph))
    mean = 0.0
    for placed in itertools.product(range(2), repeat=len(graph)):
        weight = probability[np.arange(len(graph)), placed].prod()
        mean += weight * units.relaxed_seconds(np.array(placed)) / graph.scale_seconds
    got = expected_seconds(collate([graph]), torch.from_numpy(probability).float())
    assert got.item() == pytest.approx(mean, rel=1e-5)


def test_the_loss_of_the_teachers_own_answer_is_nothing():
    batch = collate([policy_graph(Problem.of(chain(seed))) for seed in range(3)])
    label = torch.arange(batch.num_nodes) % 2
    certain = 50.0 * torch.nn.functional.one_hot(label, 2).float()
    loss, metrics = imitation_loss([certain], batch, label, 1.0, 0.3)
    assert loss.item() == pytest.approx(0.0, abs=1e-5)
    assert metrics["excess"] == pytest.approx(0.0, abs=1e-5)
    undecided, _ = imitation_loss([torch.zeros_like(certain)], batch, label, 0.0, 0.3)
    assert undecided.item() == pytest.approx(np.log(2))


def test_early_rounds_count_less():
    batch = collate([policy_graph(Problem.of(chain(0)))])
    label = torch.zeros(batch.num_nodes, dtype=torch.int64)
    wrong, right = torch.tensor([[0.0, 5.0]]).expand(5, 2), torch.tensor([[50.0, 0.0]]).expand(5, 2)
    late, _ = imitation_loss([right, wrong], batch, label, 0.0, 0.3)
    early, _ = imitation_loss([wrong, right], batch, label, 0.0, 0.3)
    assert early.item() == pytest.approx(0.3 * late.item(), rel=1e-4)


def test_an_estimate_teaches_what_the_truth_costs_and_trusts_its_labels_less():
    table = random_table(0, constrained=False)
    estimate = replace(table, op_seconds=table.op_seconds[:, ::-1].copy(), source="analytic")
    shown, truth = collate([policy_graph(Problem.of(estimate))]), collate([policy_graph(Problem.of(table))])
    label = torch.zeros(shown.num_nodes, dtype=torch.int64)
    scores = torch.zeros(shown.num_nodes, 2)
    of_truth, metrics = imitation_loss([scores], truth, label, 1.0, 0.3)
    of_estimate, _ = imitation_loss([scores], shown, label, 1.0, 0.3, truth=truth, estimate_labels=0.25)
    assert of_truth.item() - of_estimate.item() == pytest.approx(0.75 * metrics["cross_entropy"], rel=1e-4)


def test_an_important_graph_counts_more():
    batch = collate([policy_graph(Problem.of(chain(seed))) for seed in range(2)])
    label = torch.zeros(batch.num_nodes, dtype=torch.int64)
    scores = torch.zeros(batch.num_nodes, 2)
    scores[:5, 1] = 3.0  # wrong about the first graph, undecided about the second
    alone = [
        imitation_loss([scores], batch, label, 1.0, 0.3, torch.tensor(weights))[0].item()
        for weights in ([1.0, 0.0], [0.0, 1.0], [3.0, 1.0])
    ]
    assert alone[2] == pytest.approx(0.75 * alone[0] + 0.25 * alone[1])
    assert alone[0] > alone[1]
