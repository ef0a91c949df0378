"""Several policy graphs as one, in torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ov_autoplace._base.arrays import offsets_of
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.messages import Topology, default_implementation

__all__ = ["GraphBatch", "collate"]


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """B graphs one after another, with the same number of devices D.

    Attributes:
        graphs: The graphs.
        implementation: Who passes messages, of
            :data:`~ov_autoplace.policy.networks.messages.IMPLEMENTATIONS`.
        allowed: Which unit may run where, ``bool[N, D]``.
        graph_of: Graph of each unit, ``int64[N]``.
        topology: The edges, whose ends count through the batch.
    """

    graphs: tuple[PolicyGraph, ...]
    implementation: str
    allowed: Tensor
    graph_of: Tensor
    topology: Topology

    @property
    def num_graphs(self) -> int:
        """B."""
        return len(self.graphs)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.allowed)

    @cached_property
    def op_type(self) -> Tensor:
        """Vocabulary index of each unit, ``int64[N]``."""
        return _joined([graph.op_type for graph in self.graphs])

    @cached_property
    def node_features(self) -> Tensor:
        """Structure of each unit, ``float32[N, F]``."""
        return _joined([graph.node_features for graph in self.graphs])


def collate(graphs: Sequence[PolicyGraph], implementation: str | None = None) -> GraphBatch:
    """One batch of several graphs with the same number of devices.

    Args:
        graphs: The graphs.
        implementation: Who passes messages;
            :func:`~ov_autoplace.policy.networks.messages.default_implementation` when absent.
    """
    by = implementation or default_implementation()
    sizes = [len(graph) for graph in graphs]
    first = offsets_of(sizes).astype(np.int64)
    source, target = (
        _joined([getattr(graph, end) + f for graph, f in zip(graphs, first, strict=False)])
        for end in ("edge_source", "edge_target")
    )
    return GraphBatch(
        graphs=tuple(graphs),
        implementation=by,
        allowed=_joined([graph.allowed for graph in graphs]),
        graph_of=torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)),
        topology=Topology(source, target, sum(sizes), implementation=by),
    )


def _joined(arrays: Sequence[NDArray[np.generic]]) -> Tensor:
    # Joined by torch, whose memory is aligned: kernels may add up what is not in another order.
    return torch.cat([torch.from_numpy(array) for array in arrays])
