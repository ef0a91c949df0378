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
        pair_features, node_cost, allowed, edge_source, edge_target, edge_cost,
            edge_share: As in :class:`~ov_autoplace.policy.features.PolicyGraph`, concatenated; the edges'
            ends count through the batch.
        graph_of: Graph of each unit, ``int64[N]``.
        node_offsets: First unit of each graph, ``int64[B + 1]``.
        is_estimate: ``float32[B]``, 1 where the table is an estimate.
        graph_features: ``float32[B, len(GRAPH_FEATURES)]``.
        unit_features: ``float32[N, len(UNIT_FEATURES)]``.
        memory_share: ``float32[N, D]``.
        same_device: ``float32[B, D, D]``.
        window_of: Window of each unit, counted through the batch, ``int64[N]``.
        window_children: Units sorted by window, ``int64[N]``.
        windows: An edge from each of these to its window; only its targets count.
    """

    graphs: tuple[PolicyGraph, ...]
    implementation: str
    pair_features: Tensor
    node_cost: Tensor
    allowed: Tensor
    edge_source: Tensor
    edge_target: Tensor
    edge_cost: Tensor
    edge_share: Tensor
    graph_of: Tensor
    node_offsets: Tensor
    is_estimate: Tensor
    graph_features: Tensor
    unit_features: Tensor
    memory_share: Tensor
    same_device: Tensor
    window_of: Tensor
    window_children: Tensor
    windows: Topology

    @property
    def num_graphs(self) -> int:
        """B."""
        return len(self.graphs)

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.node_cost)

    @property
    def num_devices(self) -> int:
        """D."""
        return int(self.allowed.shape[1])

    @cached_property
    def op_type(self) -> Tensor:
        """Vocabulary index of each unit, ``int64[N]``."""
        return _joined([graph.op_type for graph in self.graphs])

    @cached_property
    def node_features(self) -> Tensor:
        """Structure of each unit, ``float32[N, F]``."""
        return _joined([graph.node_features for graph in self.graphs])

    @cached_property
    def topology(self) -> Topology:
        """The edges."""
        return Topology(
            self.edge_source, self.edge_target, self.num_nodes, implementation=self.implementation
        )

    @cached_property
    def arcs(self) -> Topology:
        """The edges, once to each end."""
        first = self.node_offsets.numpy()
        source, target = (
            _joined([getattr(g.arcs, end) + f for g, f in zip(self.graphs, first, strict=False)])
            for end in ("source", "target")
        )
        return Topology(source, target, self.num_nodes, implementation=self.implementation)

    @cached_property
    def arc_features(self) -> Tensor:
        """Of the arcs, ``float32[A, D, len(ARC_FEATURES)]``."""
        return _joined([graph.arcs.features for graph in self.graphs])

    @cached_property
    def inverse_root_degree(self) -> Tensor:
        """Of each unit's arcs, ``float32[N]``."""
        return _joined([graph.arcs.inverse_root_degree for graph in self.graphs])


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
    windows = offsets_of([int(graph.timing.window_of.max(initial=-1)) + 1 for graph in graphs])
    window_of = _joined([g.timing.window_of + w for g, w in zip(graphs, windows, strict=False)])
    window_children = torch.argsort(window_of, stable=True)
    ordered = window_of[window_children]
    return GraphBatch(
        graphs=tuple(graphs),
        implementation=by,
        pair_features=_joined([graph.pair_features for graph in graphs]),
        node_cost=_joined([graph.node_cost for graph in graphs]),
        allowed=_joined([graph.allowed for graph in graphs]),
        edge_source=_joined([graph.edge_source + f for graph, f in zip(graphs, first, strict=False)]),
        edge_target=_joined([graph.edge_target + f for graph, f in zip(graphs, first, strict=False)]),
        edge_cost=_joined([graph.edge_cost for graph in graphs]),
        edge_share=_joined([graph.edge_share for graph in graphs]),
        graph_of=torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)),
        node_offsets=torch.from_numpy(first),
        is_estimate=torch.tensor([float(graph.is_estimate) for graph in graphs]),
        graph_features=torch.from_numpy(np.stack([graph.graph_features for graph in graphs])),
        unit_features=_joined([graph.unit_features for graph in graphs]),
        memory_share=_joined([graph.memory_share for graph in graphs]),
        same_device=torch.from_numpy(np.stack([graph.same_device for graph in graphs])),
        window_of=window_of,
        window_children=window_children,
        windows=Topology(ordered, ordered, int(windows[-1]), implementation=by),
    )


def _joined(arrays: Sequence[NDArray[np.generic]]) -> Tensor:
    # Joined by torch, whose memory is aligned: kernels may add up what is not in another order.
    return torch.cat([torch.from_numpy(array) for array in arrays])
