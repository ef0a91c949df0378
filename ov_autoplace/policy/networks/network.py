"""The network of the papers: an encoder, a grouper and a placer, as a configuration composes them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ov_autoplace.policy.config import NetworkConfig, config_named
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.policy.networks.encoders import make_encoder
from ov_autoplace.policy.networks.groupers import make_grouper
from ov_autoplace.policy.networks.placers import make_placer

__all__ = ["PlacementNetwork", "make_network", "superposition_parameters"]


class PlacementNetwork(nn.Module):
    """From a batch of graphs to a distribution over placements of each: HSDAG's, GDP's and mixtures of them.

    Attributes:
        config: What it is made of.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = make_encoder(config)
        self.grouper = make_grouper(config)
        self.placer = make_placer(config)

    def forward(self, batch: GraphBatch, state: Tensor | None = None) -> PolicyOutput:
        """The network's answer.

        Args:
            batch: B graphs with N units on D devices.
            state: ``PolicyOutput.state`` of the step before, where there is one, ``[N, hidden]``.
        """
        graph = self.grouper.coarsen(batch)
        grouping = self.grouper(self.encoder(batch, graph, state), graph, state)
        logits = self.placer(grouping.z_rows, batch, grouping)
        return PolicyOutput(
            logits.masked_fill(~grouping.allowed, -torch.inf),
            grouping.row_of,
            grouping.graph_of_row,
            batch.num_graphs,
            grouping.state,
        )


def make_network(config: str | NetworkConfig, seed: int = 0) -> PlacementNetwork:
    """A network with fresh weights that depend on the seed alone.

    Args:
        config: A configuration, or the name of one in :data:`~ov_autoplace.policy.config.CONFIGS`.
        seed: Of the weights.

    Raises:
        TrainingError: There is no configuration of that name.
    """
    if isinstance(config, str):
        config = config_named(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PlacementNetwork(config)


def superposition_parameters(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that condition ``network`` on its graph: those of all parts named ``superposition``."""
    return [value for name, value in network.named_parameters() if "superposition" in name.split(".")]
