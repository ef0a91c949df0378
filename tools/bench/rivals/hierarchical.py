"""The RNN grouper-placer: a network that groups ops, and a sequence-to-sequence one that places groups.

A. Mirhoseini et al., "A Hierarchical Model for Device Placement", ICLR 2018, whose placer is that of their
"Device Placement Optimization with Reinforcement Learning" (ICML 2017). A feed-forward *grouper* draws a
group for each op. A group is described by its op types, its output size and the groups that it exchanges
tensors with. The *placer*, a bidirectional LSTM over the groups and an LSTM with attention that answers,
draws a device for each. Both learn by REINFORCE with an exponential moving average as the baseline. The
reward is **minus** the square root of the time: published code with the time itself as the "reward" learns to
be slow.

What differs from the paper, which like this trains on one graph: there graphs have tens of thousands of ops,
and here both they and the networks are smaller (32 groups and 64 units for 256 and 512); gradients are
clipped. An op's neighbours enter as the mean of their features. A placement that cannot run counts as a
hundred times as slow as the best single device. A member that may not run on its group's device goes to the
fastest one that may.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.problem import Problem
from rivals.neural import mean_over_edges, perceptron, seeded, step
from rivals.rival import RivalOptions
from rivals.trials import Trials

_GROUPS = 32
_GROUPER_HIDDEN = 64  # as in the released controller
_PLACER_HIDDEN = 64
_SAMPLES = 10  # placements per update
_LEARNING_RATE = 3e-3
_BASELINE_MEMORY = 0.9
_FAILING = 100.0  # times the best single device


def search_hierarchical(problem: Problem, options: RivalOptions) -> Trials:
    """Train on one table until the budget is spent.

    Raises:
        PlacementError: The table has no legal placement.
    """
    trials = Trials(problem, options)
    fastest = np.where(trials.graph.allowed, trials.graph.node_cost, np.inf).argmin(axis=1)
    with seeded(options.seed) as generator:
        policy = _Policy(trials.graph)
        optimizer = torch.optim.Adam(policy.parameters(), lr=_LEARNING_RATE)
        baseline: float | None = None
        while trials.left > 0:
            devices, log_prob = policy.sample(min(_SAMPLES, trials.left), generator)
            wanted = devices.numpy()
            may = np.take_along_axis(trials.graph.allowed[None], wanted[..., None], axis=2)[..., 0]
            seconds = trials.seconds(np.where(may, wanted, fastest).astype(np.int32))
            slowness = np.minimum(seconds / trials.reference_seconds, _FAILING)
            reward = -np.sqrt(slowness)
            # The first samples are their own baseline.
            expected = float(reward.mean()) if baseline is None else baseline
            advantage = torch.from_numpy(reward - expected).float()
            step(policy, optimizer, [-(advantage * log_prob).mean()])
            baseline = _BASELINE_MEMORY * expected + (1 - _BASELINE_MEMORY) * float(reward.mean())
    return trials


class _Policy(nn.Module):
    """Draws a group for each of N units, and a device for each of K groups."""

    def __init__(self, graph: PolicyGraph) -> None:
        super().__init__()
        self.devices = graph.num_devices
        self.groups = min(_GROUPS, len(graph))
        self.source = torch.from_numpy(graph.edge_source)
        self.target = torch.from_numpy(graph.edge_target)
        _, types = np.unique(graph.op_type, return_inverse=True)
        self.types = nn.functional.one_hot(torch.from_numpy(types)).float()
        self.bytes = torch.from_numpy(np.log1p(graph.output_bytes) / 10).float()
        own = torch.cat([self.types, torch.from_numpy(graph.node_features)], dim=1)
        near = [
            mean_over_edges(own[a], b, len(graph))
            for a, b in ((self.source, self.target), (self.target, self.source))
        ]
        self.features = torch.cat([own, *near], dim=1)
        self.grouper = perceptron(self.features.shape[1], _GROUPER_HIDDEN, self.groups)
        described = self.types.shape[1] + 2 + self.groups
        self.encoder = nn.LSTM(described, _PLACER_HIDDEN, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * _PLACER_HIDDEN, _PLACER_HIDDEN)
        self.previous = nn.Embedding(self.devices + 1, _PLACER_HIDDEN)  # the last row: nothing yet
        self.decoder = nn.LSTMCell(_PLACER_HIDDEN, _PLACER_HIDDEN)
        self.attend = perceptron(2 * _PLACER_HIDDEN, _PLACER_HIDDEN, 1)
        self.choose = nn.Linear(2 * _PLACER_HIDDEN, self.devices)

    def sample(self, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw k placements.

        Returns:
            Device of each unit, ``int64[k, N]``, and the log-probability of all that was drawn, ``[k]``.
        """
        of_group = torch.log_softmax(self.grouper(self.features), dim=1)
        group = torch.multinomial(of_group.detach().exp(), samples, replacement=True, generator=generator).T
        grouped = of_group.gather(1, group.T).sum(dim=0)
        member = nn.functional.one_hot(group, self.groups).float()  # [k, N, K]
        device, placed = self._place(self._described(member), member.any(dim=1), generator)
        return device.gather(1, group), grouped + placed

    def _described(self, member: Tensor) -> Tensor:
        """Features of each group, ``[k, K, F]``."""
        counts = member.transpose(1, 2) @ self.types
        size = member.transpose(1, 2) @ self.bytes[:, None]
        links = member[:, self.source].transpose(1, 2) @ member[:, self.target]
        touches = ((links + links.transpose(1, 2)) > 0).float()
        members = counts.sum(dim=2, keepdim=True)
        return torch.cat([counts / members.clamp(min=1), size.log1p(), members.log1p(), touches], dim=2)

    def _place(self, described: Tensor, used: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Device of each group, ``int64[k, K]``, and the log-probability of those that are not empty."""
        k = len(described)
        memory, _ = self.encoder(described)
        keys = self.bridge(memory)
        hidden = keys[:, -1].tanh()
        cell = torch.zeros_like(hidden)
        device = torch.full((k,), self.devices)
        devices = []
        total = described.new_zeros(k)
        for group in range(self.groups):
            hidden, cell = self.decoder(self.previous(device), (hidden, cell))
            query = hidden[:, None].expand_as(keys)
            weight = self.attend(torch.cat([keys, query], dim=2)).softmax(dim=1)
            # The group itself is what is asked about; attention tells of the others.
            context = (weight * keys).sum(dim=1) + keys[:, group]
            log_prob = torch.log_softmax(self.choose(torch.cat([hidden, context], dim=1)), dim=1)
            device = torch.multinomial(log_prob.detach().exp(), 1, generator=generator)[:, 0]
            total = total + log_prob.gather(1, device[:, None])[:, 0] * used[:, group]
            devices.append(device)
        return torch.stack(devices, dim=1), total
