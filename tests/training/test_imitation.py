import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.expected import expected_overfill, expected_seconds
from ov_autoplace.training.imitation import imitation_loss, likeliest_label
from random_tables import make_table, random_table

pytestmark = pytest.mark.torch


def chain(seed, groups=5):
    """A chain, on which every tensor has one consumer and edges say all there is to say."""
    random = np.random.default_rng(seed)
    return make_table(
        random.lognormal(size=(groups, 2)), [(g, random.lognormal(), [g + 1]) for g in range(groups - 1)]
    )


@pytest.mark.seeds(4)
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
    loss, metrics = imitation_loss(certain, batch, label, 1.0)
    assert loss.item() == pytest.approx(0.0, abs=1e-5)
    assert metrics["excess"] == pytest.approx(0.0, abs=1e-5)
    undecided, _ = imitation_loss(torch.zeros_like(certain), batch, label, 0.0)
    assert undecided.item() == pytest.approx(np.log(2))


def test_an_estimate_teaches_what_the_truth_costs_and_trusts_its_labels_less():
    table = random_table(0, constrained=False)
    estimate = replace(table, op_seconds=table.op_seconds[:, ::-1].copy(), source="analytic")
    shown, truth = collate([policy_graph(Problem.of(estimate))]), collate([policy_graph(Problem.of(table))])
    label = torch.zeros(shown.num_nodes, dtype=torch.int64)
    scores = torch.zeros(shown.num_nodes, 2)
    of_truth, metrics = imitation_loss(scores, truth, label, 1.0)
    of_estimate, _ = imitation_loss(scores, shown, label, 1.0, truth=truth, estimate_labels=0.25)
    assert of_truth.item() - of_estimate.item() == pytest.approx(0.75 * metrics["cross_entropy"], rel=1e-4)


def test_every_graph_counts_alike():
    graphs = [policy_graph(Problem.of(chain(seed))) for seed in range(2)]
    wrong, undecided = torch.zeros(len(graphs[0]), 2), torch.zeros(len(graphs[1]), 2)
    wrong[:5, 1] = 3.0

    def loss(own, scores):
        batch = collate(own)
        return imitation_loss(scores, batch, torch.zeros(batch.num_nodes, dtype=torch.int64), 1.0)[0].item()

    alone = loss(graphs[:1], wrong), loss(graphs[1:], undecided)
    assert alone[0] > alone[1]
    assert loss(graphs, torch.cat((wrong, undecided))) == pytest.approx(sum(alone) / 2)


def certain(graph, placed):
    return torch.nn.functional.one_hot(torch.tensor(placed), graph.num_devices).float()


def lanes(count=2, groups=6, **fields):
    """Independent ops of a second each on lanes of one device."""
    fields = {"lane_devices": ("CPU",) * count, **fields}
    return make_table(np.ones((groups, count)), **fields)


def test_under_rate_the_busiest_device_counts():
    graph = policy_graph(Problem.of(lanes(), objective="rate"))
    halves, alone = ([0, 0, 0, 1, 1, 1], [0] * 6)
    seconds = [
        expected_seconds(collate([graph]), certain(graph, placed)).item() for placed in (halves, alone)
    ]
    # The norm counts two equal devices as a little more than one of them.
    assert seconds[1] == pytest.approx(6.0, rel=1e-3)
    assert 3.0 <= seconds[0] <= 3.0 * 2 ** (1 / 8) + 1e-3


def test_under_overlap_work_that_could_run_at_once_is_better_on_two_lanes():
    # Two branches of three ops each between a first and a last one.
    tensors = [(0, 0.0, [1, 4]), (1, 0.0, [2]), (2, 0.0, [3]), (4, 0.0, [5]), (5, 0.0, [6])]
    tensors += [(3, 0.0, [7]), (6, 0.0, [7])]
    table = make_table(np.ones((8, 2)), tensors, lane_devices=("CPU", "CPU"))
    graph = policy_graph(Problem.of(table, objective="overlap"))
    answers = {"branches": [0, 0, 0, 0, 1, 1, 1, 0], "halves": [0, 0, 1, 1, 0, 1, 1, 1], "alone": [0] * 8}
    seconds = {
        name: expected_seconds(collate([graph]), certain(graph, placed)).item()
        for name, placed in answers.items()
    }
    assert seconds["branches"] < 0.75 * seconds["alone"]
    assert seconds["branches"] < seconds["halves"]


def test_objectives_of_one_batch_are_told_apart():
    graphs = [
        policy_graph(Problem.of(lanes(), objective=objective)) for objective in ("hetero", "rate", "overlap")
    ]
    even = torch.full((18, 2), 0.5)
    together = expected_seconds(collate(graphs), even)
    alone = [expected_seconds(collate([graph]), even[:6]).item() for graph in graphs]
    assert together.tolist() == pytest.approx(alone)
    assert len(set(alone)) > 1


def test_bytes_beyond_a_devices_capacity_cost_and_lanes_share_it():
    table = lanes(memory_bytes=np.ones(6), memory_capacity=np.array([4.0, 4.0]))
    graph = policy_graph(Problem.of(table, objective="overlap"))
    for placed in ([0] * 6, [0, 1, 0, 1, 0, 1]):
        assert expected_overfill(collate([graph]), certain(graph, placed)).item() == pytest.approx(0.5)
    apart = policy_graph(Problem.of(replace(table, lane_devices=None)))
    assert expected_overfill(collate([apart]), certain(apart, [0, 0, 0, 1, 1, 1])).item() == 0.0


def test_an_answer_with_copies_exchanged_is_the_same_answer():
    graphs = [policy_graph(Problem.of(lanes(3), objective="overlap")), policy_graph(Problem.of(lanes(3)))]
    batch = collate(graphs)
    label = torch.tensor([0, 0, 1, 1, 2, 2] * 2)
    exchanged = torch.tensor([2, 2, 0, 0, 1, 1] * 2)
    scores = 9.0 * torch.nn.functional.one_hot(exchanged, 3).float()
    assert likeliest_label(batch, scores, label).tolist() == exchanged.tolist()
    loss, _ = imitation_loss(scores, batch, label, 1.0)
    assert loss.item() < 1e-2


def test_devices_that_differ_are_never_exchanged():
    table = make_table([[1.0, 1.0, 2.0]] * 4, launch_seconds=np.array([0.1, 0.2, 0.1]))
    batch = collate([policy_graph(Problem.of(table))])
    label = torch.tensor([0, 1, 2, 0])
    scores = torch.nn.functional.one_hot(torch.tensor([1, 2, 0, 1]), 3).float()
    assert likeliest_label(batch, scores, label).tolist() == label.tolist()
