"""REINFORCE as HSDAG uses it: what an episode learns from, and that it learns."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from rivals.papers import ReinforceSettings, reinforce_episode
from training.chains import chain_table, fast_and_slow
from training.small_policies import SmallNetwork, parameters, problem

pytestmark = pytest.mark.torch


def test_reinforce_weighs_each_log_probability_with_its_own_discounted_reward():
    table = chain_table(fast_and_slow([0, 0, 1, 1]))
    environment, batch = problem(table)
    network = SmallNetwork.for_batch(batch, seed=0)
    plain = copy.deepcopy(network)
    settings = ReinforceSettings(steps=6, discount=0.8, learning_rate=1.0)
    before = parameters(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    episode = reinforce_episode(
        network, optimizer, batch, environment, settings, torch.Generator().manual_seed(5)
    )
    assert episode.actions.shape == (6, 4)
    assert episode.latencies.shape == (1, 6)

    state, objective = None, torch.zeros(())
    for i in range(6):
        output = plain(batch, state)
        log_p = torch.log_softmax(output.logits, dim=1)
        chosen = sum(log_p[n, episode.actions[i, n]] for n in range(4))
        reward = (
            environment.best_single[0] / environment.latencies([episode.actions[i : i + 1].numpy()])[0, 0]
        )
        objective = objective + 0.8**i * reward * chosen
        state = output.state.detach()
    (-objective).backward()
    for old, new, expected in zip(before, network.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(old - new.detach(), expected.grad, rtol=1e-4, atol=1e-6)
    assert episode.metrics["loss"] == pytest.approx(-objective.item(), rel=1e-5)


def test_reinforce_feeds_the_state_of_each_step_to_the_next_and_starts_without_one():
    environment, batch = problem(chain_table(fast_and_slow([0, 0, 1])))
    network = SmallNetwork.for_batch(batch, seed=0)
    optimizer = torch.optim.Adam(network.parameters())
    for _ in range(2):
        network.seen_states.clear()
        reinforce_episode(
            network,
            optimizer,
            batch,
            environment,
            ReinforceSettings(steps=3),
            torch.Generator().manual_seed(5),
        )
        first, second, third = network.seen_states
        assert first is None
        assert not second.requires_grad
        assert not torch.equal(second, third)


def test_reinforce_gives_illegal_placements_no_gradient_and_single_devices_their_reward():
    """Both ops on one device overfill it, so half of the placements are illegal."""
    table = chain_table(np.ones((2, 2)), memory_bytes=np.full(2, 10.0), memory_capacity=np.full(2, 15.0))
    environment, batch = problem(table)

    def gradient(wanted):
        network = SmallNetwork.for_batch(batch, seed=0)
        for seed in range(100):
            trained = copy.deepcopy(network)
            optimizer = torch.optim.SGD(trained.parameters(), lr=1.0)
            settings = ReinforceSettings(steps=1)
            generator = torch.Generator().manual_seed(seed)
            episode = reinforce_episode(trained, optimizer, batch, environment, settings, generator)
            if np.isfinite(episode.latencies).all() == wanted:
                return [a - b for a, b in zip(parameters(network), parameters(trained), strict=True)]
        raise AssertionError("no seed drew such a placement")

    assert all((g == 0).all() for g in gradient(wanted=False))
    assert any((g != 0).any() for g in gradient(wanted=True))

    environment, batch = problem(chain_table(fast_and_slow([0, 0])))
    assert environment.rewards(environment.latencies([np.zeros((1, 2), dtype=int)])).tolist() == [[0.0]]


def test_reinforce_learns_a_chain_as_the_paper_does_it():
    table = chain_table(fast_and_slow([0, 0, 0, 1, 1, 1], ratio=8.0), transfer=0.1, launch=0.1)
    environment, batch = problem(table)
    network = SmallNetwork.for_batch(batch, seed=0)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    means = []
    for _ in range(60):
        episode = reinforce_episode(network, optimizer, batch, environment, ReinforceSettings(), generator)
        means.append(episode.latencies.mean())
    assert np.mean(means[-5:]) < 0.8 * np.mean(means[:5])
