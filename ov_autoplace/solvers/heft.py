"""List scheduling on lanes: HEFT, over single pieces or over whole chains and branches.

H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
Computing", IEEE TPDS 13(3), 2002: tasks are taken by *upward rank*, the length of the longest way to the end
of the graph in mean times and mean transfers, and each goes where it finishes earliest, if need be into a gap
between two others (insertion). A tensor from another lane ends one submodel and begins another, so it brings
a launch of the receiving lane besides its transfer.
"""

from __future__ import annotations

from bisect import bisect_right, insort

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import TaskGraph, task_graphs

__all__ = ["list_schedules", "solve_chains", "solve_heft"]


def solve_heft(problem: Problem, options: SolverOptions) -> Placement:
    """The lanes of HEFT's schedule of single pieces, or the best single lane if that is faster.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    return _best_of(problem, [heft_assignment(problem, next(iter(task_graphs(problem))))])


def solve_chains(problem: Problem, options: SolverOptions) -> Placement:
    """The best of HEFT's schedules of chains and of ever longer branches, and of the single lanes.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    return _best_of(problem, list_schedules(problem, list(task_graphs(problem))[1:]))


def list_schedules(problem: Problem, graphs: list[TaskGraph]) -> list[IntArray]:
    """HEFT's assignments of units for several graphs of tasks, equal ones once."""
    answers = [heft_assignment(problem, tasks) for tasks in graphs]
    return list({answer.tobytes(): answer for answer in answers if answer is not None}.values())


def _best_of(problem: Problem, answers: list[IntArray | None] | list[IntArray]) -> Placement:
    evaluator = problem.evaluator
    found = [*evaluator.singles().values(), *(a for a in answers if a is not None)]
    if not found:
        found = [first_fit(problem.table, problem.units)]
    return evaluator.answer(evaluator.best(found))


def heft_assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    """HEFT's assignment of units, ``int32[U]``; ``None`` when it runs out of memory."""
    table, units = problem.table, problem.units
    L = table.num_devices
    latency, rate = table.transfer_latency, table.transfer_seconds_per_byte
    stays = np.eye(L, dtype=np.bool_)
    timelines: list[list[tuple[float, float]]] = [[] for _ in range(L)]
    room = units.memory_capacity * MEMORY_TOLERANCE
    bytes_of_class = [float(units.packing_bytes[members].sum()) for members in tasks.units]
    allowed = [np.isfinite(units.op_seconds[members]).all(axis=0) for members in tasks.units]
    lane_of_class = np.full(len(tasks.units), -1, dtype=np.int32)
    lane = np.zeros(len(tasks), dtype=np.int32)
    finish = np.zeros(len(tasks))

    def place(own: int, chosen: int) -> None:
        lane_of_class[own] = chosen
        room[units.device_of == units.device_of[chosen]] -= bytes_of_class[own]

    # Ranks fall along every tensor, so tasks come in topological order; equal ones (sums in another order
    # differ in their last digits) stay in theirs.
    ranks = upward_ranks(problem, tasks)
    ranks = np.round(ranks / max(float(ranks.max(initial=0.0)), np.finfo(np.float64).tiny), 12)
    for task in np.argsort(-ranks, kind="stable").tolist():
        own = int(tasks.together[task])
        if lane_of_class[own] >= 0:
            candidates = np.arange(L) == lane_of_class[own]
        else:
            candidates = allowed[own] & (bytes_of_class[own] <= room)
        ready = table.launch_seconds.copy() if not tasks.producers[task] else np.zeros(L)
        for p, size in tasks.producers[task]:
            way = latency[lane[p]] + rate[lane[p]] * size + table.launch_seconds
            ready = np.maximum(ready, finish[p] + np.where(stays[lane[p]], 0.0, way))
        best = (np.inf, np.inf, -1)
        for d in np.flatnonzero(candidates & np.isfinite(tasks.seconds[task])).tolist():
            length = float(tasks.seconds[task, d])
            start = _earliest(timelines[d], float(ready[d]), length)
            best = min(best, (start + length, start, d))
        end, start, chosen = best
        if chosen < 0:
            return None
        if lane_of_class[own] < 0:
            place(own, chosen)
        insort(timelines[chosen], (start, end))
        lane[task], finish[task] = chosen, end
    for own in np.flatnonzero(lane_of_class < 0).tolist():
        # Inputs, outputs and constants: nobody waits for them.
        takes = np.flatnonzero(allowed[own] & (bytes_of_class[own] <= room))
        if not len(takes):
            return None
        place(own, int(takes[0]))
    device = np.empty(len(units), dtype=np.int32)
    for members, chosen in zip(tasks.units, lane_of_class.tolist(), strict=True):
        device[members] = chosen
    return device if units.fits(device) else None


def upward_ranks(problem: Problem, tasks: TaskGraph) -> FloatArray:
    """Longest way from the start of each task to the end of the graph, ``float64[N]`` in seconds."""
    table = problem.table
    can = np.isfinite(tasks.seconds)
    mean = np.where(can, tasks.seconds, 0.0).sum(axis=1) / np.maximum(can.sum(axis=1), 1)
    apart = ~np.eye(table.num_devices, dtype=np.bool_)
    latency = float(table.transfer_latency[apart].mean()) if apart.any() else 0.0
    rate = float(table.transfer_seconds_per_byte[apart].mean()) if apart.any() else 0.0
    after = np.zeros(len(tasks))
    for task in range(len(tasks) - 1, -1, -1):
        for p, size in tasks.producers[task]:
            after[p] = max(after[p], latency + rate * size + mean[task] + after[task])
    return np.asarray(mean + after)


def _earliest(timeline: list[tuple[float, float]], ready: float, length: float) -> float:
    """When a lane is first free for so long, at ``ready`` or later."""
    start = ready
    # What begins later than this cannot be in the way before; the one before may still run.
    for i in range(max(0, bisect_right(timeline, (ready, np.inf)) - 1), len(timeline)):
        begin, end = timeline[i]
        if start + length <= begin:
            break
        start = max(start, end)
    return start
