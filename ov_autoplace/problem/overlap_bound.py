"""What no placement on lanes can beat: ways through the graph, and work that has to share the lanes.

Both bounds are of the objective ``overlap``. They take less than any placement pays: every piece on the lane
that suits it best, as few launches as there can be, and no waiting for lanes that are busy.

* The longest way: no tensor is read before all that it is made of has run, each part on any lane and with the
  cheapest of all transfers between them.
* Work in a window: pieces that cannot start before r and must end q before the end share the lanes for what
  is between (Carlier, "Scheduling jobs with release dates and tails on identical machines", 1984). On lanes
  that differ, work counts at prices that sum up to 1: whatever these are, the sum over the lanes of price
  times busy time is at most the length of the window, and the best prices are the dual of the linear program
  that spreads the work over the lanes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.arrays import FloatArray
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

    @property
    def longest(self) -> float:
        """The longest way through the graph."""
        return float((self.finish + self.tail).min(axis=1).max(initial=0.0))


def overlap_bound(problem: Problem) -> float:
    """Seconds that no allowed placement of a problem can beat under the objective ``overlap``."""
    seconds = piece_seconds(problem)
    ways = ways_of(problem, seconds)
    return max(ways.longest, _window_bound(problem, seconds, ways))


def piece_seconds(problem: Problem) -> FloatArray:
    """Run time of each piece on each lane, ``float64[P, L]``.

    ``inf`` = it is forbidden there, 0 = it is in no submodel.
    """
    parts = parts_of(problem.table)
    allowed = np.isfinite(problem.units.op_seconds)[problem.units.unit_of]
    seconds = np.zeros((len(parts), problem.table.num_devices))
    np.add.at(seconds, parts.piece_of, np.where(allowed, problem.table.op_seconds, np.inf))
    return np.where(parts.runs[:, None] | np.isinf(seconds), seconds, 0.0)


def ways_of(problem: Problem, seconds: FloatArray) -> Ways:
    """The least times before and behind every piece; pieces that share a unit may be on different lanes here.

    Args:
        problem: Pieces on L lanes.
        seconds: See :func:`piece_seconds`.
    """
    table, parts = problem.table, parts_of(problem.table)
    latency, rate = table.transfer_latency, table.transfer_seconds_per_byte
    launch, stays = table.launch_seconds, np.eye(table.num_devices, dtype=np.bool_)
    # From a lane (row) to another, whose submodel has to be launched when the tensor is there.
    ways = [np.where(stays, 0.0, latency + rate * size + launch) for size in parts.tensor_bytes.tolist()]
    offsets, consumers = parts.offsets.tolist(), parts.consumers.tolist()
    producer = parts.producer.tolist()
    before = np.tile(launch, (len(parts), 1))
    finish = np.full_like(seconds, -1.0)
    tail = np.zeros_like(seconds)
    by_producer = np.argsort(parts.producer, kind="stable").tolist()
    for t in by_producer:
        p = producer[t]
        finish[p] = before[p] + seconds[p]
        arrival = (finish[p][:, None] + ways[t]).min(axis=0)
        for c in consumers[offsets[t] : offsets[t + 1]]:
            np.maximum(before[c], arrival, out=before[c])
    finish = before + seconds
    for t in reversed(by_producer):
        p = producer[t]
        for c in consumers[offsets[t] : offsets[t + 1]]:
            np.maximum(tail[p], (ways[t] + (seconds[c] + tail[c])).min(axis=1), out=tail[p])
    return Ways(finish[parts.runs], tail[parts.runs])


def _window_bound(problem: Problem, seconds: FloatArray, ways: Ways) -> float:
    """The longest of all windows that their own work fills."""
    running = seconds[parts_of(problem.table).runs]
    if not len(running):
        return 0.0
    can = np.isfinite(running)
    earliest = (ways.finish - np.where(can, running, 0.0)).min(axis=1)
    after = ways.tail.min(axis=1)
    starts, ends = _thresholds(earliest), _thresholds(after)
    row = np.searchsorted(starts, earliest, side="right") - 1
    column = np.searchsorted(ends, after, side="right") - 1
    # While several lanes compute, a second of each of them is 1 / corun_factor of a second of work.
    corun = problem.table.corun_factor
    best = 0.0
    for prices in _lane_prices(problem, running):
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
