"""Groupers: which units are placed by one decision, and the graph of what they have been joined to.

A network first asks its grouper for the graph that the encoder shall see (:meth:`coarsen`), then hands it the
encoder's states, and gets back the rows that the placer decides on. HSDAG does both: co-location before the
encoder, the graph parsing network behind it. Each unit keeps a device that it may run on: a row's allowed
devices are those that all its units share, and no row is formed that has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray
from ov_autoplace._base.kept import kept
from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.messages import Topology

__all__ = [
    "ColocationGrouper",
    "Contraction",
    "GpnGrouper",
    "Grouping",
    "NoGrouper",
    "colocated",
    "contract",
    "make_grouper",
    "uncontracted",
]


@dataclass(frozen=True, eq=False)
class Contraction:
    """The N units of a batch joined to M rows, numbered by their first units, and the edges between rows.

    Attributes:
        row_of: Row of each unit, ``int64[N]``.
        graph_of_row: Graph of each row, ascending, ``int64[M]``.
        allowed: Devices that all units of a row may run on, ``bool[M, D]``.
        topology: Edges between different rows; several between the same two rows are one.
    """

    row_of: Tensor
    graph_of_row: Tensor
    allowed: Tensor
    topology: Topology

    def __len__(self) -> int:
        return len(self.allowed)

    def mean(self, values: Tensor) -> Tensor:
        """Mean over each row's units: ``[N, K]`` to ``[M, K]`` (HSDAG, Appendix G, does so with op types)."""
        units = torch.bincount(self.row_of, minlength=len(self))
        return _sums(values, self.row_of, len(self)) / units.clamp(min=1)[:, None]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The M rows that a placer decides on.

    Attributes:
        row_of: Row that decides for each unit, ``int64[N]``.
        graph_of_row: Graph of each row, ascending, ``int64[M]``.
        allowed: Where each row may run, ``bool[M, D]``; somewhere, always.
        z_rows: What is known of each row, ``[M, hidden]``.
        state: ``z_rows`` of each unit's row added to what earlier steps have added, ``[N, hidden]``, without
            gradients: HSDAG's state update. Only ``gpn`` has one.
        link_score: Learned score of each edge of the graph that was grouped, ``[E]``. Only ``gpn`` has it.
    """

    row_of: Tensor
    graph_of_row: Tensor
    allowed: Tensor
    z_rows: Tensor
    state: Tensor | None = None
    link_score: Tensor | None = None


def uncontracted(batch: GraphBatch) -> Contraction:
    """Every unit is its own row."""
    units = torch.arange(batch.num_nodes, device=batch.allowed.device)
    return Contraction(units, batch.graph_of, batch.allowed, batch.topology)


def contract(batch: GraphBatch, row_of: Tensor) -> Contraction:
    """Join the units of ``batch``.

    Args:
        batch: The graphs.
        row_of: Row of each unit, numbered by first units, so that no number is left out, ``int64[N]``.
    """
    rows = int(row_of.max()) + 1 if len(row_of) else 0
    source, target = row_of[batch.topology.source], row_of[batch.topology.target]
    crossing = source != target
    key = torch.unique(target[crossing] * rows + source[crossing])
    source, target = key % max(rows, 1), torch.div(key, max(rows, 1), rounding_mode="floor")
    topology = Topology(source, target, rows, implementation=batch.implementation)
    graph_of_row = batch.graph_of.new_zeros(rows).scatter(0, row_of, batch.graph_of)
    return Contraction(row_of, graph_of_row, _shared_devices(batch.allowed, row_of, rows), topology)


@kept
def colocated(batch: GraphBatch) -> Contraction:
    """Join every only child to its only parent (HSDAG, Appendix G); computed once per batch.

    Two units without a common device are not joined, and a chain whose units share none is split into those
    of its units that may run on the same devices.
    """
    topology = batch.topology
    only_child = topology.reversed.degree[topology.source] == 1
    only_parent = topology.degree[topology.target] == 1
    joined = only_child & only_parent & _has_common_device(batch.allowed, topology)
    row_of = _clusters(topology.source[joined], topology.target[joined], batch.allowed)
    return contract(batch, row_of)


class NoGrouper(nn.Module):
    """Every unit is decided on for itself."""

    def coarsen(self, batch: GraphBatch) -> Contraction:
        """The graph that the encoder sees: the batch as it is."""
        return uncontracted(batch)

    def forward(self, z: Tensor, graph: Contraction, state: Tensor | None = None) -> Grouping:
        """One row per row of ``graph``; ``state`` is not used."""
        return Grouping(graph.row_of, graph.graph_of_row, graph.allowed, z)


class ColocationGrouper(NoGrouper):
    """Chains of only children and only parents are decided on together."""

    def coarsen(self, batch: GraphBatch) -> Contraction:
        """The graph that the encoder sees: a row per chain."""
        return colocated(batch)


class GpnGrouper(nn.Module):
    """Co-location, then the graph parsing network (Song et al., ICLR 2024) as HSDAG uses it.

    Every edge gets a score from the product of its ends' states. Every row keeps its incident edge with the
    highest score, and what the kept edges connect becomes one row, so the number of rows is not chosen
    beforehand. That is done once: repeated until nothing changes, as the code released with HSDAG does, it
    would leave one row per connected graph. The states of joined rows are added up between two networks and
    multiplied by the mean score and the number of their kept edges, so that gradients reach the scores.

    Unlike the paper's, states and sums are normalised: sums over members times numbers of edges, added to the
    states that the next step sums up, are a million times larger after four steps of an episode.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.norm = nn.LayerNorm(hidden)
        self.score = _mlp(hidden, 1)
        self.before_pooling = _mlp(hidden, hidden)
        self.after_pooling = nn.Sequential(nn.LayerNorm(hidden), *_mlp(hidden, hidden))

    def coarsen(self, batch: GraphBatch) -> Contraction:
        """The graph that the encoder sees: a row per chain."""
        return colocated(batch)

    def forward(self, z: Tensor, graph: Contraction, state: Tensor | None = None) -> Grouping:
        """Group the rows of ``graph``.

        Args:
            z: State of each row, ``[M', hidden]``.
            graph: What :meth:`coarsen` has made, with M' rows.
            state: What earlier steps have added to the units' states, ``[N, hidden]``.
        """
        topology = graph.topology
        source, target = topology.source, topology.target
        z = self.norm(z)
        score = torch.sigmoid(self.score(z[source] * z[target]).squeeze(1))
        kept = _best_incident(score.detach(), _has_common_device(graph.allowed, topology), topology)
        cluster_of = _clusters(source[kept], target[kept], graph.allowed)
        rows = int(cluster_of.max()) + 1 if len(cluster_of) else 0
        kept = kept[cluster_of[source[kept]] == cluster_of[target[kept]]]
        pooled = self.after_pooling(_sums(self.before_pooling(z), cluster_of, rows))
        links = torch.bincount(cluster_of[source[kept]], minlength=rows)
        # Mean score times number of links is the sum of scores; a row without links is left as it is.
        strength = _sums(score[kept, None], cluster_of[source[kept]], rows)
        z_rows = pooled * torch.where(links[:, None] > 0, strength, 1.0)
        row_of = cluster_of[graph.row_of]
        added = z_rows.detach()[row_of]
        return Grouping(
            row_of=row_of,
            graph_of_row=graph.graph_of_row.new_zeros(rows).scatter(0, cluster_of, graph.graph_of_row),
            allowed=_shared_devices(graph.allowed, cluster_of, rows),
            z_rows=z_rows,
            state=added if state is None else state + added,
            link_score=score,
        )


def make_grouper(config: NetworkConfig) -> NoGrouper | ColocationGrouper | GpnGrouper:
    """The grouper that ``config.grouper`` names."""
    if config.grouper == "gpn":
        return GpnGrouper(config)
    return ColocationGrouper() if config.grouper == "colocation" else NoGrouper()


def _mlp(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, inputs), nn.ReLU(), nn.Linear(inputs, outputs))


def _sums(values: Tensor, row_of: Tensor, rows: int) -> Tensor:
    """Sums over equal ``row_of``: ``[n, K]`` to ``[rows, K]``."""
    return values.new_zeros(rows, values.shape[1]).index_add(0, row_of, values)


def _shared_devices(allowed: Tensor, row_of: Tensor, rows: int) -> Tensor:
    """Devices that all members of a row may run on, ``bool[rows, D]``."""
    return _sums((~allowed).long(), row_of, rows) == 0


def _has_common_device(allowed: Tensor, topology: Topology) -> Tensor:
    """Whether some device may run both ends of each edge, ``bool[E]``."""
    return (allowed[topology.source] & allowed[topology.target]).any(dim=1)


def _best_incident(score: Tensor, possible: Tensor, topology: Topology) -> Tensor:
    """The possible edges that score highest at one of their ends; of equal ones the first, ``int64[K]``."""
    edges = torch.arange(len(score), device=score.device)
    rank = torch.empty_like(edges)
    rank[torch.argsort(score, descending=True, stable=True)] = edges
    rank = rank.masked_fill(~possible, len(score))
    best = rank.new_full((topology.num_nodes,), len(score))
    for end in (topology.source, topology.target):
        best = best.scatter_reduce(0, end, rank, "amin")
    is_best = (rank == best[topology.source]) | (rank == best[topology.target])
    return torch.nonzero(is_best & possible).squeeze(1)


def _clusters(source: Tensor, target: Tensor, allowed: Tensor) -> Tensor:
    """Number of the connected set of each node, by first members, ``int64[n]``.

    Of a set that shares no device, those members that have the same devices are a set of their own.
    """
    pairs = torch.stack([source, target], dim=1).to("cpu", torch.int32).contiguous().numpy()
    label = np.asarray(_core.connected_labels(len(allowed), pairs), dtype=np.int64)
    label = _split_without_common_device(label, allowed.cpu().numpy())
    return torch.from_numpy(label).to(source.device)


def _split_without_common_device(label: NDArray[np.int64], allowed: BoolArray) -> NDArray[np.int64]:
    sets = int(label.max(initial=-1)) + 1
    members = np.bincount(label, minlength=sets)
    able = np.stack([np.bincount(label, column, sets) for column in allowed.T], axis=1)
    broken = ~(able == members[:, None]).any(axis=1)
    if not broken.any():
        return label
    masks, mask_of = np.unique(allowed, axis=0, return_inverse=True)
    key = label * (len(masks) + 1) + np.where(broken[label], mask_of.reshape(-1) + 1, 0)
    _, first, part = np.unique(key, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return np.asarray(number[part.reshape(-1)])
