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

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray

__all__ = ["LEVELS", "Level", "build_levels"]

LEVELS = 5
"""How many levels every graph has; small ones repeat their coarsest grouping."""

_LIGHT = 256.0  # parts of all work; what takes less than one is joined first


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
    def objective(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Level:
    """n nodes of one level with e edges.

    Arrays with an axis of devices lie in memory one device after the other: numpy is slow along short axes.

    Attributes:
        cost: Sum of the members' costs on each device, ``float64[n, D]``.
        memory: The same of their shares of its memory, ``float64[n, D]``.
        forbidden: How many members may not run there, ``float64[n, D]``.
        members: How many there are, ``float64[n]``.
        source, target: Producer and consumer of each edge, sorted by the latter, ``int64[e]``.
        price: With the producer on the row's and the consumer on the column's device, ``float64[e, D, D]``.
        shared: Sum of these prices where all consumers receive together, ``float64[e]``.
        parent: Group of each node, a node of the next level; of the last level itself, ``int64[n]``.
    """

    cost: NDArray[np.float64]
    memory: NDArray[np.float64]
    forbidden: NDArray[np.float64]
    members: NDArray[np.float64]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    price: NDArray[np.float64]
    shared: NDArray[np.float64]
    parent: NDArray[np.int64]


def build_levels(graph: Levelled) -> tuple[Level, ...]:
    """The levels of one graph."""
    cost = graph.node_cost.astype(np.float64, order="F")
    memory = graph.memory_share.astype(np.float64, order="F")
    forbidden = np.asfortranarray(~graph.allowed, dtype=np.float64)
    members = np.ones(len(cost))
    source, target = graph.edge_source, graph.edge_target
    price = graph.edge_cost.astype(np.float64, order="F")
    shared = price.sum(axis=(1, 2)) * graph.edge_share
    light = float(cost.min(axis=1).sum()) / _LIGHT if graph.objective == "overlap" else None
    levels: list[Level] = []
    for depth in range(LEVELS):
        if depth >= LEVELS - 2:
            parent = np.zeros(len(cost), dtype=np.int64)
        else:
            parent = _groups(cost, source, target, price, None if light is None else light * 4**depth)
        levels.append(Level(cost, memory, forbidden, members, source, target, price, shared, parent))
        if depth == LEVELS - 1:
            break
        groups = int(parent.max(initial=-1)) + 1
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
    both = cost.T.take(source, axis=1) + cost.T.take(target, axis=1)
    together = both.min(axis=0) - lowest[source] - lowest[target]
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


def _sums(values: NDArray[np.float64], label: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """Sums over rows with equal labels, ``[groups, ...]``."""
    of_each = values.shape[1:]
    columns = values.T.reshape(math.prod(of_each), len(label))
    sums = np.array([np.bincount(label, column, groups) for column in columns], dtype=np.float64)
    return np.asarray(sums.reshape(*of_each[::-1], groups).T)


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
    crossing = np.flatnonzero(source != target)
    key, edge_of = np.unique(target[crossing] * groups + source[crossing], return_inverse=True)
    new_target, new_source = np.divmod(key, max(groups, 1))
    new_price = _sums(price.T.take(crossing, axis=2).T, edge_of, len(key))
    new_shared = np.bincount(edge_of, shared[crossing], len(key)).astype(np.float64)
    return new_source, new_target, new_price, new_shared
