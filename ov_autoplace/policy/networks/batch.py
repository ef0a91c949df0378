"""Several policy graphs as one, in torch tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ov_autoplace._base.arrays import IntArray, offsets_of
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.levels import LEVELS
from ov_autoplace.policy.networks.messages import Topology, default_implementation
from ov_autoplace.policy.probes import probe_features

__all__ = ["GraphBatch", "LevelBatch", "collate"]


@dataclass(frozen=True, eq=False)
class LevelBatch:
    """One :class:`~ov_autoplace.policy.levels.Level` of all graphs of a batch.

    Attributes:
        cost, features, arc_price, arc_share, arc_features, inverse_root_degree, parent, children: As there.
        arcs: Who hears whom.
        members: An edge from each of ``children`` to its group; only its targets count.
    """

    cost: Tensor
    features: Tensor
    arcs: Topology
    arc_price: Tensor
    arc_share: Tensor
    arc_features: Tensor
    inverse_root_degree: Tensor
    parent: Tensor
    children: Tensor
    members: Topology


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """B graphs one after another, with the same number of devices D.

    Attributes:
        graphs: The graphs.
        implementation: Who passes messages, of
            :data:`~ov_autoplace.policy.networks.messages.IMPLEMENTATIONS`.
        node_features, pair_features, node_cost, allowed, op_type, edge_source, edge_target, edge_cost,
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
    op_type: Tensor
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
    def node_features(self) -> Tensor:
        """Structure of each unit, ``float32[N, F]``."""
        return _joined([graph.node_features for graph in self.graphs])

    @cached_property
    def probes(self) -> Tensor:
        """What simple placements would run into, ``float32[N, len(PROBE_FEATURES)]``."""
        return _joined([probe_features(graph) for graph in self.graphs])

    @cached_property
    def topology(self) -> Topology:
        """The edges."""
        return Topology(
            self.edge_source, self.edge_target, self.num_nodes, implementation=self.implementation
        )

    @cached_property
    def levels(self) -> tuple[LevelBatch, ...]:
        """Levels of all graphs, the finest first."""
        return tuple(_level(self.graphs, depth, self.implementation) for depth in range(LEVELS))


def collate(graphs: Sequence[PolicyGraph], implementation: str | None = None) -> GraphBatch:
    """One batch of several graphs with the same number of devices.

    Args:
        graphs: The graphs.
        implementation: Who passes messages;
            :func:`~ov_autoplace.policy.networks.messages.default_implementation` when absent.
    """
    sizes = [len(graph) for graph in graphs]
    first = offsets_of(sizes).astype(np.int64)
    windows = offsets_of([int(graph.timing.window_of.max(initial=-1)) + 1 for graph in graphs])
    window_of = _joined([g.timing.window_of + w for g, w in zip(graphs, windows, strict=False)])
    window_children = torch.argsort(window_of, stable=True)
    ordered = window_of[window_children]
    return GraphBatch(
        graphs=tuple(graphs),
        implementation=implementation or default_implementation(),
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
        graph_features=torch.from_numpy(np.stack([graph.graph_features for graph in graphs])),
        unit_features=_joined([graph.unit_features for graph in graphs]),
        memory_share=_joined([graph.memory_share for graph in graphs]),
        same_device=torch.from_numpy(np.stack([graph.same_device for graph in graphs])),
        window_of=window_of,
        window_children=window_children,
        windows=Topology(ordered, ordered, int(windows[-1])),
    )


def _joined(arrays: Sequence[NDArray[np.generic]]) -> Tensor:
    return torch.from_numpy(np.concatenate(arrays))


def _level(graphs: Sequence[PolicyGraph], depth: int, implementation: str) -> LevelBatch:
    levels = [graph.levels[depth] for graph in graphs]
    nodes = offsets_of([len(level.cost) for level in levels])
    groups = offsets_of([level.groups for level in levels])

    def joined(field: str, shift: IntArray | None = None) -> Tensor:
        arrays = [getattr(level, field) for level in levels]
        return _joined(arrays if shift is None else [a + s for a, s in zip(arrays, shift, strict=False)])

    def topology(source: Tensor, target: Tensor, num_nodes: int) -> Topology:
        return Topology(source, target, num_nodes, implementation=implementation)

    parent, children = joined("parent", groups), joined("children", nodes)
    group_of_child = parent[children]
    return LevelBatch(
        cost=joined("cost"),
        features=joined("features"),
        arcs=topology(joined("arc_source", nodes), joined("arc_target", nodes), int(nodes[-1])),
        arc_price=joined("arc_price"),
        arc_share=joined("arc_share"),
        arc_features=joined("arc_features"),
        inverse_root_degree=joined("inverse_root_degree"),
        parent=parent,
        children=children,
        members=topology(group_of_child, group_of_child, int(groups[-1])),
    )
