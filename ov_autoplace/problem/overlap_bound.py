"""What no placement on lanes can beat: ways through the graph, and work that has to share the lanes.

All bounds are of the objective ``overlap``. They take less than any placement pays: every piece on the lane
that suits it best, as few launches as there can be, and no waiting for lanes that are busy.

* The longest way: no tensor is read before all that it is made of has run, each part on any lane and with the
  cheapest of all transfers between them.
* Work in a window: pieces that cannot start before r and must end q before the end share the lanes for what
  is between (Carlier, "Scheduling jobs with release dates and tails on identical machines", 1984). On lanes
  that differ, work counts at prices that sum up to 1: whatever these are, the sum over the lanes of price
  times busy time is at most the length of the window, and the best prices are the dual of the linear program
  that spreads the work over the lanes.
* Bottlenecks: a piece that waits for everything before it, and for which everything behind it waits, ends one
  stretch of the request and begins another. Bounds of stretches add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, rows_of
from ov_autoplace.placement.simulator import parts_of
from ov_autoplace.problem.problem import Problem

__all__ = ["Ways", "overlap_bound", "piece_seconds", "ways_of"]

_WINDOW_ENDS = 64
_LARGEST_PROGRAM = 100_000  # pieces times lanes; beyond, all lanes have one price


@dataclass(frozen=True, eq=False)
class Ways:
    """The least time before and behind P pieces, ``float64[P, L]``, by the lane of the piece.

    Attributes:
        finish: From the start of the request to the end of the piece.
        tail: From the end of the piece to the end of the request.
    """

    finish: FloatArray
    tail: FloatArray


def overlap_bound(problem: Problem) -> float:
    """Seconds that no allowed placement of a problem can beat under the objective ``overlap``."""
    parts, seconds = parts_of(problem.table), piece_seconds(problem)
    runs = np.flatnonzero(parts.runs).astype(np.int32)
    if not len(runs):
        return 0.0
    prices = _lane_prices(problem, seconds[runs])
    whole = _stretch_bound(problem, seconds, ways_of(problem, seconds), runs, prices)
    stretch = _stretches(problem)
    if stretch.max() == 0:
        return whole
    ways = ways_of(problem, seconds, stretch)
    stretches = np.split(runs, np.flatnonzero(np.diff(stretch[runs])) + 1)
    return max(whole, sum([_stretch_bound(problem, seconds, ways, pieces, prices) for pieces in stretches]))


def _stretches(problem: Problem) -> IntArray:
    """Number of each piece's stretch, ``int32[P]``; a bottleneck is the last piece of its own."""
    parts = parts_of(problem.table)
    P = len(parts)
    producer, consumer = parts.producer[rows_of(parts.offsets)], parts.consumers
    first_reader, last_input = np.full(P, P), np.full(P, -1)
    np.minimum.at(first_reader, producer, consumer)
    np.maximum.at(last_input, consumer, producer)
    # What runs nowhere is neither before nor behind.
    first_reader[~parts.runs], last_input[~parts.runs] = 0, P
    # All pieces before p lead to it if each has a reader at p or before; all behind come from it if each has
    # an input at p or behind.
    leads = np.concatenate([[0], np.maximum.accumulate(first_reader)[:-1]]) <= np.arange(P)
    comes = np.concatenate([np.minimum.accumulate(last_input[::-1])[::-1][1:], [P]]) >= np.arange(P)
    is_bottleneck = parts.runs & leads & comes
    return np.concatenate([[0], np.cumsum(is_bottleneck)[:-1]]).astype(np.int32)


def _stretch_bound(
    problem: Problem, seconds: FloatArray, ways: Ways, pieces: IntArray, prices: list[FloatArray]
) -> float:
    """The longest way through some pieces, or the longest window that their own work fills."""
    finish, tail = ways.finish[pieces], ways.tail[pieces]
    longest = float((finish + tail).min(axis=1).max(initial=0.0))
    return max(longest, _window_bound(problem, seconds[pieces], finish, tail, prices))


def piece_seconds(problem: Problem) -> FloatArray:
    """Run time of each piece on each lane, ``float64[P, L]``.

    ``inf`` = it is forbidden there, 0 = it is in no submodel.
    """
    parts = parts_of(problem.table)
    allowed = np.isfinite(problem.units.op_seconds)[problem.units.unit_of]
    seconds = np.zeros((len(parts), problem.table.num_devices))
    np.add.at(seconds, parts.piece_of, np.where(allowed, problem.table.op_seconds, np.inf))
    return np.where(parts.runs[:, None] | np.isinf(seconds), seconds, 0.0)


def ways_of(problem: Problem, seconds: FloatArray, stretch: IntArray | None = None) -> Ways:
    """The least times before and behind every piece; pieces that share a unit may be on different lanes here.

    Args:
        problem: Pieces on L lanes.
        seconds: See :func:`piece_seconds`.
        stretch: Of each piece, ``int32[P]``: ways begin and end with stretches instead of the request.
    """
    table, parts = problem.table, parts_of(problem.table)
    latency, rate = table.transfer_latency, table.transfer_seconds_per_byte
    launch, stays = table.launch_seconds, np.eye(table.num_devices, dtype=np.bool_)
    # From a lane (row) to another, whose submodel has to be launched when the tensor is there.
    ways = [np.where(stays, 0.0, latency + rate * size + launch) for size in parts.tensor_bytes.tolist()]
    offsets, consumers = parts.offsets.tolist(), parts.consumers.tolist()
    producer = parts.producer.tolist()
    before = np.tile(launch, (len(parts), 1))
    part = [0] * len(parts) if stretch is None else stretch.tolist()
    if stretch is not None:
        before[stretch > 0] = 0.0
    finish = np.zeros_like(seconds)
    tail = np.zeros_like(seconds)
    by_producer = np.argsort(parts.producer, kind="stable").tolist()
    for t in by_producer:
        p = producer[t]
        finish[p] = before[p] + seconds[p]
        arrival = (finish[p][:, None] + ways[t]).min(axis=0)
        for c in consumers[offsets[t] : offsets[t + 1]]:
            if part[c] == part[p]:
                np.maximum(before[c], arrival, out=before[c])
    finish = before + seconds
    for t in reversed(by_producer):
        p = producer[t]
        for c in consumers[offsets[t] : offsets[t + 1]]:
            if part[c] == part[p]:
                np.maximum(tail[p], (ways[t] + (seconds[c] + tail[c])).min(axis=1), out=tail[p])
    return Ways(finish, tail)


def _window_bound(
    problem: Problem, running: FloatArray, finish: FloatArray, tail: FloatArray, lane_prices: list[FloatArray]
) -> float:
    """The longest of all windows that their own work fills."""
    can = np.isfinite(running)
    earliest = (finish - np.where(can, running, 0.0)).min(axis=1)
    after = tail.min(axis=1)
    starts, ends = _thresholds(earliest), _thresholds(after)
    row = np.searchsorted(starts, earliest, side="right") - 1
    column = np.searchsorted(ends, after, side="right") - 1
    # While several lanes compute, a second of each of them is 1 / corun_factor of a second of work.
    corun = problem.table.corun_factor
    best = 0.0
    for prices in lane_prices:
        work = np.where(can, np.where(can, running, 0.0) * prices, np.inf).min(axis=1)
        inside = np.zeros((len(starts), len(ends)))
        np.add.at(inside, (row, column), work)
        # What may start at r and later, and has to end q before the end or more.
        inside = inside[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
        fastest = max(float(prices.max()), 1.0 / corun)
        lengths = starts[:, None] + inside / fastest + ends
        best = max(best, float(lengths[inside > 0].max(initial=0.0)))
    return best


def _thresholds(values: FloatArray) -> FloatArray:
    """At most so many of the values, the smallest among them."""
    distinct = np.unique(values)
    if len(distinct) <= _WINDOW_ENDS:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, _WINDOW_ENDS).astype(np.int64)]


def _lane_prices(problem: Problem, running: FloatArray) -> list[FloatArray]:
    """Prices of the lanes' time that sum up to 1: equal ones, and the best for all work together."""
    usable = problem.units.usable_devices
    equal = np.zeros(problem.table.num_devices)
    equal[usable] = 1.0 / len(usable)
    columns = running[:, usable]
    if len(usable) == 1 or columns.size > _LARGEST_PROGRAM or (columns == columns[:, :1]).all():
        return [equal]
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    # Largest sum of work, where the work of a piece is at most its seconds on each lane times the price.
    P, L = columns.shape
    piece, lane = np.nonzero(np.isfinite(columns))
    rows = np.arange(len(piece))
    limits = coo_array(
        (
            np.concatenate([np.ones(len(piece)), -columns[piece, lane]]),
            (np.concatenate([rows, rows]), np.concatenate([piece, P + lane])),
        ),
        shape=(len(piece), P + L),
    )
    solved = linprog(
        np.concatenate([-np.ones(P), np.zeros(L)]),
        A_ub=limits.tocsr(),
        b_ub=np.zeros(len(piece)),
        A_eq=np.concatenate([np.zeros(P), np.ones(L)])[None, :],
        b_eq=[1.0],
        method="highs",
    )
    if solved.x is None:
        return [equal]
    best = np.zeros_like(equal)
    best[usable] = np.maximum(solved.x[P:], 0.0)
    return [equal, best / best.sum()]
