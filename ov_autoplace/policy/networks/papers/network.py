"""The network of the papers: an encoder, a grouper and a placer, as a configuration composes them."""

from __future__ import annotations

import torch
from torch import Tensor

from ov_autoplace.policy.config import ComposedConfig
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.papers.encoders import make_encoder
from ov_autoplace.policy.networks.papers.groupers import make_grouper
from ov_autoplace.policy.networks.papers.placers import make_placer

__all__ = ["ComposedNetwork"]


class ComposedNetwork(PlacementNetwork):
    """HSDAG's and GDP's networks, and mixtures of them."""

    def __init__(self, config: ComposedConfig) -> None:
        super().__init__()
        self.config: ComposedConfig = config
        self.encoder = make_encoder(config)
        self.grouper = make_grouper(config)
        self.placer = make_placer(config)

    def forward(self, batch: GraphBatch, state: Tensor | None = None) -> PolicyOutput:
        """See :class:`~ov_autoplace.policy.networks.interface.PlacementNetwork`."""
        graph = self.grouper.coarsen(batch)
        grouping = self.grouper(self.encoder(batch, graph, state), graph, state)
        logits = self.placer(grouping.z_rows, batch, grouping)
        return PolicyOutput(
            logits.masked_fill(~grouping.allowed, -torch.inf),
            grouping.row_of,
            grouping.graph_of_row,
            batch.num_graphs,
            grouping.link_score,
            grouping.state,
        )
