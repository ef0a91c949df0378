"""Several policy graphs as one, in torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.levels import LEVELS
from ov_autoplace.policy.messages import Topology

__all__ = ["GraphBatch", "LevelBatch", "collate"]


@dataclass(frozen=True, eq=False)
class LevelBatch:
    """One :class:`~ov_autoplace.policy.levels.Level` of all graphs of a batch; fields are alike."""

    cost: Tensor
    features: Tensor
    arc_source: Tensor
    arc_offsets: Tensor
    arc_price: Tensor
    arc_share: Tensor
    arc_features: Tensor
    inverse_root_degree: Tensor
    parent: Tensor
    children: Tensor
    child_offsets: Tensor


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """B graphs one after another, with the same number of devices D.

    Attributes:
        graphs: The graphs.
        node_features, pair_features, node_cost, allowed, op_type, edge_source, edge_target, edge_cost,
            edge_share: As in :class:`~ov_autoplace.policy.features.PolicyGraph`, concatenated; the edges'
            ends count through the batch.
        graph_of: Graph of each unit, ``int64[N]``.
        node_offsets: First unit of each graph, ``int64[B + 1]``.
        is_estimate: ``float32[B]``, 1 where the table is an estimate.
    """

    graphs: tuple[PolicyGraph, ...]
    pair_features: Tensor
    node_cost: Tensor
    allowed: Tensor
    op_type: Tensor
    edge_source: Tensor
    edge_target: Tensor
    edge_cost: Tensor
    edge_share: Tensor
    graph_of: Tensor
    node_offsets: Tensor
    is_estimate: Tensor

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
    def node_features(self) -> Tensor:
        """Structure of each unit, ``float32[N, F]``."""
        return _joined([graph.node_features for graph in self.graphs])

    @cached_property
    def topology(self) -> Topology:
        """The edges."""
        return Topology(self.edge_source, self.edge_target, self.num_nodes)

    @cached_property
    def levels(self) -> tuple[LevelBatch, ...]:
        """Levels of all graphs, the finest first."""
        return tuple(_level(self.graphs, depth) for depth in range(LEVELS))


def collate(graphs: Sequence[PolicyGraph]) -> GraphBatch:
    """One batch of several graphs with the same number of devices."""
    sizes = np.array([len(graph) for graph in graphs])
    first = np.concatenate(([0], np.cumsum(sizes)))
    return GraphBatch(
        graphs=tuple(graphs),
        pair_features=_joined([graph.pair_features for graph in graphs]),
        node_cost=_joined([graph.node_cost for graph in graphs]),
        allowed=_joined([graph.allowed for graph in graphs]),
        op_type=_joined([graph.op_type for graph in graphs]),
        edge_source=_joined([graph.edge_source + f for graph, f in zip(graphs, first, strict=False)]),
        edge_target=_joined([graph.edge_target + f for graph, f in zip(graphs, first, strict=False)]),
        edge_cost=_joined([graph.edge_cost for graph in graphs]),
        edge_share=_joined([graph.edge_share for graph in graphs]),
        graph_of=torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes)),
        node_offsets=torch.from_numpy(first),
        is_estimate=torch.tensor([float(graph.is_estimate) for graph in graphs]),
    )


def _joined(arrays: Sequence[NDArray[np.generic]]) -> Tensor:
    return torch.from_numpy(np.concatenate(arrays))


def _level(graphs: Sequence[PolicyGraph], depth: int) -> LevelBatch:
    levels = [graph.levels[depth] for graph in graphs]
    nodes = np.cumsum([0] + [len(level.cost) for level in levels])
    arcs = np.cumsum([0] + [len(level.arc_source) for level in levels])
    groups = np.cumsum([0] + [len(level.child_offsets) for level in levels])
    shift = {"arc_source": nodes, "arc_offsets": arcs, "parent": groups, "children": nodes, "child_offsets": nodes}
    joined = {}
    for field in fields(LevelBatch):
        arrays = [getattr(level, field.name) for level in levels]
        by = shift.get(field.name)
        if by is not None:
            arrays = [array + by[i] for i, array in enumerate(arrays)]
        joined[field.name] = _joined(arrays)
    return LevelBatch(**joined)
