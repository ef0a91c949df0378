"""The papers' protocol: one network trained on one table within a budget of simulated placements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.environment import Environment
from ov_autoplace.training.policy_gradient import PolicyGradientSettings
from rivals.papers import ReinforceSettings, search
from training.chains import best_of_chain, chain_seconds, chain_table, fast_and_slow
from training.small_policies import SmallNetwork

pytestmark = pytest.mark.torch

TABLE = chain_table(fast_and_slow([0, 0, 0, 1, 1, 1, 1, 0, 0, 1]), transfer=0.4, launch=0.2)
FAST = PolicyGradientSettings(learning_rate=1e-2)


def environment(table=TABLE):
    return Environment([Problem.of(table)])


def small_network(seed: int = 0) -> SmallNetwork:
    return SmallNetwork.for_batch(collate([PolicyGraph.of(Problem.of(TABLE))]), seed)


def test_the_search_finds_the_optimum_and_says_what_it_cost():
    found = search(environment(), small_network(), evaluations=500, settings=FAST)
    best, seconds = best_of_chain(TABLE)
    assert tuple(found.assignment.tolist()) == best
    assert found.latency_seconds == pytest.approx(seconds)
    assert found.latency_seconds == found.history[-1]
    assert found.greedy_seconds == pytest.approx(seconds)
    assert found.best_single_seconds == pytest.approx(
        min(chain_seconds(TABLE, [d] * len(TABLE)) for d in (0, 1))
    )
    assert (found.protocol, found.seed) == ("ppo", 0)


@pytest.mark.parametrize("settings", [FAST, ReinforceSettings(learning_rate=1e-2)])
@pytest.mark.parametrize("evaluations", [1, 2, 50])
def test_every_evaluation_stands_in_a_history_that_never_rises(settings, evaluations):
    found = search(environment(), small_network(), evaluations, settings=settings)
    assert found.history.shape == (evaluations,)
    assert (np.diff(found.history) <= 0).all()
    assert found.latency_seconds == pytest.approx(chain_seconds(TABLE, found.assignment))


def test_the_first_evaluation_of_ppo_is_the_greedy_answer_of_the_start():
    network = small_network(seed=2)
    with torch.no_grad():
        logits = network(collate([PolicyGraph.of(Problem.of(TABLE))])).logits
    found = search(environment(), network, evaluations=1, settings=FAST)
    assert found.assignment.tolist() == logits.argmax(dim=1).tolist()
    assert found.zero_shot_seconds == found.history[0]


@pytest.mark.parametrize("settings", [FAST, ReinforceSettings()])
def test_the_same_seed_gives_the_same_search_and_another_seed_another(settings):
    runs = [search(environment(), "gdp", 60, seed, settings=settings) for seed in (3, 3, 4)]
    assert np.array_equal(runs[0].history, runs[1].history)
    assert np.array_equal(runs[0].assignment, runs[1].assignment)
    assert runs[0].greedy_seconds == runs[1].greedy_seconds
    assert not np.array_equal(runs[0].history, runs[2].history)


def test_a_search_leaves_the_given_network_and_the_global_generator_alone():
    network = small_network()
    before = [p.detach().clone() for p in network.parameters()]
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    search(environment(), network, 40, settings=FAST)
    assert torch.equal(torch.rand(3), expected)
    assert all(map(torch.equal, before, network.parameters()))
    assert network.training


def test_a_pretrained_network_starts_from_what_it_knows():
    """A network trained on the table is asked to search it again with two evaluations."""
    network = small_network()
    batch = collate([PolicyGraph.of(Problem.of(TABLE))])
    best, seconds = best_of_chain(TABLE)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(300):
        loss = torch.nn.functional.cross_entropy(network(batch).logits, torch.tensor(best))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = search(environment(), network, 2, settings=FAST)
    assert found.zero_shot_seconds == pytest.approx(seconds)
    assert found.history == pytest.approx([seconds, seconds])


@pytest.mark.parametrize(("name", "protocol"), [("hsdag", "reinforce"), ("gdp", "ppo")])
@pytest.mark.parametrize("devices", [2, 3])
def test_each_configuration_has_the_protocol_of_its_paper(name, protocol, devices):
    table = chain_table(np.random.default_rng(0).uniform(1, 2, (8, devices)))
    networks = [name, make_network(name, 0)] if devices == 2 else [CONFIGS[name]]
    for network in networks:
        found = search(environment(table), network, 10)
        assert found.protocol == protocol
        assert np.isfinite(found.latency_seconds)


def test_a_given_network_learns_with_a_tenth_of_the_learning_rate_unless_told_otherwise():
    network = small_network(seed=1)
    usual = PolicyGradientSettings()
    careful = replace(usual, learning_rate=usual.learning_rate / 10)
    histories = [
        search(environment(), network, 200, settings=settings).history for settings in (None, careful, usual)
    ]
    assert np.array_equal(histories[0], histories[1])
    assert not np.array_equal(histories[0], histories[2])


def test_hsdag_may_answer_with_a_single_device():
    """Its released code forbids that; here one device is best, and the search must find it."""
    table = chain_table(fast_and_slow([0] * 4, ratio=3.0), transfer=5.0)
    found = search(environment(table), "hsdag", 200)
    assert found.assignment.tolist() == [0, 0, 0, 0]
    assert found.latency_seconds == found.best_single_seconds


def test_pins_and_memory_limits_hold():
    table = chain_table(fast_and_slow([0] * 6), memory_bytes=np.full(6, 10.0))
    problem = Problem.of(table, memory_limits={"DEV0": 40}, pins={"group5": "DEV1"})
    network = SmallNetwork.for_batch(collate([PolicyGraph.of(problem)]), 0)
    found = search(Environment([problem]), network, 300, settings=FAST)
    assert (found.assignment == 0).sum() <= 4
    assert found.assignment[5] == 1
    assert found.latency_seconds == pytest.approx(chain_seconds(table, [0, 0, 0, 0, 1, 1]))


def test_progress_is_told_after_every_update():
    calls = []
    found = search(
        environment(), small_network(), 40, settings=FAST, progress=lambda *told: calls.append(told)
    )
    assert [done for done, _, _ in calls] == [1, 9, 17, 25, 33, 40]
    assert {total for _, total, _ in calls} == {40}
    assert [best for _, _, best in calls] == [found.history[done - 1] for done, _, _ in calls]


def test_a_search_that_cannot_work_is_one_sentence():
    with pytest.raises(TrainingError, match="at least 1 evaluation, not 0"):
        search(environment(), "gdp", 0)
    with pytest.raises(TrainingError, match="no network 'gpd'; there is hsdag, gdp"):
        search(environment(), "gpd", 10)
    two = chain_table(np.ones((2, 2)), memory_bytes=np.full(2, 10.0), memory_capacity=np.full(2, 15.0))
    network = SmallNetwork.for_batch(collate([PolicyGraph.of(Problem.of(two))]), 0)
    with torch.no_grad():
        network.out.bias.copy_(torch.tensor([50.0, -50.0]))
    with pytest.raises(TrainingError, match="none of 20 sampled placements was legal"):
        search(environment(two), network, 20, settings=FAST)
