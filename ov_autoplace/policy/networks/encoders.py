"""Encoders: from what is known of each unit and its neighbours to a state per row of the coarsened graph.

All widths are fixed by the configuration alone, so that weights trained on one model read any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.groupers import Contraction
from ov_autoplace.policy.networks.messages import Topology, propagate
from ov_autoplace.policy.structure import NODE_FEATURES
from ov_autoplace.policy.vocabulary import OP_TYPES

__all__ = ["GcnEncoder", "SageEncoder", "input_width", "make_encoder", "unit_inputs"]


def input_width(config: NetworkConfig) -> int:
    """Columns of :func:`unit_inputs`."""
    return len(NODE_FEATURES) + len(OP_TYPES) * config.op_types


def unit_inputs(batch: GraphBatch, config: NetworkConfig) -> Tensor:
    """What ``gcn`` and ``sage`` see of each unit, ``float32[N, input_width(config)]``.

    The structure, and the op type as one-hot; neither of the two papers reads costs.
    """
    if not config.op_types:
        return batch.node_features
    op_types = functional.one_hot(batch.op_type, len(OP_TYPES)).to(batch.node_features.dtype)
    return torch.cat([batch.node_features, op_types], dim=1)


class GcnEncoder(nn.Module):
    """Two linear layers, then graph convolutions (HSDAG, arXiv 2405.14185, step 4).

    The code released with the paper symmetrises the adjacency and so forgets who produces and who consumes.
    Here producers, consumers and the row itself have weights of their own; equal weights are the paper's
    layer. The states are normalised at the end, so that they still count beside what later steps add.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        hidden = config.hidden
        self.transform = nn.Sequential(
            nn.Linear(input_width(config), hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.norm = nn.LayerNorm(hidden)
        self.convolutions = nn.ModuleList(_Convolution(config) for _ in range(config.layers))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, batch: GraphBatch, graph: Contraction, state: Tensor | None = None) -> Tensor:
        """States of the M rows of ``graph``, ``[M, hidden]``.

        Args:
            batch: The graphs.
            graph: What a grouper has made of them.
            state: What earlier steps have added to the units' states, ``[N, hidden]``.
        """
        z: Tensor = self.transform(graph.mean(unit_inputs(batch, self.config)))
        norm = _symmetric_norm(graph.topology, z.dtype)
        for convolution in self.convolutions:
            z = self.dropout(torch.relu(convolution(z, graph.topology, norm)))
        z = self.norm(z)
        return z if state is None else z + graph.mean(state)


@dataclass(frozen=True, eq=False)
class _Norm:
    """Factors of the edges ``[E]``, of the reversed edges ``[E]``, and of the self loops ``[M]``."""

    forward: Tensor
    backward: Tensor
    loop: Tensor


class _Convolution(nn.Module):
    """``D^-1/2 (A + A^T + I) D^-1/2 Z W``, with a W of its own for each of the three terms."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.own = nn.Linear(config.hidden, config.hidden)
        self.producers = nn.Linear(config.hidden, config.hidden, bias=False)
        self.consumers = nn.Linear(config.hidden, config.hidden, bias=False)

    def forward(self, z: Tensor, topology: Topology, norm: _Norm) -> Tensor:
        from_producers = propagate(topology, z, norm.forward, "sum")
        from_consumers = propagate(topology.reversed, z, norm.backward, "sum")
        own: Tensor = self.own(norm.loop[:, None] * z)
        total: Tensor = own + self.producers(from_producers) + self.consumers(from_consumers)
        return total


def _symmetric_norm(topology: Topology, dtype: torch.dtype) -> _Norm:
    degree = topology.degree + topology.reversed.degree + 1
    root: Tensor = degree.to(dtype).rsqrt()
    forward = root[topology.source] * root[topology.target]
    return _Norm(forward, forward[topology.reversed_order], root * root)


class SageEncoder(nn.Module):
    """GraphSAGE with max pooling (GDP, arXiv 1910.01578): own state beside the maximum over neighbours.

    Producers and consumers are pooled apart, since a placement depends on the direction of data.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.enter = nn.Linear(input_width(config), config.hidden)
        self.layers = nn.ModuleList(_SageLayer(config) for _ in range(config.layers))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, batch: GraphBatch, graph: Contraction, state: Tensor | None = None) -> Tensor:
        """As :meth:`GcnEncoder.forward`."""
        z = torch.relu(self.enter(graph.mean(unit_inputs(batch, self.config))))
        for layer in self.layers:
            z = self.dropout(torch.relu(layer(z, graph.topology)))
        return z if state is None else z + graph.mean(state)


class _SageLayer(nn.Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.pool = nn.Linear(hidden, 2 * hidden)
        self.merge = nn.Linear(3 * hidden, hidden)

    def forward(self, z: Tensor, topology: Topology) -> Tensor:
        # Not negative, so that 0 for no neighbour is the least that any neighbour could say.
        to_consumers, to_producers = torch.relu(self.pool(z)).chunk(2, dim=1)
        from_producers = propagate(topology, to_consumers, None, "max")
        from_consumers = propagate(topology.reversed, to_producers, None, "max")
        merged: Tensor = self.merge(torch.cat([z, from_producers, from_consumers], dim=1))
        return merged


def make_encoder(config: NetworkConfig) -> GcnEncoder | SageEncoder:
    """The encoder that ``config.encoder`` names: ``gcn`` or ``sage``."""
    return GcnEncoder(config) if config.encoder == "gcn" else SageEncoder(config)
