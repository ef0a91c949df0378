"""The optimum of tiny graphs on lanes: all placements but those that a bound or a copy of a lane excludes."""

from __future__ import annotations

from math import log

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, grouped
from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import parts_of
from ov_autoplace.problem.overlap_bound import piece_seconds, ways_of
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.heft import heft_assignment
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.pooling import copies_of
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import task_graphs

__all__ = ["exact_assignment", "is_tiny", "solve_exact"]

_TINY = 4096
_MOST_OPEN = 300_000  # placements of the first units that are open at once


def solve_exact(problem: Problem, options: SolverOptions) -> Placement:
    """The best of all allowed placements, and the proof.

    Raises:
        PlacementError: Too many placements are left to be tried, or nothing fits into memory.
    """
    best = exact_assignment(problem, options)
    return problem.evaluator.answer(best, float(problem.evaluator.latencies([best])[0]))


def is_tiny(problem: Problem) -> bool:
    """Whether all placements are worth trying without being asked."""
    choices = np.isfinite(problem.units.op_seconds).sum(axis=1)
    return bool(np.log(choices).sum() <= log(_TINY) + 1e-9)


def exact_assignment(problem: Problem, options: SolverOptions) -> IntArray:
    """The best assignment of units, ``int32[U]``, by branch and bound, breadth first.

    Units are placed in order. What is placed of the first ones is dropped when the longest way through them,
    or the work on a lane, takes as long as the best placement known; of lanes that are copies, the first that
    is not in use stands for all that are not.

    Raises:
        PlacementError: Too many placements are left to be tried, or nothing fits into memory.
    """
    evaluator, units = problem.evaluator, problem.units
    schedules = [heft_assignment(problem, tasks) for tasks in task_graphs(problem)]
    known = [*evaluator.singles().values(), *(a for a in schedules if a is not None)]
    best = evaluator.best(known) if known else first_fit(problem.table, units)
    value = float(evaluator.latencies([best])[0])
    tree = _Tree(problem)
    rows = np.zeros((1, 0), dtype=np.int32)
    state = tree.root()
    for u in range(len(units)):
        rows, state = tree.grown(rows, state, u, value)
        if len(rows) > _MOST_OPEN:
            raise PlacementError(
                f"the solver exact has {len(rows)} placements of {u + 1} of {len(units)} units still to try; "
                "use the solver portfolio for a graph of this size"
            )
    if units.has_memory_limits:
        rows = rows[[units.fits(row) for row in rows]] if len(rows) else rows
    return evaluator.best(np.concatenate([best[None], rows]))


class _Tree:
    """Placements of the first units, all of them at once; B of them are a state ``(busy, finish)``.

    ``busy`` holds the seconds of work on each lane, ``float64[B, L]``; ``finish`` the least time at which
    each piece is done, ``float64[B, P]``, under the assumption that every lane is free whenever it is needed.
    """

    def __init__(self, problem: Problem) -> None:
        table, units = problem.table, problem.units
        parts = self._parts = parts_of(table)
        self._units = units
        self._seconds = piece_seconds(problem)
        ways = ways_of(problem, self._seconds)
        P, L = self._seconds.shape
        self._finish = np.where(parts.runs, ways.finish.min(axis=1), 0.0)
        self._tail = ways.tail
        unit_of_piece = np.empty(P, dtype=np.int32)
        unit_of_piece[parts.piece_of] = units.unit_of
        self._unit_of_piece = unit_of_piece
        self._pieces = grouped(np.flatnonzero(parts.runs), unit_of_piece[parts.runs], len(units))
        least = np.where(parts.runs[:, None], self._seconds, 0.0).min(axis=1)
        work = np.bincount(unit_of_piece, least, len(units))
        self._work_left = np.concatenate([np.cumsum(work[::-1])[::-1][1:], [0.0]])
        self._inputs: list[list[tuple[int, FloatArray]]] = [[] for _ in range(P)]
        stays = np.eye(L, dtype=np.bool_)
        for t, p in enumerate(parts.producer.tolist()):
            way = table.transfer_latency + table.transfer_seconds_per_byte * parts.tensor_bytes[t]
            way = np.where(stays, 0.0, way + table.launch_seconds)
            for c in parts.consumers[parts.offsets[t] : parts.offsets[t + 1]].tolist():
                self._inputs[c].append((p, way))
        self._launch = table.launch_seconds
        self._copies = [lanes for lanes in copies_of(units) if len(lanes) > 1]
        self._usable = len(units.usable_devices)

    def root(self) -> tuple[FloatArray, FloatArray]:
        """Nothing is placed."""
        return np.zeros((1, self._seconds.shape[1])), self._finish[None].copy()

    def grown(
        self, rows: IntArray, state: tuple[FloatArray, FloatArray], u: int, limit: float
    ) -> tuple[IntArray, tuple[FloatArray, FloatArray]]:
        """Every placement with unit ``u`` on every lane, but those that cannot be faster than ``limit``."""
        grown = [self._placed(rows, state, u, lane, limit) for lane in self._units.usable_devices]
        return (
            np.concatenate([rows for rows, _, _ in grown]),
            (np.concatenate([busy for _, busy, _ in grown]), np.concatenate([done for _, _, done in grown])),
        )

    def _placed(
        self, rows: IntArray, state: tuple[FloatArray, FloatArray], u: int, lane: int, limit: float
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        takes = self._is_first_of_copies(rows, lane)
        if not np.isfinite(self._units.op_seconds[u, lane]):
            takes[:] = False
        rows, busy, finish = rows[takes], state[0][takes], state[1][takes]
        bound = np.zeros(len(rows))
        for p in self._pieces[u]:
            seconds = self._seconds[p, lane]
            busy[:, lane] += seconds
            ready = np.full(len(rows), 0.0 if self._inputs[p] else self._launch[lane])
            for q, way in self._inputs[p]:
                placed_at = self._unit_of_piece[q]
                hop: FloatArray | float = 0.0
                if placed_at == u:
                    hop = 0.0
                elif placed_at < u:
                    hop = way[rows[:, placed_at], lane]
                ready = np.maximum(ready, finish[:, q] + hop)
            finish[:, p] = np.maximum(finish[:, p], ready + seconds)
            bound = np.maximum(bound, finish[:, p] + self._tail[p, lane])
        used = np.where(busy > 0, busy + self._launch, 0.0)
        bound = np.maximum(bound, used.max(axis=1, initial=0.0))
        bound = np.maximum(bound, (used.sum(axis=1) + self._work_left[u]) / self._usable)
        keep = bound < limit * (1 - 1e-9)
        rows = np.concatenate([rows[keep], np.full((int(keep.sum()), 1), lane, dtype=np.int32)], axis=1)
        return rows, busy[keep], finish[keep]

    def _is_first_of_copies(self, rows: IntArray, lane: int) -> BoolArray:
        """Where no copy of the lane before it is still out of use."""
        takes = np.ones(len(rows), dtype=np.bool_)
        for lanes in self._copies:
            if lane in lanes:
                for before in lanes[: lanes.index(lane)]:
                    takes &= (rows == before).any(axis=1)
        return takes
