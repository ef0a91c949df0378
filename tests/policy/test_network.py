from dataclasses import replace

import numpy as np
import pytest
import torch
from policy_batches import random_batch, random_graph

from ov_autoplace.errors import OptionError
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.distribution import PlacementDistribution
from ov_autoplace.policy.networks.network import make_network, superposition_parameters
from ov_autoplace.problem.problem import Problem
from random_tables import make_table

pytestmark = pytest.mark.torch

SMALL = replace(CONFIGS["gdp"], hidden=16)


def edgeless():
    """Five units that send each other nothing."""
    return PolicyGraph.of(Problem.of(make_table(np.arange(10.0).reshape(5, 2) + 1, [])))


def scores(network, graphs):
    network.eval()
    with torch.no_grad():
        return network(collate(graphs)).logits


@pytest.mark.parametrize("name", list(CONFIGS))
def test_every_configuration_places_and_all_its_parameters_learn(name):
    network = make_network(CONFIGS[name], seed=1)
    batch = random_batch([1, 2, 3])
    policy = PlacementDistribution(network(batch))
    actions = policy.sample(3, torch.Generator().manual_seed(0))
    allowed = batch.allowed.numpy()
    assert allowed[np.arange(batch.num_nodes), actions.numpy()].all()
    policy.log_prob(actions).sum().backward()
    # The last layers of superposition start at zero, which stops gradients to what lies before them.
    first = {id(p) for p in superposition_parameters(network)}
    missing = [n for n, p in network.named_parameters() if p.grad is None and id(p) not in first]
    assert not missing


def test_weights_depend_on_the_seed_alone():
    torch.manual_seed(5)
    left = make_network(SMALL, seed=3).state_dict()
    torch.manual_seed(6)
    right = make_network(SMALL, seed=3).state_dict()
    other = make_network(SMALL, seed=4).state_dict()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert any(not torch.equal(left[name], other[name]) for name in left)


def test_graphs_of_a_batch_do_not_see_each_other():
    network = make_network(SMALL, seed=0)
    graphs = [random_graph(seed, 10 + seed) for seed in range(4)]
    together = scores(network, graphs)
    alone = torch.cat([scores(network, [graph]) for graph in graphs])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)


@pytest.mark.dgl
@pytest.mark.parametrize("name", list(CONFIGS))
@pytest.mark.parametrize("kind", ["a batch", "a single unit", "no edges"])
def test_dgl_and_bags_give_the_same_scores_and_gradients(name, kind):
    batched = {"a batch": [(1, 24), (2, 7), (3, 1)], "a single unit": [(4, 1)]}
    graphs = [random_graph(*sizes) for sizes in batched[kind]] if kind in batched else [edgeless()]
    answers = []
    for implementation in ("bag", "dgl"):
        network = make_network(replace(CONFIGS[name], hidden=16), seed=0).eval()
        batch = collate(graphs, implementation)
        output = network(batch)
        output.logits[output.logits.isfinite()].square().sum().backward()
        answers.append((output.logits, {n: p.grad for n, p in network.named_parameters()}))
    (scores_of_bag, by_bag), (scores_of_dgl, by_dgl) = answers
    torch.testing.assert_close(scores_of_bag, scores_of_dgl, atol=1e-5, rtol=1e-5)
    assert any(gradient is not None and gradient.abs().sum() > 0 for gradient in by_bag.values())
    for parameter, gradient in by_bag.items():
        if gradient is None or by_dgl[parameter] is None:
            assert gradient is by_dgl[parameter], parameter
            continue
        size = 1 + float(gradient.abs().max())
        torch.testing.assert_close(gradient / size, by_dgl[parameter] / size, atol=1e-5, rtol=1e-5)


def test_superposition_starts_as_the_network_without_it():
    batch = random_batch([5])
    with_it = make_network(SMALL, seed=0)
    without = make_network(replace(SMALL, superposition=False), seed=0)
    shared = {n: v for n, v in with_it.state_dict().items() if "superposition" not in n}
    without.load_state_dict(shared)
    torch.testing.assert_close(with_it(batch).logits, without(batch).logits)
    assert superposition_parameters(with_it)
    assert not superposition_parameters(without)


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("hsdag", {"encoder": "gat"}, "encoder is 'gat'; it can be gcn, sage"),
        ("hsdag", {"placer": "equivariant"}, "placer is 'equivariant'; it can be mlp, attention"),
        ("hsdag", {"num_devices": None}, "num_devices is None; it must be of type int"),
        ("gdp", {"coarse": True}, "a network has no hyper-parameter 'coarse'"),
        ("gdp", {"superposition": 1}, "it must be of type bool"),
    ],
)
def test_a_configuration_that_cannot_be_built_is_refused(name, change, problem):
    with pytest.raises(OptionError, match=problem):
        NetworkConfig.from_dict({**CONFIGS[name].to_dict(), **change})


def test_a_configuration_survives_as_a_dictionary():
    for config in CONFIGS.values():
        assert NetworkConfig.from_dict(config.to_dict()) == config
    with pytest.raises(OptionError, match="no hyper-parameter 'width'"):
        NetworkConfig.from_dict({**SMALL.to_dict(), "width": 3})
    with pytest.raises(OptionError, match="incomplete"):
        NetworkConfig.from_dict({})
