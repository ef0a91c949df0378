"""Subgraphs that depend on each other in a cycle, which HETERO cuts one at a time, as must the simulator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ov_autoplace import _core
from ov_autoplace._base.arrays import IntArray

__all__ = ["Cycles", "cycles_of"]


class Cycles(NamedTuple):
    """The cycles of one placement of U units.

    Attributes:
        of_unit: Number of subgraphs in the cycle of each unit's subgraph, 1 = it is in none, ``int64[U]``.
        subgraphs: Number of subgraphs in all cycles.
        visited: Units that a simulation visits, U where there is no cycle: those in a cycle once for each of
            its subgraphs.
    """

    of_unit: NDArray[np.int64]
    subgraphs: int
    visited: int


def cycles_of(edges: IntArray, device: NDArray[np.integer]) -> Cycles:
    """The cycles of a placement.

    Args:
        edges: Producer and consumer of each edge between units, ``int32[E, 2]``.
        device: Of each unit, ``int[U]``.
    """
    crosses = device[edges[:, 0]] != device[edges[:, 1]]
    piece = _core.connected_labels(len(device), np.ascontiguousarray(edges[~crosses]))
    cycle = _core.merge_cycles(piece, np.ascontiguousarray(edges[crosses]))
    cycle_of_piece = np.zeros(int(piece.max(initial=-1)) + 1, dtype=np.int64)
    cycle_of_piece[piece] = cycle
    pieces = np.bincount(cycle_of_piece)
    visited = int((pieces * np.bincount(cycle)).sum())
    return Cycles(pieces[cycle], int(pieces[pieces > 1].sum()), visited)
