"""Parameter superposition (GDP, arXiv 1910.01578): one policy for many graphs, told which it works on."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.encoders import input_width, unit_inputs

__all__ = ["Superposition"]


class Superposition(nn.Module):
    """A vector made from the mean of a graph's inputs, which multiplies what enters each layer of the placer.

    It starts as all ones, whatever the graph: a network that has not trained it is the network without it.
    So it can be added to a trained network and be trained alone.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        last = nn.Linear(config.hidden, config.hidden)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.condition = nn.Sequential(nn.Linear(input_width(config), config.hidden), nn.ReLU(), last)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Factors of each graph, between 0 and 2, ``[B, hidden]``."""
        inputs = unit_inputs(batch, self.config)
        total = inputs.new_zeros(batch.num_graphs, inputs.shape[1]).index_add(0, batch.graph_of, inputs)
        units = torch.bincount(batch.graph_of, minlength=batch.num_graphs)
        change: Tensor = self.condition(total / units.clamp(min=1)[:, None])
        return 1.0 + torch.tanh(change)
