"""The parts of autoplace-base: a state for every pair of device and node, be it a unit or a group.

All pairs are treated alike, so the network knows neither how many devices there are nor in which order:
permuting the devices of a table permutes its scores. A round is a few layers of messages and ends in scores;
the next round sees what these scores would cost each node on each device, given where its neighbours probably
are, and what all of them together would give each device to do. That is HSDAG's state update (arXiv
2405.14185, step 9) with costs in it.

OpenVINO computes elementwise one row of the last axis at a time. So what has one number for each node and
device is ``[D, M]`` here, with long rows, and states of one shape are added as ``[M, D * H]``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ov_autoplace.policy.config import MultilevelConfig
from ov_autoplace.policy.networks.batch import GraphBatch, NodeBatch
from ov_autoplace.policy.networks.messages import aggregate_edges, from_source, propagate, source_plus
from ov_autoplace.policy.nodes import ARC_FEATURES, LEVEL_FEATURES

__all__ = [
    "LOADS",
    "MessageLayer",
    "Round",
    "beyond_best_other",
    "expected_costs",
    "expected_loads",
    "signed_log",
]

LOADS = ("work_beyond_least", "work_by_mean", "bytes_held")
"""Columns of :func:`expected_loads`."""

_FEEDBACK = ("full", "full_beyond", "full_tanh", "shared_beyond", "shared_tanh", "shared")
_MADE = ("full", "shared", "full_beyond", "shared_beyond", "full_tanh", "shared_tanh")
_FEEDBACK_OF = [_MADE.index(name) for name in _FEEDBACK]


def signed_log(x: Tensor) -> Tensor:
    """As :func:`ov_autoplace.policy.nodes.signed_log`."""
    return torch.sign(x) * torch.log1p(50.0 * torch.abs(x)) / 4.0


def beyond_best_other(cost: Tensor) -> Tensor:
    """Cost on each device minus the lowest on any other, ``[..., D, n]``."""
    far = 1e9 * torch.eye(cost.shape[-2], dtype=cost.dtype, device=cost.device)
    return cost - (cost.unsqueeze(-3) + far.unsqueeze(2)).amin(dim=-2).clamp(max=1e8)


def expected_costs(nodes: NodeBatch, probability: Tensor) -> Tensor:
    """What each node would pay on each device if its neighbours were placed by ``probability``.

    Args:
        nodes: Their arcs' prices.
        probability: Of each node and device, ``[M, D]``.

    Returns:
        ``[2, D, M]``: own time plus full transfers, and own time plus shared ones.
    """
    price = (nodes.arc_price.permute(1, 2, 0) * from_source(nodes.arcs, probability).T).sum(dim=1)
    both = price, price * nodes.arc_share
    paid = torch.stack([aggregate_edges(nodes.arcs, each.T, "sum") for each in both])
    return nodes.cost.T + paid.transpose(1, 2)


def expected_loads(batch: GraphBatch, probability: Tensor) -> Tensor:
    """What other units would give each device to do and to hold, ``[len(LOADS), D, N]``.

    Args:
        batch: B graphs.
        probability: Of each of N units and D devices, ``[N, D]``.

    Returns:
        Work in the unit's window beyond that of the device with least, and by the mean over the devices; and
        the whole model's bytes on the device, by its capacity.
    """
    own = probability * batch.node_cost
    load = aggregate_edges(batch.windows, own[batch.window_children], "sum")
    there = load[batch.window_of].T
    others = there - own.T
    mean = there.mean(dim=0) + 1e-6
    units = torch.arange(own.shape[0], device=own.device)
    bytes_held = probability * batch.memory_share
    held = functional.embedding_bag(units, bytes_held, batch.node_offsets[:-1], mode="sum")
    held = torch.matmul(held.unsqueeze(1), batch.same_device).squeeze(1).clamp(max=2.0) - 1.0
    columns = (
        signed_log(beyond_best_other(others)),
        torch.tanh(others / mean - 1.0),
        held[batch.graph_of].T,
    )
    return torch.stack(columns)


class MessageLayer(nn.Module):
    """One exchange of messages: along levels, between units and groups, between devices; with residual."""

    def __init__(self, config: MultilevelConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.norm = nn.LayerNorm(hidden)
        self.message = nn.Linear(hidden, hidden)
        self.arc = nn.Linear(len(ARC_FEATURES), hidden, bias=False)
        self.own = nn.Linear(hidden, hidden)
        self.heard = nn.Linear(hidden, hidden, bias=False)
        self.members = nn.Linear(hidden, hidden, bias=False) if config.coarse else None
        self.devices = nn.Linear(hidden, hidden, bias=False) if config.cross_device else None
        self.out = nn.Linear(hidden, hidden)

    def forward(self, state: Tensor, nodes: NodeBatch) -> Tensor:
        """New states ``[M, D, H]``."""
        x = self.norm(state)
        message, arc = self.message(x).flatten(1), self.arc(nodes.arc_features).flatten(1)
        heard = aggregate_edges(nodes.arcs, torch.relu(source_plus(nodes.arcs, message, arc)), "sum")
        heard = self.heard(heard.reshape(x.shape))
        # A sum of products instead of a product with what is joined, which would be copied first.
        mixed = self.own(x) + heard * nodes.inverse_root_degree.unsqueeze(1).unsqueeze(2)
        if self.members is not None:
            mixed = mixed + self.members(propagate(nodes.members, x, reduce="mean"))
        if self.devices is not None:
            mixed = mixed + self.devices(x.mean(dim=1, keepdim=True))
        return _sum(state, self.out(torch.relu(mixed)))


def _sum(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two arrays ``[M, D, H]``."""
    return (a.flatten(1) + b.flatten(1)).reshape(a.shape)


class Round(nn.Module):
    """From states and an answer to better ones."""

    def __init__(self, config: MultilevelConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.feedback = config.feedback
        self.enter = nn.Linear(len(self.columns(config)), hidden)
        self.layers = nn.ModuleList(MessageLayer(config) for _ in range(config.layers))
        self.score = nn.Sequential(
            nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    @staticmethod
    def columns(config: MultilevelConfig) -> tuple[str, ...]:
        """Names of what enters a round."""
        loads, feedback = LOADS * config.loads, _FEEDBACK * config.feedback
        return (*LEVEL_FEATURES, "probability", *loads, *feedback)

    def forward(self, state: Tensor, seen: Tensor, nodes: NodeBatch) -> tuple[Tensor, Tensor]:
        """New states ``[M, D, H]`` and scores of the units ``[N, D]``.

        Args:
            state: ``[M, D, H]``.
            seen: Of the units, the probability of the last answer and the loads that it makes where the
                network is told, ``[N, D, 1 or 1 + len(LOADS)]``.
            nodes: Units and groups.
        """
        N = seen.shape[0]
        groups = seen.new_zeros(state.shape[0] - N, seen.shape[1], seen.shape[2])
        means = propagate(nodes.members, torch.cat((seen, groups)), reduce="mean")
        seen = torch.cat((seen, means[N:]))
        columns = [nodes.features, seen]
        if self.feedback:
            costs = expected_costs(nodes, seen[:, :, 0])
            beyond = beyond_best_other(costs)
            made = torch.cat((signed_log(torch.cat((costs, beyond))), torch.tanh(beyond)))
            columns.append(made[_FEEDBACK_OF].permute(2, 1, 0))
        state = _sum(state, self.enter(torch.cat(columns, dim=2)))
        for layer in self.layers:
            state = layer(state, nodes)
        return state, self.score(state[:N]).squeeze(2)
