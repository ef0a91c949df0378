"""The nodes of all levels of a graph in one list, as networks see them: units, then ever coarser groups.

A network passes messages along the arcs of every level at once, and between each unit and the groups that it
is in; the last group is the whole graph. So every layer of the network sees all levels, in the same few steps
whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import offsets_of
from ov_autoplace.policy.levels import Level

__all__ = [
    "ARC_FEATURES",
    "LEVEL_FEATURES",
    "Nodes",
    "beyond_best_other",
    "by_mean",
    "nodes_of",
    "signed_log",
]

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
"""Columns of :attr:`Nodes.features`."""

ARC_FEATURES = ("price_if_other_leaves", "price_if_self_leaves", "cheapest", "share", "forward")
"""Columns of :attr:`Nodes.arc_features`."""

_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Nodes:
    """M nodes, the N units first, with A arcs along levels and V between units and groups.

    An edge of a level is two arcs, one to each end.

    Attributes:
        cost: Sum of the members' costs on each device, ``float32[M, D]``.
        features: Compressed costs, ``float32[M, D, len(LEVEL_FEATURES)]``.
        inverse_root_degree: One over the square root of the number of arcs to each node; 0 where there is
            none, ``float32[M]``.
        arc_source, arc_target: Node that each arc comes from and goes to, sorted by the latter, ``int64[A]``.
        arc_price: Price with the arc's own node (to) on the row's and the other on the column's
            device, ``float32[A, D, D]``.
        arc_share: Part of it that remains when all consumers receive together, ``float32[A]``.
        arc_features: ``float32[A, D, len(ARC_FEATURES)]``.
        member_source, member_target: Each unit hears the groups that it is in, and each group its units,
            ``int64[V]``, sorted by target.
        unit_arcs, unit_members: How many of the arcs, and of the memberships, end in units.
    """

    cost: NDArray[np.float32]
    features: NDArray[np.float32]
    inverse_root_degree: NDArray[np.float32]
    arc_source: NDArray[np.int64]
    arc_target: NDArray[np.int64]
    arc_price: NDArray[np.float32]
    arc_share: NDArray[np.float32]
    arc_features: NDArray[np.float32]
    member_source: NDArray[np.int64]
    member_target: NDArray[np.int64]
    unit_arcs: int
    unit_members: int


def signed_log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """``sign(x) log(1 + 50 |x|) / 4``: resolves small costs, compresses large ones."""
    return np.asarray(np.sign(values) * np.log1p(50.0 * np.abs(values)) / 4.0)


def beyond_best_other(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost on each device minus the lowest cost on any other device, ``[n, D]``; 0 with one device."""
    n, D = cost.shape
    if D == 1:
        return np.zeros_like(cost)
    best, second = np.full(n, np.inf), np.full(n, np.inf)
    for column in cost.T:
        second = np.minimum(second, np.maximum(best, column))
        best = np.minimum(best, column)
    return np.asarray((cost.T - np.where(best == cost.T, second, best)).T)


def by_mean(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost on each device by the mean over the devices, less 1, ``[n, D]``."""
    mean = cost.mean(axis=1, keepdims=True)
    return np.asarray(np.clip(cost / np.maximum(mean, 1e-12), 0.0, 4.0) - 1.0)


def nodes_of(levels: Sequence[Level], copy_phase: NDArray[np.float64]) -> Nodes:
    """The nodes of some levels.

    Args:
        levels: The finest first.
        copy_phase: Place of each device among its copies, NaN where it has none, ``float64[D]``.
    """
    first = offsets_of([len(level.cost) for level in levels]).astype(np.int64)

    def ends(field: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(level, field) + f for level, f in zip(levels, first, strict=False)])

    source, target = ends("source"), ends("target")
    E, M = len(source), int(first[-1])
    # Arcs to consumers, then those to producers, until they are sorted.
    to, other = np.concatenate((target, source)), np.concatenate((source, target))
    order = np.argsort(to, kind="stable")
    price = _joined(levels, "price").T  # [consumer's device, producer's device, E]
    D = len(price)
    arc_price = np.empty((2, E, D, D), dtype=np.float32)
    arc_price[0], arc_price[1] = price.transpose(2, 0, 1), price.transpose(2, 1, 0)
    # What it costs if the other end leaves a device: of arcs to consumers, and of arcs to producers.
    if_other_leaves = price.sum(axis=1) / max(D - 1, 1), price.sum(axis=0) / max(D - 1, 1)
    pull = np.concatenate(if_other_leaves, axis=1)
    share = _joined(levels, "shared") / np.maximum(price.sum(axis=(0, 1)), 1e-30)
    degree = np.bincount(to, minlength=M)
    member_source, member_target = _members(levels, first)
    return Nodes(
        cost=_joined(levels, "cost").astype(np.float32, order="C"),
        features=_features(levels, first, np.array([np.bincount(to, p, M) for p in pull]), copy_phase),
        inverse_root_degree=((degree > 0) / np.sqrt(np.maximum(degree, 1))).astype(np.float32),
        arc_source=other.take(order),
        arc_target=to.take(order),
        arc_price=arc_price.reshape(2 * E, D, D).take(order, axis=0),
        arc_share=np.concatenate((share, share)).take(order).astype(np.float32),
        arc_features=_arc_features(price, if_other_leaves, share).take(order, axis=0),
        member_source=member_source,
        member_target=member_target,
        unit_arcs=2 * len(levels[0].source),
        unit_members=(len(levels) - 1) * len(levels[0].cost),
    )


def _arc_features(
    price: NDArray[np.float64], if_other_leaves: Sequence[NDArray[np.float64]], share: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Columns of :data:`ARC_FEATURES`, ``float32[2 E, D, 5]``: arcs to consumers, then those to producers.

    Args:
        price: Of E edges, ``float64[D, D, E]``, the consumer's device first; its diagonal is overwritten.
        if_other_leaves: Mean price over the other end's devices, of the two kinds of arcs, ``float64[D, E]``.
        share: Part that remains when all consumers receive together, ``float64[E]``.
    """
    D, _, E = price.shape
    if D > 1:
        price[np.eye(D, dtype=np.bool_)] = np.inf
    features = np.empty((2, E, D, len(ARC_FEATURES)), dtype=np.float32)
    for way in (0, 1):
        leaves = signed_log(if_other_leaves[way]).T
        features[way, :, :, 0] = features[1 - way, :, :, 1] = leaves
        features[way, :, :, 2] = signed_log(price.min(axis=1 - way)).T
        features[way, :, :, 4] = 1 - way
    features[:, :, :, 3] = share[:, None]
    return features.reshape(2 * E, D, len(ARC_FEATURES))


def _joined(levels: Sequence[Level], field: str) -> NDArray[np.float64]:
    """The rows of all levels, in memory as theirs: what belongs to one device lies together."""
    rows: NDArray[np.float64] = np.concatenate([getattr(level, field).T for level in levels], axis=-1).T
    return rows


def _features(
    levels: Sequence[Level],
    first: NDArray[np.int64],
    pull: NDArray[np.float64],
    phase: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Columns of :data:`LEVEL_FEATURES`, ``float32[M, D, len(LEVEL_FEATURES)]``.

    Args:
        levels: The levels.
        first: First node of each.
        pull: What leaving each device would cost each node at its edges, ``float64[D, M]``.
        phase: See :func:`nodes_of`.
    """
    cost, members = _joined(levels, "cost"), _joined(levels, "members")
    features = np.zeros((*cost.shape, len(LEVEL_FEATURES)), dtype=np.float32)
    features[:, :, 0] = signed_log(cost)
    features[:, :, 1] = signed_log(beyond_best_other(cost))
    features[:, :, 2] = by_mean(cost)
    features[:, :, 3] = _joined(levels, "forbidden") / members[:, None]
    features[:, :, 4] = signed_log(pull).T
    features[:, :, 5] = (np.log(members) / 5)[:, None]
    features[:, :, 6] = np.minimum(_joined(levels, "memory"), 2.0)
    is_copy = np.isfinite(phase)
    # Nothing tells copies of a device apart, nor branches that are alike: numbers do, one after the other in
    # turn, or spread so that any few neighbours are on different copies.
    number = (np.arange(len(cost)) - np.repeat(first[:-1], np.diff(first)))[:, None]
    own, copies = phase[is_copy], int(is_copy.sum())
    if copies:
        features[:, is_copy, 7] = np.cos(2 * np.pi * (number / copies - own))
        features[:, is_copy, 8] = np.cos(2 * np.pi * (number * _GOLDEN - own))
    return features


def _members(
    levels: Sequence[Level], first: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Who hears whom between units and groups, sorted by who hears, ``int64[V]`` each."""
    units = len(levels[0].cost)
    group = np.arange(units)
    groups = np.empty((len(levels) - 1, units), dtype=np.int64)
    for row, level, shift in zip(groups, levels, first[1:], strict=False):
        group = level.parent[group]
        row[:] = group + shift
    upwards = np.argsort(groups.ravel(), kind="stable")
    source = np.concatenate([groups.T.ravel(), upwards % max(units, 1)])
    target = np.concatenate([np.repeat(np.arange(units), len(groups)), groups.ravel()[upwards]])
    return source, target
