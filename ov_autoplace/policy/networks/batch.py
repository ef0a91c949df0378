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
from ov_autoplace.policy.probes import probe_features

__all__ = ["GraphBatch", "NodeBatch", "collate"]


@dataclass(frozen=True, eq=False)
class NodeBatch:
    """The :class:`~ov_autoplace.policy.nodes.Nodes` of all graphs: units of all, then groups of all.

    Attributes:
        cost, features, inverse_root_degree, arc_price, arc_share, arc_features: As there.
        arcs: Who hears whom along levels.
        members: Who hears whom between units and groups.
    """

    cost: Tensor
    features: Tensor
    inverse_root_degree: Tensor
    arc_price: Tensor
    arc_share: Tensor
    arc_features: Tensor
    arcs: Topology
    members: Topology


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
    def nodes(self) -> NodeBatch:
        """Units and groups of all levels."""
        return _nodes(self.graphs, self.implementation)


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


def _nodes(graphs: Sequence[PolicyGraph], implementation: str) -> NodeBatch:
    nodes = [graph.nodes for graph in graphs]
    units = [len(graph) for graph in graphs]
    first_unit = offsets_of(units).astype(np.int64)
    first_group = first_unit[-1] + offsets_of(
        [len(own.cost) - n for own, n in zip(nodes, units, strict=True)]
    )

    def split(field: str, counts: Sequence[int]) -> Tensor:
        """What belongs to units of all graphs, then what belongs to groups."""
        arrays = [getattr(own, field) for own in nodes]
        halves = [[a[:n] for a, n in zip(arrays, counts, strict=True)]]
        halves.append([a[n:] for a, n in zip(arrays, counts, strict=True)])
        return _joined([*halves[0], *halves[1]])

    def ends(field: str, counts: Sequence[int]) -> Tensor:
        """Numbers of nodes, counted through the batch."""
        moved = []
        for own, n, unit, group in zip(nodes, units, first_unit, first_group, strict=False):
            node = getattr(own, field)
            moved.append(node + np.where(node < n, unit, group - n))
        before = [a[:n] for a, n in zip(moved, counts, strict=True)]
        return _joined([*before, *(a[n:] for a, n in zip(moved, counts, strict=True))])

    arcs, members = [own.unit_arcs for own in nodes], [own.unit_members for own in nodes]
    count = int(first_group[-1])

    def topology(kind: str, counts: Sequence[int]) -> Topology:
        source, target = ends(f"{kind}_source", counts), ends(f"{kind}_target", counts)
        return Topology(source, target, count, implementation=implementation)

    return NodeBatch(
        cost=split("cost", units),
        features=split("features", units),
        inverse_root_degree=split("inverse_root_degree", units),
        arc_price=split("arc_price", arcs),
        arc_share=split("arc_share", arcs),
        arc_features=split("arc_features", arcs),
        arcs=topology("arc", arcs),
        members=topology("member", members),
    )
