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

__all__ = ["Nodes", "nodes_of"]


@dataclass(frozen=True, eq=False)
class Nodes:
    """M nodes, the N units first, with A arcs along levels and V between units and groups.

    Attributes:
        cost, features, inverse_root_degree: As in :class:`~ov_autoplace.policy.levels.Level`, of all nodes.
        arc_source, arc_target, arc_price, arc_share, arc_features: As there; sorted by target.
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


def nodes_of(levels: Sequence[Level]) -> Nodes:
    """The nodes of some levels, the finest first."""
    first = offsets_of([len(level.cost) for level in levels]).astype(np.int64)
    units = len(levels[0].cost)
    group = np.arange(units)
    groups = []
    for level, shift in zip(levels[:-1], first[1:], strict=False):
        group = level.parent[group]
        groups.append(group + shift)
    around = np.stack(groups, axis=1)  # [units, levels - 1]
    upwards = np.argsort(around.T.ravel(), kind="stable")

    def joined(field: str) -> NDArray[np.float32]:
        return np.concatenate([getattr(level, field) for level in levels])

    def shifted(field: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(level, field) + f for level, f in zip(levels, first, strict=False)])

    return Nodes(
        cost=joined("cost"),
        features=joined("features"),
        inverse_root_degree=joined("inverse_root_degree"),
        arc_source=shifted("arc_source"),
        arc_target=shifted("arc_target"),
        arc_price=joined("arc_price"),
        arc_share=joined("arc_share"),
        arc_features=joined("arc_features"),
        member_source=np.concatenate([around.ravel(), upwards % max(units, 1)]),
        member_target=np.concatenate([np.repeat(np.arange(units), len(groups)), around.T.ravel()[upwards]]),
        unit_arcs=len(levels[0].arc_source),
        unit_members=around.size,
    )
