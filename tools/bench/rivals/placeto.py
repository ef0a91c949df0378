"""Placeto: a graph network that goes from node to node and may move each.

R. Addanki et al., "Learning Generalizable Device Placement Algorithms for Distributed Machine Learning",
NeurIPS 2019. An episode starts from some placement and visits every node once in topological order. The
policy puts the node on a device; the reward is what this makes the graph faster. Message passing embeds all
nodes, and the policy reads the embedding of the visited one and the means over its ancestors, its descendants
and the nodes parallel to it. REINFORCE with a baseline per step.

What differs from the paper: it trains one policy on many graphs, and is here trained from scratch on each
table, as in the papers that compare with it. Features hold a node's time on every device, because ours are
unequal. Rewards are logarithms of ratios, so that they do not depend on the size of the graph. Where the
paper punishes a lack of memory, an illegal move is taken back and costs 1. One worker, no entropy bonus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.problem import Problem
from rivals.neural import discounted_returns, mean_over_edges, perceptron, seeded, step
from rivals.rival import RivalOptions
from rivals.trials import Trials

_HIDDEN = 16
_ROUNDS = 8  # of message passing, the paper's sample setting
_LEARNING_RATE = 3e-3
_DISCOUNT = 0.99
_BASELINE_MEMORY = 0.9
_ILLEGAL = -1.0
_STEPS_AT_ONCE = 16  # of a gradient: bounds the memory that it takes


def search_placeto(problem: Problem, options: RivalOptions) -> Trials:
    """Train on one table until the budget is spent; every step of an episode is one evaluation.

    Raises:
        PlacementError: The table has no legal placement.
        TrainingError: No legal placement was found to start from.
    """
    trials = Trials(problem, options)
    random = np.random.default_rng(options.seed)
    with seeded(options.seed) as generator:
        policy = _Policy(trials.graph)
        optimizer = torch.optim.Adam(policy.parameters(), lr=_LEARNING_RATE)
        baseline: FloatArray | None = None
        while trials.left > 0:
            episode = _episode(policy, trials, random, generator)
            returns = discounted_returns(episode.rewards, _DISCOUNT)
            if baseline is None:
                baseline = np.full(len(trials.graph), returns.mean() if len(returns) else 0.0)
            # The last episode may have been cut short.
            advantages = returns - baseline[: len(returns)]
            step(policy, optimizer, _losses(policy, episode, advantages))
            baseline[: len(returns)] += (1 - _BASELINE_MEMORY) * advantages
    return trials


@dataclass(frozen=True, slots=True)
class _Episode:
    """What was seen, done and rewarded at each of T steps; step t visits node t.

    Attributes:
        placements: Before each step, T arrays ``int32[N]``.
        devices: Where each node was put.
        rewards: Logarithm of the latency before over the latency after.
    """

    placements: list[IntArray]
    devices: list[int]
    rewards: list[float]


def _episode(
    policy: _Policy, trials: Trials, random: np.random.Generator, generator: torch.Generator
) -> _Episode:
    """Visit every node, unless the budget ends before."""
    placement, seconds = trials.random_start(random)
    episode = _Episode([], [], [])
    for node in range(len(placement)):
        if trials.left <= 0:
            break
        with torch.no_grad():
            probabilities = policy(placement[None], np.array([node]))[0].softmax(dim=0)
        device = int(torch.multinomial(probabilities, 1, generator=generator))
        moved = placement.copy()
        moved[node] = device
        then = float(trials.seconds(moved[None])[0])
        episode.placements.append(placement)
        episode.devices.append(device)
        episode.rewards.append(_ILLEGAL if then == np.inf else log(seconds / then))
        if then < np.inf:
            placement, seconds = moved, then
    return episode


def _losses(policy: _Policy, episode: _Episode, advantages: FloatArray) -> Iterator[Tensor]:
    """The policy gradient's loss, a few steps at a time."""
    steps = len(advantages)
    for first in range(0, steps, _STEPS_AT_ONCE):
        nodes = np.arange(first, min(first + _STEPS_AT_ONCE, steps))
        log_probs = policy(np.stack([episode.placements[t] for t in nodes]), nodes).log_softmax(dim=1)
        taken = log_probs.gather(1, torch.tensor([[episode.devices[t]] for t in nodes]))[:, 0]
        yield -(taken * torch.from_numpy(advantages[nodes]).float()).sum() / steps


class _Policy(nn.Module):
    """Scores the devices for one node of one graph."""

    def __init__(self, graph: PolicyGraph) -> None:
        super().__init__()
        D = graph.num_devices
        self.source = torch.from_numpy(graph.edge_source)
        self.target = torch.from_numpy(graph.edge_target)
        self.allowed = torch.from_numpy(graph.allowed.copy())
        sizes = torch.from_numpy(np.log1p(graph.output_bytes)[:, None] / 10).float()
        # Run times and output size; the placement and the walk so far are added at every step.
        self.features = torch.cat([torch.from_numpy(graph.node_cost).log1p(), sizes], dim=1)
        self.ancestors = torch.from_numpy(_ancestors(graph))
        self.embed = perceptron(2 * D + 3, _HIDDEN, _HIDDEN)
        self.message = nn.ModuleList(perceptron(_HIDDEN, _HIDDEN, _HIDDEN) for _ in range(2))
        self.receive = nn.ModuleList(perceptron(_HIDDEN, _HIDDEN, _HIDDEN) for _ in range(2))
        self.score = perceptron(8 * _HIDDEN, 2 * _HIDDEN, D)

    def forward(self, placements: IntArray, nodes: IntArray) -> Tensor:
        """Logits of the devices of one node in each of B placements.

        Args:
            placements: ``int32[B, N]``.
            nodes: The visited one of each, ``int[B]``.

        Returns:
            ``float[B, D]``; ``-inf`` where the node may not run.
        """
        (N, D), B = self.allowed.shape, len(nodes)
        visited = torch.from_numpy(nodes).long()
        position = torch.arange(N)
        # Nodes before the visited one are done, for nodes are visited in order.
        walk = torch.stack([position == visited[:, None], position < visited[:, None]], dim=2).float()
        where = nn.functional.one_hot(torch.from_numpy(placements).long(), D).float()
        start = self.embed(torch.cat([self.features.expand(B, -1, -1), where, walk], dim=2))
        ways = ((self.source, self.target), (self.target, self.source))
        both = []
        for (sender, receiver), message, receive in zip(ways, self.message, self.receive, strict=True):
            state = start
            for _ in range(_ROUNDS):
                state = start + receive(mean_over_edges(message(state)[:, sender], receiver, N))
            both.append(state)
        embedded = torch.cat(both, dim=2)
        own = nn.functional.one_hot(visited, N).bool()
        above, below = self.ancestors[visited], self.ancestors.T[visited]
        masks = torch.stack([own, above, below, ~(own | above | below)], dim=1).float()  # [B, 4, N]
        pooled = (masks @ embedded) / masks.sum(dim=2, keepdim=True).clamp(min=1)
        logits: Tensor = self.score(pooled.flatten(1))
        return logits.masked_fill(~self.allowed[visited], -torch.inf)


def _ancestors(graph: PolicyGraph) -> np.ndarray:
    """Which nodes (columns) lead to which (rows), ``bool[N, N]``; nodes are in topological order."""
    N = len(graph)
    above = np.zeros((N, N), dtype=np.bool_)
    for source, target in zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True):
        above[target] |= above[source]
        above[target, source] = True
    return above
