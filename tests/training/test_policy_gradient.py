"""PPO: the arithmetic against plain loops, and that it learns."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from ov_autoplace.policy.networks.distribution import PlacementDistribution
from ov_autoplace.training.policy_gradient import (
    PolicyGradientSettings,
    leave_one_out,
    rollout,
    update,
)
from training.chains import best_of_chain, chain_table, fast_and_slow
from training.small_policies import SmallNetwork, parameters, problem

pytestmark = pytest.mark.torch


def chains():
    """Three chains of different lengths, of which each needs another answer."""
    return [chain_table(fast_and_slow(d)) for d in ([0, 0, 1], [1, 1, 1, 0, 0, 0], [0, 1, 0, 1])]


def equal(ours, theirs) -> bool:
    return all(map(torch.equal, ours, theirs))


def rewards_of(environment, actions):
    return environment.rewards(environment.latencies(environment.split(actions.numpy())))


@pytest.mark.seeds(5)
def test_leave_one_out_advantages_equal_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(6, 9))
    rewards[rng.random(rewards.shape) < 0.3] = -np.inf
    rewards[:, 0] = [-np.inf] * 6
    rewards[:, 1] = [-np.inf] * 5 + [1.0]
    advantages = leave_one_out(torch.from_numpy(rewards)).numpy()
    for k in range(6):
        for b in range(9):
            others = [rewards[i, b] for i in range(6) if i != k and math.isfinite(rewards[i, b])]
            masked = not math.isfinite(rewards[k, b]) or not others
            expected = 0.0 if masked else rewards[k, b] - sum(others) / len(others)
            assert advantages[k, b] == pytest.approx(expected, abs=1e-12)


def test_log_probabilities_are_those_of_the_sampling_policy_so_the_first_ratio_is_one():
    environment, batch = problem(*chains())
    network = SmallNetwork.for_batch(batch, seed=0, dropout=0.5).train()
    actions, log_probs = rollout(network, batch, 8, torch.Generator().manual_seed(1))
    assert actions.shape == (8, 13)
    assert network.training
    for k in range(8):
        for b in range(3):
            rows = (batch.graph_of == b).numpy()
            logits = network.eval()(batch).logits.detach().double().numpy()[rows]
            chosen = logits[np.arange(len(logits)), actions[k, rows].numpy()]
            expected = (chosen - np.log(np.exp(logits).sum(axis=1))).sum()
            assert float(log_probs[k, b]) == pytest.approx(expected, abs=1e-4)
    network.train()
    metrics = update(
        network,
        torch.optim.SGD(network.parameters(), lr=0.0),
        batch,
        actions,
        log_probs,
        rewards_of(environment, actions),
        PolicyGradientSettings(epochs=1),
    )
    assert network.training
    assert metrics["approx_kl"] == pytest.approx(0.0, abs=1e-9)
    assert metrics["clip_fraction"] == 0.0


@pytest.mark.parametrize("normalise", [True, False])
def test_the_first_step_is_the_policy_gradient_of_a_plain_loop(normalise):
    environment, batch = problem(*chains())
    network = SmallNetwork.for_batch(batch, seed=3)
    actions, log_probs = rollout(network, batch, 5, torch.Generator().manual_seed(1))
    rewards = rewards_of(environment, actions)
    settings = PolicyGradientSettings(epochs=1, entropy=0.1, max_grad_norm=1e9, normalise=normalise)

    plain = copy.deepcopy(network)
    advantages = np.array(
        [[rewards[b, k] - np.delete(rewards[b], k).mean() for b in range(3)] for k in range(5)]
    )
    if normalise:
        advantages /= np.sqrt((advantages**2).mean())
    logits = plain(batch).logits
    log_p = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    objective = torch.zeros(())
    for k in range(5):
        for n in range(13):
            objective = objective + advantages[k, int(batch.graph_of[n])] * log_p[n, actions[k, n]] / 15
    for b in range(3):
        rows = log_p[batch.graph_of == b]
        objective = objective + 0.1 * -(rows.exp() * rows).sum(dim=1).mean() / 3
    (-objective).backward()

    before = parameters(network)
    update(
        network, torch.optim.SGD(network.parameters(), lr=1.0), batch, actions, log_probs, rewards, settings
    )
    for old, new, expected in zip(before, network.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(old - new.detach(), expected.grad, rtol=1e-4, atol=1e-6)


def test_masked_samples_contribute_nothing():
    environment, batch = problem(*chains())
    network = SmallNetwork.for_batch(batch, seed=0)
    actions, log_probs = rollout(network, batch, 6, torch.Generator().manual_seed(2))
    rewards = rewards_of(environment, actions)
    illegal = np.zeros((3, 6), dtype=bool)
    illegal[0, [1, 4]] = illegal[2, 0] = True
    illegal[1, :5] = True  # one sample left: nothing to compare it with
    rewards[illegal] = -np.inf

    def updated(actions, log_probs, rewards):
        trained = copy.deepcopy(network)
        optimizer = torch.optim.Adam(trained.parameters(), lr=1e-2)
        settings = PolicyGradientSettings(epochs=3)
        metrics = update(trained, optimizer, batch, actions, log_probs, rewards, settings)
        return parameters(trained), metrics

    ours, metrics = updated(actions, log_probs, rewards)
    others = actions.clone()
    columns = batch.graph_of[None].expand(6, -1)
    others[torch.from_numpy(illegal).T.gather(1, columns)] = 1
    silly = log_probs.masked_fill(torch.from_numpy(illegal).T, -1234.0)
    nan = np.where(illegal, np.nan, rewards)
    theirs, same_metrics = updated(others, silly, nan)
    assert not torch.equal(actions, others)
    assert equal(ours, theirs)
    assert metrics == same_metrics
    assert metrics["legal_fraction"] == pytest.approx(10 / 18)
    assert metrics["mean_reward"] == pytest.approx(rewards[~illegal].mean())
    best = [rewards[b][~illegal[b]].max() for b in range(3)]
    assert metrics["best_reward"] == pytest.approx(np.mean(best))
    assert not equal(ours, parameters(network))


def test_when_every_sample_is_masked_only_the_entropy_bonus_acts():
    _, batch = problem(*chains())
    network = SmallNetwork.for_batch(batch, seed=0)
    actions, log_probs = rollout(network, batch, 4, torch.Generator().manual_seed(2))
    rewards = np.full((3, 4), -np.inf)
    before = parameters(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    metrics = update(
        network, optimizer, batch, actions, log_probs, rewards, PolicyGradientSettings(entropy=0.0)
    )
    assert equal(before, parameters(network))
    assert math.isnan(metrics["mean_reward"])
    assert math.isnan(metrics["best_reward"])
    assert metrics["legal_fraction"] == 0.0
    entropy = PlacementDistribution(network(batch)).entropy().mean().item()
    update(network, optimizer, batch, actions, log_probs, rewards, PolicyGradientSettings(entropy=1.0))
    assert PlacementDistribution(network(batch)).entropy().mean().item() > entropy


def test_clipping_stops_the_gradient_of_samples_that_have_changed_enough():
    """Pretend the samples came from a policy under which they were half as likely."""
    environment, batch = problem(chain_table(fast_and_slow([0, 1, 1])))
    network = SmallNetwork.for_batch(batch, seed=0)
    actions, log_probs = rollout(network, batch, 8, torch.Generator().manual_seed(2))
    rewards = rewards_of(environment, actions)
    better = leave_one_out(torch.from_numpy(rewards).T) > 0
    doubled = torch.where(better, log_probs - math.log(2), log_probs + math.log(2))
    before = parameters(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    metrics = update(
        network, optimizer, batch, actions, doubled, rewards, PolicyGradientSettings(epochs=1, entropy=0.0)
    )
    assert metrics["clip_fraction"] == 1.0
    assert metrics["approx_kl"] > 0
    assert equal(before, parameters(network))
    wide = PolicyGradientSettings(epochs=1, entropy=0.0, clip=2.0)
    update(network, optimizer, batch, actions, doubled, rewards, wide)
    assert not equal(before, parameters(network))


def test_enormous_ratios_stay_finite():
    environment, batch = problem(*chains())
    network = SmallNetwork.for_batch(batch, seed=0)
    actions, log_probs = rollout(network, batch, 8, torch.Generator().manual_seed(2))
    rewards = rewards_of(environment, actions)
    for sign in (-1, 1):
        trained = copy.deepcopy(network)
        optimizer = torch.optim.SGD(trained.parameters(), lr=1.0)
        far = log_probs + sign * 500.0
        metrics = update(trained, optimizer, batch, actions, far, rewards, PolicyGradientSettings())
        assert all(math.isfinite(value) for value in metrics.values())
        assert all(torch.isfinite(p).all() for p in trained.parameters())


def test_gradients_are_clipped_to_the_maximal_norm():
    environment, batch = problem(*chains())
    network = SmallNetwork.for_batch(batch, seed=0)
    actions, log_probs = rollout(network, batch, 8, torch.Generator().manual_seed(2))
    rewards = 1e6 * rewards_of(environment, actions)
    before = parameters(network)
    settings = PolicyGradientSettings(epochs=1, max_grad_norm=0.5, normalise=False)
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    metrics = update(network, optimizer, batch, actions, log_probs, rewards, settings)
    assert metrics["grad_norm"] > 100
    moved = sum(float((a - b).square().sum()) for a, b in zip(before, parameters(network), strict=True))
    assert math.sqrt(moved) == pytest.approx(0.5, rel=1e-3)


def test_an_update_makes_one_gradient_step_per_epoch_each_from_the_weights_of_the_last():
    environment, batch = problem(*chains())
    network = SmallNetwork.for_batch(batch, seed=0)
    actions, log_probs = rollout(network, batch, 8, torch.Generator().manual_seed(2))
    rewards = rewards_of(environment, actions)
    once = copy.deepcopy(network)
    for _ in range(3):
        optimizer = torch.optim.SGD(once.parameters(), lr=0.01)
        update(once, optimizer, batch, actions, log_probs, rewards, PolicyGradientSettings(epochs=1))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    before = parameters(network)
    metrics = update(network, optimizer, batch, actions, log_probs, rewards, PolicyGradientSettings(epochs=3))
    assert equal(parameters(once), parameters(network))
    assert not equal(before, parameters(network))
    assert metrics["approx_kl"] > 0


@pytest.mark.seeds(3)
def test_ppo_finds_the_optimum_of_a_chain_within_some_hundred_evaluations(seed):
    table = chain_table(fast_and_slow([0, 0, 0, 1, 1, 1, 1, 0, 0, 1]), transfer=0.4, launch=0.2)
    best, seconds = best_of_chain(table)
    assert len(set(best)) == 2
    environment, batch = problem(table)
    network = SmallNetwork.for_batch(batch, seed)
    settings = PolicyGradientSettings(samples=16, learning_rate=1e-2)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    generator = torch.Generator().manual_seed(seed)
    reached = []
    for _ in range(40):
        actions, log_probs = rollout(network, batch, settings.samples, generator)
        latencies = environment.latencies(environment.split(actions.numpy()))
        update(network, optimizer, batch, actions, log_probs, environment.rewards(latencies), settings)
        greedy = PlacementDistribution(network(batch)).greedy()
        reached.append(tuple(greedy.tolist()) == best)
        assert latencies.min() >= seconds - 1e-9
    assert reached[-1], f"640 evaluations did not lead to {best} but to {greedy.tolist()}"


def test_ppo_improves_several_graphs_at_once():
    tables = [chain_table(fast_and_slow(d, ratio=4.0)) for d in ([0, 0, 1], [1, 1, 1, 0, 0, 0], [0, 1, 0, 1])]
    environment, batch = problem(*tables)
    network = SmallNetwork.for_batch(batch, seed=1)
    settings = PolicyGradientSettings(samples=8, learning_rate=1e-2)
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    generator = torch.Generator().manual_seed(0)
    history = []
    for _ in range(40):
        actions, log_probs = rollout(network, batch, settings.samples, generator)
        rewards = rewards_of(environment, actions)
        history.append(update(network, optimizer, batch, actions, log_probs, rewards, settings))
    assert history[-1]["mean_reward"] > history[0]["mean_reward"] + 0.1
    assert history[-1]["entropy"] < history[0]["entropy"]
    greedy = PlacementDistribution(network(batch)).greedy()[None].numpy()
    found = environment.latencies(environment.split(greedy))[:, 0]
    assert found == pytest.approx([best_of_chain(table)[1] for table in tables])
