"""Minimum s-t cut of functions of two-valued nodes that flow networks can express.

A node is on the source side or on the sink side. What can be paid: a price per node and side, and for a
*star* (a head and its members) a price when the head is on one side and *any* member on the other. That is
a tensor: one producer, several consumers, one transfer however many of them sit on the other device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._arrays import BoolArray, FloatArray

__all__ = ["SINK", "SOURCE", "Cut", "Stars", "minimum_cut"]

SOURCE, SINK = -1, -2
"""Numbers that stand for the terminals wherever a node is expected."""

# SciPy's maximum flow counts in int32, and a residual capacity is at most a capacity plus the flow.
_LARGEST_FLOW = 2**30 - 2
_LARGEST_CAPACITY = 2**30 - 1


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
        lower_bound: Proven lower bound of the minimum, at most one part in 2**30 per arc below it.
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
    tails = [np.full(n, source), number[:n]]
    heads = [number[:n], np.full(n, sink)]
    prices = [sink_price - lower, source_price - lower]
    for star in stars:
        nodes = _add_star(star, number, nodes, tails, heads, prices)
    tail, head, price = np.concatenate(tails), np.concatenate(heads), np.concatenate(prices)
    useful = (tail != head) & (tail != sink) & (head != source) & (price > 0)
    tail, head, price = tail[useful], head[useful], price[useful]

    # The flow cannot exceed what leaves the source or enters the sink: that sets the scale, and any
    # capacity above it is never filled and as good as infinite.
    upper = min(float(price[tail == source].sum()), float(price[head == sink].sum()))
    flow, from_source, to_sink = _solve(tail, head, price, nodes, source, sink, upper)
    return Cut(
        smallest=from_source[:n],
        largest=~to_sink[:n],
        lower_bound=float(lower.sum()) + flow,
    )


def _add_star(
    star: Stars,
    number: NDArray[np.integer],
    nodes: int,
    tails: list[NDArray[Any]],
    heads: list[NDArray[Any]],
    prices: list[FloatArray],
) -> int:
    """Append the arcs of stars; returns the number of nodes with the stars' own ones."""
    centre = number[star.head]
    members = number[star.members]
    single = star.lengths == 1
    several = ~single
    of_single = np.repeat(single, star.lengths)
    tails += [centre[single], members[of_single]]
    heads += [members[of_single], centre[single]]
    prices += [star.leaving[single], star.entering[single]]
    if several.any():
        # head -> own node -> members: no more can pass through the own node than its one arc lets, so
        # that price is as good as an infinite one on the members' arcs, and keeps every number small.
        count = int(several.sum())
        members = members[~of_single]
        for price, forward in ((star.leaving[several], True), (star.entering[several], False)):
            if not price.any():
                continue
            own = np.arange(nodes, nodes + count)
            nodes += count
            spread = np.repeat(own, star.lengths[several])
            tails += [centre[several], spread] if forward else [own, members]
            heads += [own, members] if forward else [centre[several], spread]
            prices += [price, np.repeat(price, star.lengths[several])]
    return nodes


def _solve(
    tail: NDArray[Any],
    head: NDArray[Any],
    price: FloatArray,
    nodes: int,
    source: int,
    sink: int,
    upper: float,
) -> tuple[float, BoolArray, BoolArray]:
    """Maximum flow: its value (rounded down), what the source still reaches, what still reaches the sink."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    scale = _LARGEST_FLOW / upper if upper > 0 else 0.0
    ends = (np.concatenate([tail, head]).astype(np.int32), np.concatenate([head, tail]).astype(np.int32))
    network = csr_matrix((np.concatenate([price, np.zeros(len(price))]), ends), shape=(nodes, nodes))
    network.sort_indices()
    if scale == 0.0:
        network.eliminate_zeros()
        return 0.0, _reachable(network, source), _reachable(network.T.tocsr(), sink)
    # Rounded down, so that the flow never exceeds the true minimum and the bound stays a bound.
    capacity = np.minimum(np.floor(network.data * scale), _LARGEST_CAPACITY).astype(np.int32)
    network.data = capacity
    sent = maximum_flow(network, source, sink, method="dinic")
    network.data = capacity - sent.flow.data  # the same arcs in the same order
    network.eliminate_zeros()
    return sent.flow_value / scale, _reachable(network, source), _reachable(network.T.tocsr(), sink)


def _reachable(network: Any, start: int) -> BoolArray:
    """Nodes that arcs of a CSR matrix lead to from ``start``."""
    from scipy.sparse.csgraph import breadth_first_order

    reached = np.zeros(network.shape[0], dtype=np.bool_)
    reached[breadth_first_order(network, start, return_predecessors=False)] = True
    return reached
