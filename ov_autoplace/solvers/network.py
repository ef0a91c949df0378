"""Minimum s-t cut of functions of two-valued nodes that flow networks can express.

A node is on the source side or on the sink side. What can be paid: a price per node and side, and for a
*star* (a head and its members) a price when the head is on one side and *any* member on the other. That is
a tensor: one producer, several consumers, one transfer however many of them sit on the other device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray, FloatArray

__all__ = ["SINK", "SOURCE", "Cut", "Stars", "minimum_cut"]

SOURCE, SINK = -1, -2
"""Numbers that stand for the terminals wherever a node is expected."""

# Prices become integers: so large that rounding is far below what a double can say of their sum, and small
# enough that all that leaves the source together stays below 2**63.
_LARGEST_FLOW = 2.0**50
_LARGEST_SUM = 2.0**61


@dataclass(frozen=True, eq=False)
class Stars:
    """K stars. ``head`` and ``members`` hold node numbers, ``SOURCE`` or ``SINK``.

    Attributes:
        head: ``int[K]``.
        members: Concatenated members, ``int[M]``; every star has at least one.
        lengths: Number of members of each star, ``int[K]``.
        leaving: Price when the head is on the source side and a member on the sink side, ``float64[K]``.
        entering: Price when the head is on the sink side and a member on the source side, ``float64[K]``.
    """

    head: NDArray[np.integer]
    members: NDArray[np.integer]
    lengths: NDArray[np.integer]
    leaving: FloatArray
    entering: FloatArray


@dataclass(frozen=True, eq=False)
class Cut:
    """A minimum cut.

    Attributes:
        smallest: Whether each node is on the source side in the cut with the smallest source side,
            ``bool[n]``.
        largest: The same for the largest source side; both cuts have the same value.
        lower_bound: Proven lower bound of the minimum, some parts in 2**40 below it at most.
    """

    smallest: BoolArray
    largest: BoolArray
    lower_bound: float


def minimum_cut(source_price: FloatArray, sink_price: FloatArray, stars: list[Stars]) -> Cut:
    """Find the cheapest sides of n nodes.

    Args:
        source_price: Price of each node on the source side, finite, ``float64[n]``.
        sink_price: Price of each node on the sink side.
        stars: Prices of nodes on different sides, all >= 0.
    """
    n = len(source_price)
    source, sink, nodes = n, n + 1, n + 2
    number = np.arange(n + 2)
    number[[SOURCE, SINK]] = source, sink
    lower = np.minimum(source_price, sink_price)
    arcs = [
        _Arcs(np.full(n, source), number[:n], sink_price - lower),
        _Arcs(number[:n], np.full(n, sink), source_price - lower),
    ]
    for star in stars:
        for price, leaves in ((star.leaving, True), (star.entering, False)):
            added, nodes = _star_arcs(star, price, number, nodes)
            arcs += added if leaves else [_Arcs(a.head, a.tail, a.price) for a in added]
    flow, smallest, largest = _solve(
        _Arcs(*(np.concatenate(column) for column in zip(*arcs, strict=True))), nodes, source, sink
    )
    return Cut(smallest=smallest[:n], largest=largest[:n], lower_bound=float(lower.sum()) + flow)


class _Arcs(NamedTuple):
    """Arcs between nodes, and the price of cutting each from tail to head."""

    tail: NDArray[np.integer]
    head: NDArray[np.integer]
    price: FloatArray


def _star_arcs(
    star: Stars, price: FloatArray, number: NDArray[np.integer], nodes: int
) -> tuple[list[_Arcs], int]:
    """The arcs from heads to members at a price, and the number of nodes with the stars' own ones.

    A head of several members has an own node between: no more can pass through it than its one arc lets, so
    that price is as good as an infinite one on the members' arcs, and keeps every number small.
    """
    paid = price > 0
    several = paid & (star.lengths > 1)
    centre = number[star.head]
    hub = centre.copy()
    hub[several] = np.arange(nodes, nodes + int(several.sum()))
    members = number[star.members[np.repeat(paid, star.lengths)]]
    lengths = star.lengths[paid]
    return [
        _Arcs(centre[several], hub[several], price[several]),
        _Arcs(np.repeat(hub[paid], lengths), members, np.repeat(price[paid], lengths)),
    ], nodes + int(several.sum())


def _solve(arcs: _Arcs, nodes: int, source: int, sink: int) -> tuple[float, BoolArray, BoolArray]:
    """Maximum flow, rounded down, and the smallest and the largest source side of a minimum cut."""
    # What enters the source or leaves the sink is never worth sending.
    useful = (arcs.tail != arcs.head) & (arcs.tail != sink) & (arcs.head != source) & (arcs.price > 0)
    tail, head = arcs.tail[useful].astype(np.int32), arcs.head[useful].astype(np.int32)
    price = arcs.price[useful]
    # The flow cannot exceed what leaves the source or enters the sink: a capacity well above that is never
    # filled, never part of a minimum cut, and as good as infinite.
    leaving = price[tail == source]
    upper = min(float(leaving.sum()), float(price[head == sink].sum()))
    if upper > 0:
        most = 2 * upper
        scale = min(_LARGEST_FLOW / upper, _LARGEST_SUM / float(np.minimum(leaving, most).sum()))
        # Rounded down, so that the flow never exceeds the true minimum and the bound stays a bound.
        capacity = np.floor(np.minimum(price, most) * scale)
    else:  # nothing flows, and every arc that has a price holds its two ends together
        scale, capacity = 1.0, np.sign(price)
    flow, smallest, largest = _core.minimum_cut(
        nodes, source, sink, tail, head, capacity.astype(np.int64), np.zeros(len(capacity), dtype=np.int64)
    )
    return flow / scale, smallest.astype(np.bool_), largest.astype(np.bool_)
