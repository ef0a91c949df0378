"""The papers' protocol: one network, one graph, a budget of placements, the best one wins.

HSDAG and GDP learn to place one graph by trying placements of that graph.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.batch import GraphBatch, collate
from ov_autoplace.policy.networks.distribution import PlacementDistribution
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.training.environment import Environment
from ov_autoplace.training.policy_gradient import PolicyGradientSettings, rollout, update

__all__ = ["ReinforceSettings", "SearchResult", "reinforce_episode", "search"]


@dataclass(frozen=True, slots=True)
class ReinforceSettings:
    """HSDAG's protocol (arXiv 2405.14185, section 2.5 and table 6).

    Attributes:
        steps: Placements per episode, of which one gradient step is made: the paper's buffer x.
        discount: Weight of each step's reward against the one before; the paper names none, its
            released code has 0.95.
        learning_rate: Of Adam.
    """

    steps: int = 20
    discount: float = 0.95
    learning_rate: float = 1e-4


class Episode(NamedTuple):
    """One episode of REINFORCE.

    Attributes:
        actions: Device of every unit of the batch at each step, ``int64[x, N]``.
        latencies: Seconds, ``float64[B, x]``; ``inf`` = illegal.
        metrics: What the update did.
    """

    actions: Tensor
    latencies: FloatArray
    metrics: dict[str, float]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found.

    Attributes:
        assignment: Device of each group in the best placement that was simulated, ``int32[G]``.
        latency_seconds: Its latency.
        history: Latency of the best placement after each simulated one, ``float64[evaluations]``: the
            learning curve; ``inf`` until the first legal placement.
        greedy_seconds: Latency of the most likely placement of the network as it was at the end, whether or
            not it was ever sampled; ``inf`` = illegal. Not among the evaluations.
        zero_shot_seconds: The same of the network as it was at the start.
        best_single_seconds: The fastest single device, see :attr:`Environment.best_single`.
        protocol: ``"ppo"`` or ``"reinforce"``.
        seed: The seed.
    """

    assignment: IntArray
    latency_seconds: float
    history: FloatArray
    greedy_seconds: float
    zero_shot_seconds: float
    best_single_seconds: float
    protocol: str
    seed: int


def search(
    environment: Environment,
    network: str | NetworkConfig | nn.Module,
    evaluations: int = 2000,
    seed: int = 0,
    *,
    settings: PolicyGradientSettings | ReinforceSettings | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> SearchResult:
    """Train one network on one problem and keep the best placement that it ever sampled.

    Args:
        environment: Where latencies come from, with one problem.
        network: A name of ``CONFIGS`` or a configuration, to start from random parameters; or a network, of
            which a copy is trained.
        evaluations: How many placements to sample; HSDAG's budget is 2,000.
        seed: Of parameters, samples and dropout. The same seed gives the same answer on the same number of
            torch threads.
        settings: The protocol: PPO or REINFORCE. ``None`` takes REINFORCE for ``hsdag`` and PPO for all else,
            with a tenth of its learning rate for a network that is given, so as not to unlearn what it knows.
        progress: Called after every update with evaluations done, evaluations in all, and the best latency so
            far in seconds.

    Raises:
        TrainingError: The budget is not positive, the name is unknown, or no sample was legal.
    """
    if evaluations < 1:
        raise TrainingError(f"a search needs at least 1 evaluation, not {evaluations}")
    (problem,) = environment.problems
    policy, name = _policy(network, problem.table.num_devices, seed)
    if settings is None:
        settings = _settings(name, is_fresh=not isinstance(network, nn.Module))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        run = _Search(policy, collate([PolicyGraph.of(problem)]), environment, evaluations, seed, progress)
        zero_shot = run.greedy()
        if isinstance(settings, ReinforceSettings):
            run.reinforce(settings)
        else:
            run.ppo(settings)
        greedy = run.greedy()
    if run.best is None:
        raise TrainingError(
            f"none of {evaluations} sampled placements was legal; try more, or relax the limits"
        )
    return SearchResult(
        assignment=frozen_array(problem.units.to_groups(run.best), np.int32),
        latency_seconds=float(run.history[-1]),
        history=frozen_array(run.history, np.float64),
        greedy_seconds=greedy,
        zero_shot_seconds=zero_shot,
        best_single_seconds=float(environment.best_single[0]),
        protocol="reinforce" if isinstance(settings, ReinforceSettings) else "ppo",
        seed=seed,
    )


class _Search:
    """One search while it runs: what it trains, how much budget is left, and the best so far."""

    def __init__(
        self,
        network: nn.Module,
        batch: GraphBatch,
        environment: Environment,
        evaluations: int,
        seed: int,
        progress: Callable[[int, int, float], None] | None,
    ) -> None:
        self.network = network
        self.batch = batch
        self.environment = environment
        self.evaluations = evaluations
        self.generator = torch.Generator().manual_seed(seed)
        self.progress = progress
        self.history: list[float] = []
        self.best: np.ndarray | None = None

    @property
    def left(self) -> int:
        return self.evaluations - len(self.history)

    def ppo(self, settings: PolicyGradientSettings) -> None:
        """The greedy answer of the start, then rounds of k samples with one update each."""
        optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate)
        actions = self._greedy_actions()
        self._record(actions, self.environment.latencies([actions]))
        while self.left:
            samples = rollout(self.network, self.batch, min(settings.samples, self.left), self.generator)
            actions = samples.actions.numpy()
            latencies = self.environment.latencies([actions])
            rewards = self.environment.rewards(latencies)
            update(self.network, optimizer, self.batch, *samples, rewards, settings)
            self._record(actions, latencies)

    def reinforce(self, settings: ReinforceSettings) -> None:
        """Episodes of x samples with one update each."""
        optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate)
        self.network.train()
        while self.left:
            episode = reinforce_episode(
                self.network,
                optimizer,
                self.batch,
                self.environment,
                replace(settings, steps=min(settings.steps, self.left)),
                self.generator,
            )
            self._record(episode.actions.numpy(), episode.latencies)

    def greedy(self) -> float:
        """Latency of the most likely placement."""
        return float(self.environment.latencies([self._greedy_actions()])[0, 0])

    def _greedy_actions(self) -> np.ndarray:
        was_training = self.network.training
        self.network.eval()
        with torch.no_grad():
            actions = PlacementDistribution(self.network(self.batch)).greedy()[None].numpy()
        self.network.train(was_training)
        return actions

    def _record(self, actions: np.ndarray, latencies: FloatArray) -> None:
        """Take k placements ``[k, N]`` with latencies ``[1, k]`` into the history."""
        for action, seconds in zip(actions, latencies[0].tolist(), strict=True):
            best = self.history[-1] if self.history else np.inf
            if seconds < best:
                best, self.best = seconds, action
            self.history.append(best)
        if self.progress is not None:
            self.progress(len(self.history), self.evaluations, self.history[-1])


def reinforce_episode(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    environment: Environment,
    settings: ReinforceSettings,
    generator: torch.Generator,
) -> Episode:
    """HSDAG's episode: x placements one after another, then one gradient step on all of them.

    The network's node states after one placement (``PolicyOutput.state``) go into the next:
    ``network(batch, state)``. The rewards have no baseline, and the step is along

        sum_i  discount^i * reward_i * grad log p_i,    reward_i = best single device / latency_i

    so that every log-probability is weighed with its own reward. An illegal placement has reward 0 and with
    it no gradient; a placement on a single device is as good as its latency.

    Args:
        network: The policy; its dropout, if it is in training mode, takes part in sampling.
        optimizer: Of the network's parameters.
        batch: The B graphs.
        environment: The B tables.
        settings: The hyper-parameters.
        generator: Of the samples.
    """
    all_actions, all_latencies, objective = [], [], torch.zeros(())
    state = None
    for i in range(settings.steps):
        output = network(batch, state)
        policy = PlacementDistribution(output)
        actions = policy.sample(1, generator)
        latency = torch.as_tensor(environment.latencies(environment.split(actions.cpu().numpy())))
        reward = torch.tensor(environment.best_single) / latency[:, 0]
        log_prob = policy.log_prob(actions)[0]
        weight = (settings.discount**i * reward).to(log_prob)
        objective = objective.to(log_prob) + (weight * log_prob).mean()
        # An observation for the next step: gradients do not go back through it.
        state = None if output.state is None else output.state.detach()
        all_actions.append(actions)
        all_latencies.append(latency)

    optimizer.zero_grad(set_to_none=True)
    (-objective).backward()
    optimizer.step()

    latencies = torch.cat(all_latencies, dim=1).numpy()
    rewards = torch.as_tensor(environment.rewards(latencies))
    legal = torch.isfinite(rewards)
    metrics = {
        "loss": -objective.item(),
        "entropy": policy.entropy().mean().item(),
        "mean_reward": _mean(rewards[legal]),
        "legal_fraction": legal.double().mean().item(),
    }
    return Episode(torch.cat(all_actions), latencies, metrics)


def _mean(values: Tensor) -> float:
    """Mean of some numbers, NaN of none."""
    return values.mean().item() if values.numel() else float("nan")


def _settings(name: str, is_fresh: bool) -> PolicyGradientSettings | ReinforceSettings:
    """The protocol of the paper that a configuration comes from."""
    if name == "hsdag":
        return ReinforceSettings()
    settings = PolicyGradientSettings()
    return settings if is_fresh else replace(settings, learning_rate=settings.learning_rate / 10)


def _policy(network: str | NetworkConfig | nn.Module, devices: int, seed: int) -> tuple[nn.Module, str]:
    """The network to train and the name of its configuration."""
    if isinstance(network, nn.Module):
        config = getattr(network, "config", None)
        return deepcopy(network), "" if config is None else config.name
    if isinstance(network, str):
        if network not in CONFIGS:
            raise TrainingError(f"there is no network {network!r}; there is {', '.join(CONFIGS)}")
        network = CONFIGS[network]
    return make_network(network.for_devices(devices), seed), network.name
