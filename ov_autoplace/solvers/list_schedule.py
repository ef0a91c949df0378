"""List scheduling on lanes: a schedule that grows by one task at a time.

A task that is ready goes to a lane, if need be into a gap between two others (insertion). A tensor from
another lane ends one submodel and begins another, so it brings a launch of the receiving lane besides its
transfer.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.tasks import TaskGraph

__all__ = ["ListSchedule"]

_ROUNDING = 1e-12  # gaps that are shorter, relative to their time, are what is left of sums

_Timeline = list[tuple[float, float]]  # when a lane is busy, in order; a gap between any two


class ListSchedule:
    """N tasks on L lanes, of which some are placed.

    Args:
        problem: With the objective ``overlap``.
        tasks: Of that problem.

    Attributes:
        readers: For each task those that read it, with the bytes of the largest tensor.
        lane: Lane of each task, ``int32[N]``, -1 = not placed yet.
        finish: When each task ends, ``float64[N]`` in seconds.
    """

    def __init__(self, problem: Problem, tasks: TaskGraph) -> None:
        self._problem, self._tasks = problem, tasks
        table, units = problem.table, problem.units
        self.readers: list[list[tuple[int, float]]] = [[] for _ in range(len(tasks))]
        for task, producers in enumerate(tasks.producers):
            for p, size in producers:
                self.readers[p].append((task, size))
        self.lane = np.full(len(tasks), -1, dtype=np.int32)
        self.finish = np.zeros(len(tasks))
        self._timelines: list[_Timeline] = [[] for _ in range(table.num_devices)]
        self._room = units.memory_capacity * MEMORY_TOLERANCE
        self._bytes_of_class = [float(units.packing_bytes[members].sum()) for members in tasks.units]
        self._allowed = [np.isfinite(units.op_seconds[members]).all(axis=0) for members in tasks.units]
        self._lane_of_class = np.full(len(tasks.units), -1, dtype=np.int32)
        self._lanes = np.arange(table.num_devices)

    def ready_seconds(self, task: int) -> FloatArray:
        """When everything that a task reads has arrived on each lane, ``float64[L]``; all of it is placed."""
        table = self._problem.table
        if not self._tasks.producers[task]:
            return np.asarray(table.launch_seconds, dtype=np.float64)
        ready = np.zeros(len(self._lanes))
        for p, size in self._tasks.producers[task]:
            lane, finish = self.lane[p], self.finish[p]
            arrives = table.transfer_seconds_per_byte[lane] * size
            arrives += finish + table.transfer_latency[lane] + table.launch_seconds
            arrives[lane] = finish
            np.maximum(ready, arrives, out=ready)
        return ready

    def candidates(self, task: int) -> IntArray:
        """The lanes that a task may still go to."""
        own = int(self._tasks.together[task])
        if self._lane_of_class[own] >= 0:
            may = self._lanes == self._lane_of_class[own]
        else:
            may = self._allowed[own] & (self._bytes_of_class[own] <= self._room)
        return np.flatnonzero(may & np.isfinite(self._tasks.seconds[task])).astype(np.int32)

    def finish_seconds(self, task: int) -> FloatArray:
        """When a task would end on each lane, ``float64[L]``; ``inf`` = it cannot go there."""
        ready, end = self.ready_seconds(task), np.full(len(self._lanes), np.inf)
        for d in self.candidates(task).tolist():
            length = float(self._tasks.seconds[task, d])
            end[d] = _earliest(self._timelines[d], float(ready[d]), length) + length
        return end

    def put(self, task: int, lane: int, finish: float) -> None:
        """Place a task, which then ends at ``finish``."""
        own = int(self._tasks.together[task])
        if self._lane_of_class[own] < 0:
            self._place(own, lane)
        _occupy(self._timelines[lane], finish - float(self._tasks.seconds[task, lane]), finish)
        self.lane[task], self.finish[task] = lane, finish

    def _place(self, own: int, lane: int) -> None:
        device_of = self._problem.units.device_of
        self._lane_of_class[own] = lane
        self._room[device_of == device_of[lane]] -= self._bytes_of_class[own]

    def assignment(self) -> IntArray | None:
        """Lane of each unit, ``int32[U]``, when all tasks are placed; ``None`` if memory does not suffice."""
        units = self._problem.units
        for own in np.flatnonzero(self._lane_of_class < 0).tolist():
            # Inputs, outputs and constants: nobody waits for them.
            takes = np.flatnonzero(self._allowed[own] & (self._bytes_of_class[own] <= self._room))
            if not len(takes):
                return None
            self._place(own, int(takes[0]))
        device = np.empty(len(units), dtype=np.int32)
        for members, chosen in zip(self._tasks.units, self._lane_of_class.tolist(), strict=True):
            device[members] = chosen
        return device if units.fits(device) else None


def _earliest(timeline: _Timeline, ready: float, length: float) -> float:
    """When a lane is first free for so long, at ``ready`` or later."""
    if length <= 0:
        return ready  # it is in nobody's way
    start = ready
    # What begins later than this cannot be in the way before; the one before may still run.
    for i in range(max(0, bisect_right(timeline, (ready, np.inf)) - 1), len(timeline)):
        begin, end = timeline[i]
        if start + length <= begin:
            break
        start = max(start, end)
    return start


def _occupy(timeline: _Timeline, begin: float, end: float) -> None:
    """Mark a lane as busy. What touches is joined: on wide graphs, lanes have few gaps and many tasks."""
    if end <= begin:
        return
    at = bisect_right(timeline, (begin, np.inf))
    first, last = at, at
    if at and timeline[at - 1][1] >= begin * (1 - _ROUNDING):
        first = at - 1
        begin, end = timeline[first][0], max(timeline[first][1], end)
    if at < len(timeline) and timeline[at][0] <= end * (1 + _ROUNDING):
        last = at + 1
        end = max(end, timeline[at][1])
    timeline[first:last] = [(begin, end)]
