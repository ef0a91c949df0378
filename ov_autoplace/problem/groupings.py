"""Ever coarser groups of a graph's units: what belongs together more than it gains by parting.

Groups are found as the graph parsing network of HSDAG finds them (Song et al., ICLR 2024): every edge has a
score, every node keeps its edge with the highest score, and what the kept edges connect is a group, so the
number of groups is not chosen beforehand. The score here is not learned: it is the price of cutting the edge
over the price of keeping its ends together. A group's cost on a device is the sum of its members', and edges
between two groups are added up, so that groups are grouped likewise.

Where devices work at once (``overlap``), what is joined must be a chain or the light end of a branch, as the
tasks of list schedules are: then nothing is joined that could run at the same time.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ov_autoplace import _core

__all__ = ["GROUPINGS", "build_groupings"]

GROUPINGS = 4
"""How many groupings every graph has; small graphs repeat their coarsest one. The last has one group."""

_LIGHT = 256.0  # parts of all work; what takes less than one is joined first


class Grouped(Protocol):
    """What is grouped; a :class:`~ov_autoplace.problem.unit_costs.UnitCosts` is one."""

    @property
    def node_cost(self) -> NDArray[np.float32]: ...
    @property
    def edge_source(self) -> NDArray[np.int64]: ...
    @property
    def edge_target(self) -> NDArray[np.int64]: ...
    @property
    def edge_cost(self) -> NDArray[np.float32]: ...
    @property
    def objective(self) -> str: ...


def build_groupings(graph: Grouped) -> tuple[NDArray[np.int64], ...]:
    """Group of each of N units, ``int64[N]`` from 0, in groupings that each join groups of the one before."""
    # Arrays with an axis of devices lie in memory one device after the other: numpy is slow along short axes.
    cost = graph.node_cost.astype(np.float64, order="F")
    source, target = graph.edge_source, graph.edge_target
    price = graph.edge_cost.astype(np.float64, order="F")
    light = float(cost.min(axis=1).sum()) / _LIGHT if graph.objective == "overlap" else None
    found = []
    group_of = np.arange(len(cost))
    for depth in range(GROUPINGS - 1):
        parent = _groups(cost, source, target, price, None if light is None else light * 4**depth)
        group_of = parent[group_of]
        found.append(group_of)
        groups = int(parent.max(initial=-1)) + 1
        cost = _sums(cost, parent, groups)
        source, target, price = _contracted(parent, groups, source, target, price)
    return (*found, np.zeros(len(group_of), dtype=np.int64))


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
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The edges between groups, the prices of parallel ones added up."""
    source, target = parent[source], parent[target]
    crossing = np.flatnonzero(source != target)
    key, edge_of = np.unique(target[crossing] * groups + source[crossing], return_inverse=True)
    new_target, new_source = np.divmod(key, max(groups, 1))
    return new_source, new_target, _sums(price.T.take(crossing, axis=2).T, edge_of, len(key))
