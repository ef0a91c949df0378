"""Minimum s-t cut of functions of two-valued nodes that flow networks can express.

A node is on the source side or on the sink side. What can be paid: a price per node and side, and for a
*star* (a head and its members) a price when the head is on one side and *any* member on the other. That is
a tensor: one producer, several consumers, one transfer however many of them sit on the other device.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

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
    terminals = _Arcs(
        tail=np.concatenate([np.full(n, source), number[:n]]),
        head=np.concatenate([number[:n], np.full(n, sink)]),
        forward=np.concatenate([sink_price, source_price]) - np.tile(lower, 2),
        backward=np.zeros(2 * n),
    )
    parts = [terminals]
    for star in stars:
        added, nodes = _star_arcs(star, number, nodes)
        parts += added
    arcs = _Arcs(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(_Arcs)))
    flow, smallest, largest = _solve(arcs, nodes, source, sink)
    return Cut(smallest=smallest[:n], largest=largest[:n], lower_bound=float(lower.sum()) + flow)


@dataclass(frozen=True, eq=False)
class _Arcs:
    """Arcs between nodes: the price of cutting them from tail to head, and from head to tail."""

    tail: NDArray[np.integer]
    head: NDArray[np.integer]
    forward: FloatArray
    backward: FloatArray


def _star_arcs(star: Stars, number: NDArray[np.integer], nodes: int) -> tuple[list[_Arcs], int]:
    """The arcs of stars, and the number of nodes with the stars' own ones."""
    centre = number[star.head]
    members = number[star.members]
    single = star.lengths == 1
    of_single = np.repeat(single, star.lengths)
    parts = [_Arcs(centre[single], members[of_single], star.leaving[single], star.entering[single])]
    # head -> own node -> members: no more can pass through the own node than its one arc lets, so that price
    # is as good as an infinite one on the members' arcs, and keeps every number small.
    for price, leaves in ((star.leaving, True), (star.entering, False)):
        paid = ~single & (price > 0)
        if not paid.any():
            continue
        own = np.arange(nodes, nodes + int(paid.sum()))
        nodes += len(own)
        lengths = star.lengths[paid]
        spread = np.repeat(own, lengths)
        reached = members[np.repeat(paid, star.lengths)]
        nothing, nothing_each = np.zeros(len(own)), np.zeros(len(spread))
        each = np.repeat(price[paid], lengths)
        if leaves:
            parts.append(_Arcs(centre[paid], own, price[paid], nothing))
            parts.append(_Arcs(spread, reached, each, nothing_each))
        else:
            parts.append(_Arcs(centre[paid], own, nothing, price[paid]))
            parts.append(_Arcs(spread, reached, nothing_each, each))
    return parts, nodes


def _solve(arcs: _Arcs, nodes: int, source: int, sink: int) -> tuple[float, BoolArray, BoolArray]:
    """Maximum flow, rounded down, and the smallest and the largest source side of a minimum cut."""
    # What enters the source or leaves the sink is never worth sending.
    forward = np.where((arcs.tail != sink) & (arcs.head != source), arcs.forward, 0.0)
    backward = np.where((arcs.head != sink) & (arcs.tail != source), arcs.backward, 0.0)
    useful = (arcs.tail != arcs.head) & ((forward > 0) | (backward > 0))
    tail, head = arcs.tail[useful].astype(np.int32), arcs.head[useful].astype(np.int32)
    forward, backward = forward[useful], backward[useful]
    # The flow cannot exceed what leaves the source or enters the sink: a capacity well above that is never
    # filled, never part of a minimum cut, and as good as infinite.
    leaving = np.concatenate([forward[tail == source], backward[head == source]])
    entering = np.concatenate([forward[head == sink], backward[tail == sink]])
    upper = min(float(leaving.sum()), float(entering.sum()))
    if upper > 0:
        most = 2 * upper
        scale = min(_LARGEST_FLOW / upper, _LARGEST_SUM / float(np.minimum(leaving, most).sum()))
        # Rounded down, so that the flow never exceeds the true minimum and the bound stays a bound.
        forward, backward = (np.floor(np.minimum(p, most) * scale) for p in (forward, backward))
    else:  # nothing flows, and every arc that has a price holds its two ends together
        scale = 1.0
        forward, backward = np.sign(forward), np.sign(backward)
    flow, smallest, largest = _core.minimum_cut(
        nodes,
        source,
        sink,
        tail,
        head,
        forward.astype(np.int64),
        backward.astype(np.int64),
    )
    return flow / scale, smallest.astype(np.bool_), largest.astype(np.bool_)
