"""The parts of autoplace-base: a state for every pair of unit and device, on every level of grouping.

All pairs are treated alike, so the network knows neither how many devices there are nor in which order:
permuting the devices of a table permutes its scores. A round walks from the finest level up to the whole
graph and back down, and ends in scores; the next round sees what these scores would cost each unit on each
device, given where its neighbours probably are. That is HSDAG's state update (arXiv 2405.14185, step 9) with
costs in it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ov_autoplace.policy.config import MultilevelConfig
from ov_autoplace.policy.levels import ARC_FEATURES, LEVEL_FEATURES
from ov_autoplace.policy.networks.batch import GraphBatch, LevelBatch
from ov_autoplace.policy.networks.messages import aggregate_edges

__all__ = [
    "LOADS",
    "MessageLayer",
    "Round",
    "beyond_best_other",
    "expected_costs",
    "expected_loads",
    "signed_log",
]

_FEEDBACK_FEATURES = 6
LOADS = 3
"""Columns of :func:`expected_loads`."""


def signed_log(x: Tensor) -> Tensor:
    """As :func:`ov_autoplace.policy.levels.signed_log`."""
    return torch.sign(x) * torch.log1p(50.0 * torch.abs(x)) / 4.0


def beyond_best_other(cost: Tensor) -> Tensor:
    """Cost on each device minus the lowest on any other, ``[n, D]``."""
    far = 1e9 * torch.eye(cost.shape[1], dtype=cost.dtype, device=cost.device)
    return cost - (cost.unsqueeze(1) + far).amin(dim=2).clamp(max=1e8)


def mean_of_others(x: Tensor) -> Tensor:
    """Mean over the other devices, ``[n, D, H]``; zero with one device."""
    D = x.shape[1]
    # A small product, since OpenVINO's sum over an inner axis takes three times as long.
    share = (1.0 - torch.eye(D, dtype=x.dtype, device=x.device)) / max(D - 1, 1)
    return torch.matmul(share, x)


def pooled(level: LevelBatch, values: Tensor) -> Tensor:
    """Mean over the members of each group, ``[groups, ...]``."""
    return aggregate_edges(level.members, values[level.children], "mean")


def expected_costs(level: LevelBatch, probability: Tensor) -> Tensor:
    """What each node would pay on each device if its neighbours were placed by ``probability``.

    Args:
        level: Its arcs' prices.
        probability: Of each node and device, ``[n, D]``.

    Returns:
        ``[n, D, 2]``: own time plus full transfers, and own time plus shared ones.
    """
    there = from_source(level.arcs, probability).unsqueeze(1)
    price = (level.arc_price * there).sum(dim=2)
    both = torch.stack((price, price * level.arc_share.unsqueeze(1)), dim=2)
    return level.cost.unsqueeze(2) + aggregate_edges(level.arcs, both, "sum")


def expected_loads(batch: GraphBatch, probability: Tensor, implementation: str) -> Tensor:
    """What other units would give each device to do and to hold, ``[N, D, LOADS]``.

    Args:
        batch: B graphs.
        probability: Of each of N units and D devices, ``[N, D]``.
        implementation: Of message passing.

    Returns:
        Work in the unit's window beyond that of the device with least, and by the mean over the devices; and
        the whole model's bytes on the device, by its capacity.
    """
    own = probability * batch.node_cost
    load = aggregate_edges(batch.windows, own[batch.window_children], "sum", implementation)
    there = load[batch.window_of]
    others = there - own
    mean = there.mean(dim=1, keepdim=True) + 1e-6
    units = torch.arange(own.shape[0], device=own.device)
    held = functional.embedding_bag(
        units, probability * batch.memory_share, batch.node_offsets[:-1], mode="sum"
    )
    held = torch.matmul(held.unsqueeze(1), batch.same_device).squeeze(1)[batch.graph_of]
    columns = (
        signed_log(beyond_best_other(others)),
        torch.tanh(others / mean - 1.0),
        held.clamp(max=2.0) - 1.0,
    )
    return torch.stack(columns, dim=2)


class MessageLayer(nn.Module):
    """One exchange of messages between neighbours and between the devices of a node, with residual."""

    def __init__(self, config: MultilevelConfig) -> None:
        super().__init__()
        hidden, cross_device = config.hidden, config.cross_device
        self.cross_device = cross_device
        wide = 2 * hidden if cross_device else hidden
        self.norm = nn.LayerNorm(hidden)
        self.message = nn.Linear(wide, hidden)
        self.arc = nn.Linear(len(ARC_FEATURES), hidden)
        self.mix = nn.Linear(wide + hidden, 2 * hidden)
        self.out = nn.Linear(2 * hidden, hidden)

    def forward(self, state: Tensor, level: LevelBatch) -> Tensor:
        """New states ``[n, D, H]``."""
        x = self.norm(state)
        if self.cross_device:
            x = torch.cat((x, mean_of_others(x)), dim=2)
        sent = torch.relu(source_plus(level.arcs, self.message(x), self.arc(level.arc_features)))
        heard = aggregate_edges(level.arcs, sent, "sum")
        heard = heard * level.inverse_root_degree.unsqueeze(1).unsqueeze(2)
        updated: Tensor = state + self.out(torch.relu(self.mix(torch.cat((x, heard), dim=2))))
        return updated


class Round(nn.Module):
    """From states and scores on the finest level to better ones, through all levels."""

    def __init__(self, config: MultilevelConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.coarse, self.feedback = config.coarse, config.feedback
        self.implementation = config.implementation
        inputs = len(LEVEL_FEATURES) + _FEEDBACK_FEATURES * config.feedback + LOADS * config.loads
        self.enter = nn.Linear(inputs, hidden)
        self.whole = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.down = nn.ModuleList(MessageLayer(config) for _ in range(config.layers))
        self.up = nn.ModuleList(MessageLayer(config) for _ in range(config.layers))
        if config.coarse:
            self.coarse_down = MessageLayer(config)
            self.coarse_up = MessageLayer(config)
            self.lift = nn.Linear(hidden, hidden)
            self.lower = nn.Linear(hidden, hidden)
        self.score = nn.Sequential(
            nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(
        self, state: Tensor, seen: Tensor, levels: tuple[LevelBatch, ...], modulation: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """New states ``[N, D, H]`` and scores ``[N, D]``.

        Args:
            state: ``[N, D, H]``.
            seen: Probability of the last answer, and the loads that it makes where the network is told,
                ``[N, D, 1 or 1 + LOADS]``.
            levels: The finest first.
            modulation: Superposition: multiplies what enters the finest level, ``[N, 1, H]``.
        """
        used = levels if self.coarse else levels[:1]
        states = []
        for depth, level in enumerate(used):
            state = state + self._entrance(level, seen)
            if depth == 0 and modulation is not None:
                state = state * modulation
            for layer in self.down if depth == 0 else (self.coarse_down,):
                state = layer(state, level)
            states.append(state)
            if depth + 1 < len(used):
                both = pooled(level, torch.cat((state, seen), dim=2), self.implementation)
                hidden = state.shape[2]
                state, seen = self.lift(both[:, :, :hidden]), both[:, :, hidden:]
        # What all nodes of a graph have in common: the mean over its coarsest grouping.
        last = used[-1]
        if self.coarse:
            whole = pooled(last, state)
            whole = self.whole(torch.cat((whole, mean_of_others(whole)), dim=2))
            below = whole[last.parent]
        else:
            below = torch.zeros_like(state)
        for depth in range(len(used) - 1, -1, -1):
            state = states[depth] + below
            for layer in self.up if depth == 0 else (self.coarse_up,):
                state = layer(state, used[depth])
            if depth:
                below = self.lower(state)[used[depth - 1].parent]
        return state, self.score(state).squeeze(2)

    def _entrance(self, level: LevelBatch, seen_before: Tensor) -> Tensor:
        columns = [level.features, seen_before[:, :, 1:]]
        if self.feedback:
            probability = seen_before[:, :, 0]
            full, shared = expected_costs(level, probability, self.implementation).unbind(dim=2)
            seen = [probability]
            for cost in (full, shared):
                seen += [signed_log(beyond_best_other(cost)), torch.tanh(beyond_best_other(cost))]
            seen.append(signed_log(full))
            columns.append(torch.stack(seen, dim=2))
        entrance: Tensor = self.enter(torch.cat(columns, dim=2))
        return entrance
