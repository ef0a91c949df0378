"""A graph and ever coarser groupings of it, for networks that have to look further than a few hops.

Groups are found as the graph parsing network of HSDAG finds them (Song et al., ICLR 2024): every edge has a
score, every node keeps its edge with the highest score, and what the kept edges connect is a group, so the
number of groups is not chosen beforehand. The score here is not learned: it is the price of cutting the edge
over the price of keeping its ends together. A group's cost on a device is the sum of its members', and edges
between two groups are added up, so each level is again a placement problem of the same kind.

Where devices work at once (``overlap``), what is joined must be a chain or the light end of a branch, as the
tasks of list schedules are: then nothing is joined that could run at the same time.

The number of levels is fixed; the last one has one node, the whole graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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
    "by_mean",
    "signed_log",
]

LEVELS = 5
"""How many levels every graph has; small ones repeat their coarsest grouping."""

LEVEL_FEATURES = (
    "seconds",
    "seconds_beyond_best_other",
    "seconds_by_mean",
    "forbidden",
    "edges",
    "members",
    "memory",
    "turn",
    "spread",
)
"""Columns of :attr:`Level.features`."""

ARC_FEATURES = ("price_if_other_leaves", "price_if_self_leaves", "cheapest", "share", "forward")
"""Columns of :attr:`Level.arc_features`."""


_EDGES = LEVEL_FEATURES.index("edges")
_LIGHT = 256.0  # parts of all work; what takes less than one is joined first
_GOLDEN = 0.6180339887498949


class Levelled(Protocol):
    """What levels are made of; a :class:`~ov_autoplace.policy.features.PolicyGraph` is one."""

    @property
    def node_cost(self) -> NDArray[np.float32]: ...
    @property
    def allowed(self) -> BoolArray: ...
    @property
    def edge_source(self) -> NDArray[np.int64]: ...
    @property
    def edge_target(self) -> NDArray[np.int64]: ...
    @property
    def edge_cost(self) -> NDArray[np.float32]: ...
    @property
    def edge_share(self) -> NDArray[np.float32]: ...
    @property
    def memory_share(self) -> NDArray[np.float32]: ...
    @property
    def copy_phase(self) -> NDArray[np.float64]: ...
    @property
    def objective(self) -> str: ...


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
        parent: Group of each node, a node of the next level; of the last level itself, ``int64[n]``.
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


def by_mean(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost on each device by the mean over the devices, less 1, ``[n, D]``."""
    mean = cost.mean(axis=1, keepdims=True)
    return np.asarray(np.clip(cost / np.maximum(mean, 1e-12), 0.0, 4.0) - 1.0)


def build_levels(graph: Levelled) -> tuple[Level, ...]:
    """The levels of one graph."""
    cost = graph.node_cost.astype(np.float64)
    forbidden = (~graph.allowed).astype(np.float64)
    memory = graph.memory_share.astype(np.float64)
    members = np.ones(len(cost))
    source, target = graph.edge_source, graph.edge_target
    price = graph.edge_cost.astype(np.float64)
    shared = price.sum(axis=(1, 2)) * graph.edge_share
    light = float(cost.min(axis=1).sum()) / _LIGHT if graph.objective == "overlap" else None
    levels = []
    for depth in range(LEVELS):
        n = len(cost)
        if depth >= LEVELS - 2:
            parent = np.zeros(n, dtype=np.int64)
        else:
            parent = _groups(cost, source, target, price, None if light is None else light * 4**depth)
        groups = int(parent.max(initial=-1)) + 1
        features = _features(cost, forbidden, members, memory, graph.copy_phase)
        levels.append(_level(cost, features, source, target, price, shared, parent))
        cost, memory = _sums(cost, parent, groups), _sums(memory, parent, groups)
        forbidden = _sums(forbidden, parent, groups)
        members = np.bincount(parent, members, groups).astype(np.float64)
        source, target, price, shared = _contracted(parent, groups, source, target, price, shared)
    return tuple(levels)


def _groups(
    cost: NDArray[np.float64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    price: NDArray[np.float64],
    light: float | None,
) -> NDArray[np.int64]:
    """Dense group number of each node.

    Args:
        cost: ``[n, D]``.
        source: Producer of each edge.
        target: Its consumer.
        price: Of the edges.
        light: Where only chains and light ends of branches may be joined: what is light.
    """
    n, D = cost.shape
    if not len(source) or (D == 1 and light is None):
        pairs = np.stack([source, target], axis=1)
        return _core.connected_labels(n, np.ascontiguousarray(pairs, dtype=np.int32)).astype(np.int64)
    lowest = cost.min(axis=1)
    together = (cost[source] + cost[target]).min(axis=1) - lowest[source] - lowest[target]
    apart = price.sum(axis=(1, 2)) / max(D * (D - 1), 1)
    score = (apart + 1e-3) / (together + 1e-3)
    ends = np.concatenate((source, target))
    others = np.concatenate((target, source))
    may_choose = np.ones(len(ends), dtype=np.bool_)
    if light is not None:
        is_only_reader = np.bincount(source, minlength=n)[source] == 1
        is_only_producer = np.bincount(target, minlength=n)[target] == 1
        is_chain, is_branch = is_only_reader & is_only_producer, is_only_reader | is_only_producer
        may_choose = np.tile(is_chain, 2) | (np.tile(is_branch, 2) & (lowest[ends] <= light))
    edge_rank = np.empty(len(score), dtype=np.int64)
    # Equal scores are decided by the edges' order, so that the groups do not depend on the sorting method.
    edge_rank[np.argsort(score, kind="stable")] = np.arange(len(score))
    rank = np.where(may_choose, np.tile(edge_rank, 2), -2)
    best = np.full(n, -1, dtype=np.int64)
    np.maximum.at(best, ends, rank)
    kept = np.flatnonzero(best[ends] == rank)
    pairs = np.stack([ends[kept], others[kept]], axis=1).astype(np.int32)
    return _core.connected_labels(n, np.ascontiguousarray(pairs)).astype(np.int64)


def _features(
    cost: NDArray[np.float64],
    forbidden: NDArray[np.float64],
    members: NDArray[np.float64],
    memory: NDArray[np.float64],
    phase: NDArray[np.float64],
) -> list[NDArray[np.float64]]:
    """Columns of :data:`LEVEL_FEATURES`, ``[n, D]`` each, but for that of the edges."""
    n, D = cost.shape
    number = np.arange(n)[:, None]
    is_copy = np.isfinite(phase)
    copies = max(int(is_copy.sum()), 1)
    own = np.nan_to_num(phase)
    # Nothing tells copies of a device apart, nor branches that are alike: numbers do, one after the other in
    # turn, or spread so that any few neighbours are on different copies.
    turn = np.cos(2 * np.pi * (number / copies - own)) * is_copy
    spread = np.cos(2 * np.pi * (number * _GOLDEN - own)) * is_copy
    return [
        signed_log(cost),
        signed_log(beyond_best_other(cost)),
        by_mean(cost),
        forbidden / members[:, None],
        np.broadcast_to(np.log(members)[:, None] / 5, (n, D)),
        np.minimum(memory, 2.0),
        turn,
        spread,
    ]


def _level(
    cost: NDArray[np.float64],
    features: list[NDArray[np.float64]],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    price: NDArray[np.float64],
    shared: NDArray[np.float64],
    parent: NDArray[np.int64],
) -> Level:
    n, D = cost.shape
    to = np.concatenate((target, source))
    order = np.argsort(to, kind="stable")

    def of_arcs(to_target: NDArray[np.float64], to_source: NDArray[np.float64]) -> NDArray[np.float32]:
        return np.concatenate((to_target, to_source)).astype(np.float32)[order]

    # Products with ones: numpy adds along short axes one number at a time.
    ones, others = np.ones(D), max(D - 1, 1)
    if_source_leaves, if_target_leaves = price @ ones / others, ones @ price / others  # [E, D] each
    off = price + np.where(np.eye(D, dtype=bool), np.inf, 0.0) if D > 1 else price
    share = shared / np.maximum(if_source_leaves @ ones * others, 1e-30)
    if_source_leaves_log, if_target_leaves_log = signed_log(if_source_leaves), signed_log(if_target_leaves)
    arc_features = np.empty((len(to), D, len(ARC_FEATURES)), dtype=np.float32)
    # An arc's own node is the one that it goes to.
    arc_features[:, :, 0] = of_arcs(if_target_leaves_log, if_source_leaves_log)
    arc_features[:, :, 1] = of_arcs(if_source_leaves_log, if_target_leaves_log)
    arc_features[:, :, 2] = of_arcs(signed_log(off.min(axis=1)), signed_log(off.min(axis=2)))
    arc_features[:, :, 3] = (arc_share := of_arcs(share, share))[:, None]
    arc_features[:, :, 4] = (order < len(source))[:, None]
    pull = _sums(np.concatenate((if_target_leaves, if_source_leaves)), to, n)
    columns = [*features[:_EDGES], signed_log(pull), *features[_EDGES:]]
    degree = np.bincount(to, minlength=n)
    return Level(
        cost=cost.astype(np.float32),
        features=np.stack(columns, axis=2).astype(np.float32),
        arc_source=np.concatenate((source, target))[order],
        arc_target=to[order],
        # Rows: device of the node that the arc goes to.
        arc_price=of_arcs(price.transpose(0, 2, 1), price),
        arc_share=arc_share,
        arc_features=arc_features,
        inverse_root_degree=(1.0 / np.sqrt(np.maximum(degree, 1))).astype(np.float32),
        parent=parent,
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
    new_target, new_source = np.divmod(key, max(groups, 1))
    new_price = _sums(price[crossing].reshape(-1, D * D), edge_of, len(key)).reshape(-1, D, D)
    new_shared = np.bincount(edge_of, shared[crossing], len(key)).astype(np.float64)
    return new_source, new_target, new_price, new_shared
