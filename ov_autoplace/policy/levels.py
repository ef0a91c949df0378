"""A graph and ever coarser groupings of it, for networks that have to look further than a few hops.

Groups are found as the graph parsing network of HSDAG finds them (Song et al., ICLR 2024): every edge has a
score, every node keeps its edge with the highest score, and what the kept edges connect is a group, so the
number of groups is not chosen beforehand. The score here is not learned: it is the price of cutting the edge
over the price of keeping its ends together. A group's cost on a device is the sum of its members', and edges
between two groups are added up, so each level is again a placement problem of the same kind.

The number of levels is fixed; the last level's nodes are all grouped into their graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray

__all__ = [
    "ARC_FEATURES",
    "LEVELS",
    "LEVEL_FEATURES",
    "Level",
    "beyond_best_other",
    "build_levels",
    "signed_log",
]

LEVELS = 6
"""How many levels every graph has, the graph itself included; small ones repeat their coarsest grouping."""

LEVEL_FEATURES = ("seconds", "seconds_beyond_best_other", "share_of_seconds", "forbidden", "edges", "members")
"""Columns of :attr:`Level.features`."""

ARC_FEATURES = ("price_if_other_leaves", "price_if_self_leaves", "cheapest", "share", "forward")
"""Columns of :attr:`Level.arc_features`."""


@dataclass(frozen=True, eq=False)
class Level:
    """n nodes of one level; an edge is two arcs, one to each end.

    Attributes:
        cost: Sum of the members' costs on each device, ``float32[n, D]``.
        features: Compressed costs, ``float32[n, D, len(LEVEL_FEATURES)]``.
        arc_source, arc_target: Node that each arc comes from and goes to, sorted by the latter, ``int64[A]``.
        arc_price: Price with the arc's own node (to) on the row's and the other on the column's
            device, ``float32[A, D, D]``.
        arc_share: Part of it that remains when all consumers receive together, ``float32[A]``.
        arc_features: ``float32[A, D, len(ARC_FEATURES)]``.
        inverse_root_degree: One over the square root of the number of arcs to each node, ``float32[n]``.
        parent: Group of each node, a node of the next level; of the last level the graph, ``int64[n]``.
        children: Nodes sorted by parent, ``int64[n]``.
        groups: Number of groups.
    """

    cost: NDArray[np.float32]
    features: NDArray[np.float32]
    arc_source: NDArray[np.int64]
    arc_target: NDArray[np.int64]
    arc_price: NDArray[np.float32]
    arc_share: NDArray[np.float32]
    arc_features: NDArray[np.float32]
    inverse_root_degree: NDArray[np.float32]
    parent: NDArray[np.int64]
    children: NDArray[np.int64]
    groups: int

    @cached_property
    def arc_offsets(self) -> NDArray[np.int64]:
        """Where the arcs to each node start, ``int64[n + 1]``."""
        return np.searchsorted(self.arc_target, np.arange(len(self.cost) + 1)).astype(np.int64)

    @cached_property
    def child_offsets(self) -> NDArray[np.int64]:
        """Where the members of each group start in ``children``, ``int64[groups + 1]``."""
        return np.searchsorted(self.parent[self.children], np.arange(self.groups + 1)).astype(np.int64)


def signed_log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """``sign(x) log(1 + 50 |x|) / 4``: resolves small costs, compresses large ones."""
    return np.asarray(np.sign(values) * np.log1p(50.0 * np.abs(values)) / 4.0)


def beyond_best_other(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost on each device minus the lowest cost on any other device, ``[n, D]``; 0 with one device."""
    D = cost.shape[1]
    if D == 1:
        return np.zeros_like(cost)
    ordered = np.sort(cost, axis=1)
    best, second = ordered[:, :1], ordered[:, 1:2]
    is_best = np.arange(D) == cost.argmin(axis=1)[:, None]
    return np.asarray(cost - np.where(is_best, second, best))


def build_levels(
    node_cost: NDArray[np.float32],
    allowed: BoolArray,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    edge_cost: NDArray[np.float32],
    edge_share: NDArray[np.float32],
) -> tuple[Level, ...]:
    """The levels of one graph; the arguments are the fields of the policy's graph."""
    cost = node_cost.astype(np.float64)
    forbidden = (~allowed).astype(np.float64)
    members = np.ones(len(cost))
    price = edge_cost.astype(np.float64)
    shared = price * edge_share[:, None, None]
    levels = []
    for depth in range(LEVELS):
        n = len(cost)
        last = depth == LEVELS - 1
        parent = np.zeros(n, dtype=np.int64) if last else _groups(cost, source, target, price)
        groups = int(parent.max(initial=-1)) + 1
        levels.append(_level(cost, forbidden, members, source, target, price, shared, parent, groups))
        cost = _sums(cost, parent, groups)
        forbidden = _sums(forbidden, parent, groups)
        members = np.bincount(parent, members, groups).astype(np.float64)
        source, target, price, shared = _contracted(parent, groups, source, target, price, shared)
    return tuple(levels)


def _groups(
    cost: NDArray[np.float64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    price: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Dense group number of each node."""
    n, D = cost.shape
    if not len(source) or D == 1:
        pairs = np.stack([source, target], axis=1)
        return _core.connected_labels(n, np.ascontiguousarray(pairs, dtype=np.int32)).astype(np.int64)
    lowest = cost.min(axis=1)
    together = (cost[source] + cost[target]).min(axis=1) - lowest[source] - lowest[target]
    apart = price.sum(axis=(1, 2)) / (D * (D - 1))
    score = (apart + 1e-3) / (together + 1e-3)
    ends = np.concatenate((source, target))
    others = np.concatenate((target, source))
    edge_rank = np.empty(len(score), dtype=np.int64)
    # Equal scores are decided by the edges' order, so that the groups do not depend on the sorting method.
    edge_rank[np.argsort(score, kind="stable")] = np.arange(len(score))
    best = np.full(n, -1, dtype=np.int64)
    np.maximum.at(best, ends, np.concatenate((edge_rank, edge_rank)))
    kept = np.flatnonzero(best[ends] == np.concatenate((edge_rank, edge_rank)))
    pairs = np.stack([ends[kept], others[kept]], axis=1).astype(np.int32)
    return _core.connected_labels(n, np.ascontiguousarray(pairs)).astype(np.int64)


def _level(
    cost: NDArray[np.float64],
    forbidden: NDArray[np.float64],
    members: NDArray[np.float64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    price: NDArray[np.float64],
    shared: NDArray[np.float64],
    parent: NDArray[np.int64],
    groups: int,
) -> Level:
    n, D = cost.shape
    to = np.concatenate((target, source))
    order = np.argsort(to, kind="stable")
    arc_source = np.concatenate((source, target))[order]
    # Rows: device of the node that the arc goes to.
    arc_price = np.concatenate((price.transpose(0, 2, 1), price))[order]
    total = np.maximum(price.sum(axis=(1, 2)), 1e-30)
    share = np.concatenate((s := shared.sum(axis=(1, 2)) / total, s))[order]
    forward = np.concatenate((np.ones(len(source)), np.zeros(len(source))))[order]
    others = max(D - 1, 1)
    off = arc_price + np.where(np.eye(D, dtype=bool), np.inf, 0.0) if D > 1 else arc_price
    arc_columns = (
        signed_log(arc_price.sum(axis=2) / others),
        signed_log(arc_price.sum(axis=1) / others),
        signed_log(off.min(axis=2)),
        np.broadcast_to(share[:, None], (len(to), D)),
        np.broadcast_to(forward[:, None], (len(to), D)),
    )
    degree = np.bincount(to, minlength=n)
    pull = _sums(arc_price.sum(axis=2) / others, to[order], n)
    columns = (
        signed_log(cost),
        signed_log(beyond_best_other(cost)),
        cost / np.maximum(cost.sum(axis=1, keepdims=True), 1e-12),
        forbidden / members[:, None],
        signed_log(pull),
        np.broadcast_to(np.log(members)[:, None] / 5, (n, D)),
    )
    return Level(
        cost=cost.astype(np.float32),
        features=np.stack(columns, axis=2).astype(np.float32),
        arc_source=arc_source,
        arc_target=to[order],
        arc_price=arc_price.astype(np.float32),
        arc_share=share.astype(np.float32),
        arc_features=np.stack(arc_columns, axis=2).astype(np.float32),
        inverse_root_degree=(1.0 / np.sqrt(np.maximum(degree, 1))).astype(np.float32),
        parent=parent,
        children=np.argsort(parent, kind="stable").astype(np.int64),
        groups=groups,
    )


def _sums(values: NDArray[np.float64], label: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """Sums over rows with equal labels, ``[groups, D]``."""
    return np.stack([np.bincount(label, column, groups) for column in values.T], axis=1)


def _contracted(
    parent: NDArray[np.int64],
    groups: int,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    price: NDArray[np.float64],
    shared: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """The edges between groups, parallel ones added up."""
    source, target = parent[source], parent[target]
    crossing = source != target
    key, edge_of = np.unique(target[crossing] * groups + source[crossing], return_inverse=True)
    D = price.shape[1]

    def added(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return _sums(values[crossing].reshape(-1, D * D), edge_of, len(key)).reshape(-1, D, D)

    new_target, new_source = np.divmod(key, max(groups, 1))
    return new_source, new_target, added(price), added(shared)
