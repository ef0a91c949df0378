"""The network of autoplace-base: messages between neighbours, then a score for each unit and device.

There is a state for every pair of unit and device, and all pairs are treated alike. So the network knows
neither how many devices there are nor in which order: permuting the devices of a table permutes its scores.
What tells devices apart is in the features, which compare each device with the others.

OpenVINO computes elementwise one row of the last axis at a time, so states of one shape are added as
``[N, D * H]``, with long rows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ov_autoplace.policy.arcs import ARC_FEATURES
from ov_autoplace.policy.config import PairwiseConfig
from ov_autoplace.policy.features import GRAPH_FEATURES, PAIR_FEATURES, UNIT_FEATURES
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.messages import aggregate_edges, source_plus

__all__ = ["MessageLayer", "PairwiseNetwork"]


class PairwiseNetwork(PlacementNetwork):
    """Decides about every unit by itself, all of them at once."""

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__()
        self.config: PairwiseConfig = config
        hidden = config.hidden
        width = len(PAIR_FEATURES) + len(GRAPH_FEATURES) + len(UNIT_FEATURES)
        self.embed = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.superposition = (
            Modulation(len(PAIR_FEATURES) + len(GRAPH_FEATURES), hidden) if config.superposition else None
        )
        self.layers = nn.ModuleList(MessageLayer(config) for _ in range(config.layers))
        self.score = nn.Sequential(
            nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, batch: GraphBatch, state: Tensor | None = None) -> PolicyOutput:
        """See :class:`~ov_autoplace.policy.networks.interface.PlacementNetwork`; ``state`` is not used."""
        scores = self.scores(batch).masked_fill(~batch.allowed, -torch.inf)
        units = torch.arange(batch.num_nodes, device=scores.device)
        return PolicyOutput(scores, units, batch.graph_of, batch.num_graphs)

    def scores(self, batch: GraphBatch) -> Tensor:
        """How good each device is for each unit, ``[N, D]``; forbidden devices count for nothing."""
        state = self._embedded(batch)
        for layer in self.layers:
            state = layer(state, batch)
        scores: Tensor = self.score(state).squeeze(2)
        return scores

    def _embedded(self, batch: GraphBatch) -> Tensor:
        """States of the units ``[N, D, H]``."""
        of_unit = torch.cat((batch.graph_features[batch.graph_of], batch.unit_features), dim=1)
        unit = of_unit.unsqueeze(1).expand(-1, batch.num_devices, -1)
        embedded: Tensor = self.embed(torch.cat((batch.pair_features, unit), dim=2))
        return embedded if self.superposition is None else embedded * self.superposition(batch)


class MessageLayer(nn.Module):
    """One exchange of messages between neighbours, with residual."""

    def __init__(self, config: PairwiseConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.norm = nn.LayerNorm(hidden)
        self.message = nn.Linear(hidden, hidden)
        self.arc = nn.Linear(len(ARC_FEATURES), hidden, bias=False)
        self.own = nn.Linear(hidden, hidden)
        self.heard = nn.Linear(hidden, hidden, bias=False)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, state: Tensor, batch: GraphBatch) -> Tensor:
        """New states ``[N, D, H]``."""
        x = self.norm(state)
        message, arc = self.message(x).flatten(1), self.arc(batch.arc_features).flatten(1)
        heard = aggregate_edges(batch.arcs, torch.relu(source_plus(batch.arcs, message, arc)), "sum")
        heard = self.heard(heard.reshape(x.shape))
        # A sum of products instead of a product with what is joined, which would be copied first.
        mixed = self.own(x) + heard * batch.inverse_root_degree.unsqueeze(1).unsqueeze(2)
        return _added(state, self.out(torch.relu(mixed)))


class Modulation(nn.Module):
    """Superposition (GDP, arXiv 1910.01578): a vector made from the graph multiplies the units' states.

    It starts as all ones, so a network without it and one that has not trained it are the same.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.condition = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        last = self.condition[2]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Factors of each unit, ``[N, 1, H]``."""
        pair = batch.pair_features.mean(dim=1)
        units = torch.arange(pair.shape[0], device=pair.device)
        mean = functional.embedding_bag(units, pair, batch.node_offsets[:-1], mode="mean")
        graph = torch.cat((mean, batch.graph_features), dim=1)
        factors = 1.0 + torch.tanh(self.condition(graph))
        return factors[batch.graph_of].unsqueeze(1)


def _added(a: Tensor, b: Tensor) -> Tensor:
    """The sum of two arrays ``[N, D, H]``."""
    return (a.flatten(1) + b.flatten(1)).reshape(a.shape)
