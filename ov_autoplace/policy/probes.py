"""What simple placements of a graph would run into: the part of HETERO's costs that no edge shows.

HETERO cuts subgraphs that wait for each other in a circle, and each cut costs a launch and hand-
overs. Whether a mix of devices makes circles is a property of the whole placement: hardly any in a
chain, hundreds in an unrolled recurrent network. So each graph is probed: on the first levels of
grouping every group is put where it is cheapest, and the policy is told, of each unit, how many
subgraphs are in the circle that its own lies in, and of the whole graph, how many are in any, and
what the placement would cost without circles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ov_autoplace import _core

if TYPE_CHECKING:
    from ov_autoplace.policy.features import PolicyGraph

__all__ = ["PROBED_LEVELS", "PROBE_FEATURES", "probe_features"]

PROBED_LEVELS = 4

PROBE_FEATURES = tuple(
    f"level{level}_{name}"
    for level in range(PROBED_LEVELS)
    for name in ("log_own_circle", "log_all_circles", "log_cost_by_best_single")
)
"""Columns of :attr:`~ov_autoplace.policy.features.PolicyGraph.probes`."""


def probe_features(graph: PolicyGraph) -> NDArray[np.float32]:
    """Features of N units, ``float32[N, len(PROBE_FEATURES)]``."""
    n = len(graph)
    ends = np.stack([graph.edge_source, graph.edge_target], axis=1).astype(np.int32)
    best_single = max(float(graph.node_cost.sum(axis=0).min()), 1e-12)
    group = np.arange(n)
    columns: list[NDArray[np.float64]] = []
    for level in graph.levels[:PROBED_LEVELS]:
        placed = level.cost.argmin(axis=1)[group]
        own, circles = _circles(placed, ends)
        seconds = graph.node_cost[np.arange(n), placed].sum(dtype=np.float64) + _hand_overs(graph, placed)
        columns += [
            np.log(own) / 4,
            np.full(n, np.log1p(circles) / 4),
            np.full(n, np.clip(np.log(max(seconds, 1e-12) / best_single), -3, 3)),
        ]
        group = level.parent[group]
    return np.stack(columns, axis=1).astype(np.float32)


def _circles(placed: NDArray[np.int64], ends: NDArray[np.int32]) -> tuple[NDArray[np.int64], int]:
    """Of each unit the number of subgraphs in its circle (1 = none), and the number in all circles."""
    crosses = placed[ends[:, 0]] != placed[ends[:, 1]]
    piece = _core.connected_labels(len(placed), np.ascontiguousarray(ends[~crosses]))
    circle = _core.merge_cycles(piece, np.ascontiguousarray(ends[crosses]))
    _, first_of_piece = np.unique(piece, return_index=True)
    pieces = np.bincount(circle[first_of_piece])
    return pieces[circle], int(pieces[pieces > 1].sum())


def _hand_overs(graph: PolicyGraph, placed: NDArray[np.int64]) -> float:
    """Prices of all crossing edges, halfway between shared and not."""
    edges = np.arange(len(graph.edge_source))
    price = graph.edge_cost[edges, placed[graph.edge_source], placed[graph.edge_target]]
    return float((price * (0.5 + 0.5 * graph.edge_share)).sum(dtype=np.float64))
