"""The placement network: an encoder, a grouper and a placer, as a configuration composes them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.policy.networks.multilevel import MultilevelNetwork, fastest_scores
from ov_autoplace.policy.networks.papers.encoders import make_encoder
from ov_autoplace.policy.networks.papers.groupers import make_grouper
from ov_autoplace.policy.networks.papers.placers import make_placer

__all__ = ["PlacementNetwork", "make_network", "superposition_parameters"]


class PlacementNetwork(nn.Module):
    """From a batch of graphs to a distribution over placements of each.

    Attributes:
        config: What it is made of.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        if config.encoder == "multilevel":
            self.multilevel = MultilevelNetwork(config)
        else:
            self.encoder = make_encoder(config)
            self.grouper = make_grouper(config)
            self.placer = make_placer(config)

    def forward(self, batch: GraphBatch, state: Tensor | None = None) -> PolicyOutput:
        """The network's answer.

        Args:
            batch: B graphs with N units on D devices.
            state: ``PolicyOutput.state`` of the step before, where there is one, ``[N, hidden]``.
        """
        if self.config.encoder == "multilevel":
            answers = self.multilevel(batch)
            # Of the answers that it has looked at, the last one included.
            looked_at = [answers[rounds[-1]] for rounds in self.multilevel.stages]
            logits = fastest_scores(batch, looked_at) if len(looked_at) > 1 else looked_at[0]
            units = torch.arange(batch.num_nodes, device=logits.device)
            return PolicyOutput(
                logits.masked_fill(~batch.allowed, -torch.inf), units, batch.graph_of, batch.num_graphs
            )
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

    def answers(self, batch: GraphBatch) -> list[Tensor]:
        """Scores of every unit after each round, ``[N, D]``, the last ones final; forbidden = very low."""
        if self.config.encoder == "multilevel":
            answers: list[Tensor] = self.multilevel(batch)
            return answers
        output = self(batch)
        return [output.logits.clamp(min=-1e9)[output.row_of]]


def make_network(config: str | NetworkConfig, seed: int) -> PlacementNetwork:
    """A network with fresh weights that depend on the seed alone.

    Args:
        config: A configuration, or the name of one in :data:`~ov_autoplace.policy.config.CONFIGS`.
        seed: Of the weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PlacementNetwork(CONFIGS[config] if isinstance(config, str) else config)


def superposition_parameters(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that condition ``network`` on its graph: those of all parts named ``superposition``."""
    return [value for name, value in network.named_parameters() if "superposition" in name.split(".")]
