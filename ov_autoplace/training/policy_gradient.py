"""How a policy learns from the latencies of its own placements: PPO.

It does not know where latencies come from, the simulator or a device. One placement is one action: all
units of a graph are decided at once, so there are no time steps and no value network, and the other samples
of the same graph are the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ov_autoplace.policy.networks.distribution import PlacementDistribution

__all__ = [
    "PolicyGradientSettings",
    "leave_one_out",
    "rollout",
    "update",
]


@dataclass(frozen=True, slots=True)
class PolicyGradientSettings:
    """PPO (Schulman et al., 2017, arXiv 1707.06347) with a leave-one-out baseline (Kool et al., 2019).

    Attributes:
        samples: Placements sampled per graph and update, k; at least 2, or there is no baseline.
        epochs: Gradient steps per update, each over all samples.
        clip: Samples whose probability has changed by more than this factor get no further gradient.
        entropy: Weight of the entropy bonus (nats per decision).
        learning_rate: Of Adam.
        max_grad_norm: Gradients are scaled down to this norm.
        normalise: Divide advantages by their root mean square over the whole batch.
    """

    samples: int = 8
    epochs: int = 4
    clip: float = 0.2
    entropy: float = 0.01
    learning_rate: float = 1e-3
    max_grad_norm: float = 1.0
    normalise: bool = True


class Rollout(NamedTuple):
    """Placements that a policy sampled.

    Attributes:
        actions: Device of every unit of the batch, ``int64[k, N]``.
        log_probs: Their log-probabilities under that policy, per graph, ``float[k, B]``.
    """

    actions: Tensor
    log_probs: Tensor


def rollout(network: nn.Module, batch: Any, samples: int, generator: torch.Generator) -> Rollout:
    """Sample k placements of every graph of a batch, without dropout."""
    with torch.no_grad(), _without_dropout(network):
        policy = PlacementDistribution(network(batch))
        actions = policy.sample(samples, generator)
        return Rollout(actions, policy.log_prob(actions))


def update(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    actions: Tensor,
    old_log_probs: Tensor,
    rewards: ArrayLike | Tensor,
    settings: PolicyGradientSettings,
) -> dict[str, float]:
    """Make placements that were better than their siblings more likely: one update of PPO.

    Args:
        network: The policy; called as ``network(batch)``, without dropout, as the samples were drawn.
        optimizer: Of the network's parameters.
        batch: The B graphs.
        actions: Sampled placements, ``int64[k, N]``.
        old_log_probs: Their log-probabilities when they were sampled, ``float[k, B]``.
        rewards: Rewards as :meth:`Environment.rewards` gives them, ``float64[B, k]``; those that are not
            finite are masked: they are in no mean, no baseline and no gradient.
        settings: The hyper-parameters.

    Returns:
        Of the last epoch ``loss``, ``policy_loss``, ``entropy`` (nats per decision), ``approx_kl``,
        ``clip_fraction`` and ``grad_norm`` (before clipping); of the samples ``mean_reward``, ``best_reward``
        (mean over graphs) and ``legal_fraction``. Rewards are NaN where every sample was masked.
    """
    reward = torch.as_tensor(rewards, dtype=torch.float64).T
    advantage = _advantages(reward, settings.normalise)
    metrics: dict[str, float] = {}
    with _without_dropout(network):
        for _ in range(settings.epochs):
            loss, metrics = _surrogate_loss(network, batch, actions, old_log_probs, advantage, settings)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            grad_norm = nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
            optimizer.step()
            metrics["grad_norm"] = grad_norm.item()
    return metrics | _reward_metrics(reward)


def _advantages(rewards: Tensor, normalise: bool) -> Tensor:
    """What each sample counts in PPO's loss.

    Args:
        rewards: ``float64[k, B]``; not finite = masked.
        normalise: Divide by the root mean square.

    Returns:
        ``float64[k, B]``; NaN = masked.
    """
    legal = torch.isfinite(rewards)
    advantage = leave_one_out(rewards)
    if normalise:
        advantage = advantage / (advantage[legal].square().mean().sqrt() + 1e-8)
    return advantage.masked_fill(~legal, torch.nan)


def _surrogate_loss(
    network: nn.Module,
    batch: Any,
    actions: Tensor,
    old_log_probs: Tensor,
    advantage: Tensor,
    settings: PolicyGradientSettings,
) -> tuple[Tensor, dict[str, float]]:
    """PPO's loss, and what it is made of.

    Args:
        network: The policy, without dropout.
        batch: The B graphs.
        actions: Sampled placements, ``int64[k, N]``.
        old_log_probs: Their log-probabilities when they were sampled, ``float[k, B]``.
        advantage: Of :func:`_advantages`, ``float64[k, B]``.
        settings: The hyper-parameters.
    """
    legal = torch.isfinite(advantage).to(old_log_probs.device)
    gain = advantage.to(old_log_probs)[legal]
    num_samples = max(len(gain), 1)  # there may be none at all
    policy = PlacementDistribution(network(batch))
    log_ratio = policy.log_prob(actions)[legal] - old_log_probs[legal]
    # Beyond e^20 a ratio says no more, and its gradient would overflow.
    ratio = log_ratio.clamp(-20, 20).exp()
    clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
    surrogate = torch.minimum(ratio * gain, clipped * gain).sum() / num_samples
    entropy = policy.entropy().sum() / advantage.shape[1]
    loss = -surrogate - settings.entropy * entropy
    with torch.no_grad():
        metrics = {
            "loss": loss.item(),
            "policy_loss": -surrogate.item(),
            "entropy": entropy.item(),
            "approx_kl": ((ratio - 1) - ratio.log()).sum().item() / num_samples,
            "clip_fraction": ((ratio - 1).abs() > settings.clip).sum().item() / num_samples,
        }
    return loss, metrics


def _reward_metrics(reward: Tensor) -> dict[str, float]:
    """What :func:`update` says of rewards ``float64[k, B]``."""
    legal = torch.isfinite(reward)
    best = reward.masked_fill(~legal, -torch.inf).amax(dim=0)
    return {
        "mean_reward": _mean(reward[legal]),
        "best_reward": _mean(best[torch.isfinite(best)]),
        "legal_fraction": legal.double().mean().item(),
    }


def leave_one_out(rewards: Tensor) -> Tensor:
    """Reward minus the mean reward of the *other* legal samples of the same graph.

    Unlike the mean of all samples, that baseline does not depend on the sample itself, so the gradient stays
    unbiased.

    Args:
        rewards: ``float[k, B]``; not finite = masked.

    Returns:
        Advantages, ``float[k, B]``; 0 where masked, and where there is no other legal sample.
    """
    legal = torch.isfinite(rewards)
    known = rewards.masked_fill(~legal, 0)
    others = legal.sum(dim=0) - 1
    baseline = (known.sum(dim=0) - known) / others.clamp(min=1)
    return torch.where(legal & (others > 0), known - baseline, 0)


@contextmanager
def _without_dropout(network: nn.Module) -> Iterator[None]:
    """Evaluation mode: a ratio of probabilities means nothing when each side dropped other activations."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)


def _mean(values: Tensor) -> float:
    """Mean of some numbers, NaN of none."""
    return values.mean().item() if values.numel() else float("nan")
