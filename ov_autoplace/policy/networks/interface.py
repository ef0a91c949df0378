"""What all networks have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.distribution import PolicyOutput

__all__ = ["PlacementNetwork"]


class PlacementNetwork(nn.Module, ABC):
    """From a batch of graphs to a distribution over placements of each.

    Attributes:
        config: What it is made of.
    """

    config: NetworkConfig

    @abstractmethod
    def forward(self, batch: GraphBatch, state: Tensor | None = None) -> PolicyOutput:
        """The network's answer.

        Args:
            batch: B graphs with N units on D devices.
            state: ``PolicyOutput.state`` of the step before, where there is one, ``[N, hidden]``.
        """
