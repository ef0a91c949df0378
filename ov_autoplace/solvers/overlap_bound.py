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

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.tasks import TaskGraph, seconds_after, seconds_until

__all__ = ["overlap_bound"]

_WINDOW_ENDS = 64
_LARGEST_PROGRAM = 100_000  # pieces times lanes; beyond, all lanes have one price


def overlap_bound(problem: Problem, pieces: TaskGraph) -> float:
    """Seconds that no allowed placement of a problem can beat under the objective ``overlap``.

    Args:
        problem: On L lanes.
        pieces: The finest of its graphs of tasks. Pieces that share a unit may be on different lanes here.
    """
    if not len(pieces):
        return 0.0
    prices = _lane_prices(problem, pieces.seconds)
    stretch = _stretches(pieces)
    whole = np.zeros_like(stretch)
    return max(_stretches_bound(problem, pieces, numbers, prices) for numbers in (whole, stretch))


def _stretches(pieces: TaskGraph) -> IntArray:
    """Number of each piece's stretch, ``int32[P]``; a bottleneck is the last piece of its own."""
    P = len(pieces)
    first_reader, last_input = np.full(P, P), np.full(P, -1)
    for piece, producers in enumerate(pieces.producers):
        for producer, _ in producers:
            first_reader[producer] = min(first_reader[producer], piece)
            last_input[piece] = max(last_input[piece], producer)
    # All pieces before p lead to it if each has a reader at p or before; all behind come from it if each has
    # an input at p or behind.
    leads = np.concatenate([[0], np.maximum.accumulate(first_reader)[:-1]]) <= np.arange(P)
    comes = np.concatenate([np.minimum.accumulate(last_input[::-1])[::-1][1:], [P]]) >= np.arange(P)
    return np.concatenate([[0], np.cumsum(leads & comes)[:-1]]).astype(np.int32)


def _stretches_bound(
    problem: Problem, pieces: TaskGraph, stretch: IntArray, prices: list[FloatArray]
) -> float:
    """The sum over stretches of the longest way through each, or the longest window that its work fills."""
    finish = seconds_until(problem, pieces, stretch)
    tail = seconds_after(problem, pieces, stretch)
    longest = np.zeros(int(stretch[-1]) + 1)
    np.maximum.at(longest, stretch, (finish + tail).min(axis=1))
    parts = np.split(np.arange(len(pieces)), np.flatnonzero(np.diff(stretch)) + 1)
    windows = [_window_bound(problem, pieces.seconds[p], finish[p], tail[p], prices) for p in parts]
    return float(np.maximum(longest, windows).sum())


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
