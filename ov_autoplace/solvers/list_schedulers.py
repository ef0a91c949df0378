"""List schedules on lanes, over single pieces or over whole chains and branches: HEFT, and critical paths.

H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
Computing", IEEE TPDS 13(3), 2002: tasks are taken by *upward rank*, the length of the longest way to the end
of the graph in mean times and mean transfers, and each goes where it finishes earliest.

Y.-K. Kwok, I. Ahmad, "Dynamic Critical-Path Scheduling", IEEE TPDS 7(5), 1996: the critical path changes with
every task that is placed. Here it is the longest of the ways through the ready tasks, each to where it is
shortest by what has to follow it: of all ready tasks, the one on it goes next, to that lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.list_schedule import ListSchedule
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import TaskGraph, seconds_after

__all__ = [
    "LIST_SCHEDULERS",
    "critical_path_assignment",
    "heft_assignment",
    "list_schedules",
    "upward_ranks",
]

ListScheduler = Callable[[Problem, TaskGraph], IntArray | None]

_MOST_READY = 16  # tasks that one step chooses among by their critical paths


def heft_assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    """HEFT's assignment of units, ``int32[U]``; ``None`` when it runs out of memory.

    Of ranks that are equal up to rounding, the first task goes first.
    """
    ranks = upward_ranks(problem, tasks)
    # Sums in another order differ in their last digits.
    largest = max(float(ranks.max(initial=0.0)), np.finfo(np.float64).tiny)
    return _assignment(problem, tasks, np.zeros_like(tasks.seconds), np.round(ranks / largest, 12))


def upward_ranks(problem: Problem, tasks: TaskGraph) -> FloatArray:
    """Longest way from the start of each task to the end of the graph, ``float64[N]`` in seconds."""
    mean, (latency, rate) = _mean_seconds(tasks), _mean_hop(problem)
    after = np.zeros(len(tasks))
    for task in range(len(tasks) - 1, -1, -1):
        for p, size in tasks.producers[task]:
            after[p] = max(after[p], latency + rate * size + mean[task] + after[task])
    return np.asarray(mean + after)


def _mean_seconds(tasks: TaskGraph) -> FloatArray:
    """What each task takes in the mean over the lanes that it may run on, ``float64[N]``."""
    can = np.isfinite(tasks.seconds)
    return np.asarray(np.where(can, tasks.seconds, 0.0).sum(axis=1) / np.maximum(can.sum(axis=1), 1))


def _mean_hop(problem: Problem) -> tuple[float, float]:
    """Seconds of a transfer, and per byte of it, in the mean over all pairs of different lanes."""
    table = problem.table
    apart = ~np.eye(table.num_devices, dtype=np.bool_)
    if not apart.any():
        return 0.0, 0.0
    return float(table.transfer_latency[apart].mean()), float(table.transfer_seconds_per_byte[apart].mean())


def critical_path_assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    """Units by a critical path found anew at each step, ``int32[U]``; ``None`` when memory is full."""
    return _assignment(problem, tasks, seconds_after(problem, tasks))


def _assignment(
    problem: Problem, tasks: TaskGraph, after: FloatArray, ranks: FloatArray | None = None
) -> IntArray | None:
    """List scheduling: the most urgent of the ready tasks goes where it, and what is behind it, end first.

    Args:
        problem: On L lanes.
        tasks: N tasks.
        after: Seconds behind each task on each lane, ``float64[N, L]``.
        ranks: How urgent each is, ``float64[N]``. Else it is the end of what is behind it, which only gets
            later while lanes fill: where more tasks are ready than a step looks at, it takes those whose
            ways were the longest when they were last looked at.
    """
    schedule = ListSchedule(problem, tasks)
    waits = [len(producers) for producers in tasks.producers]
    ready: list[tuple[float, int]] = []

    def enter(task: int) -> None:
        way = (schedule.finish_seconds(task) + after[task]).min() if ranks is None else ranks[task]
        heappush(ready, (-float(way), task))

    for task in [task for task, count in enumerate(waits) if not count]:
        enter(task)
    while ready:
        count = min(_MOST_READY if ranks is None else 1, len(ready))
        ends = {task: schedule.finish_seconds(task) for _, task in [heappop(ready) for _ in range(count)]}
        ways = {task: float((finish + after[task]).min()) for task, finish in ends.items()}
        task = max(ways, key=lambda t: (ways[t], -t))
        lane = int(np.argmin(ends[task] + after[task]))
        if not np.isfinite(ends[task][lane]):
            return None
        schedule.put(task, lane, float(ends[task][lane]))
        for other in ends.keys() - {task}:
            heappush(ready, (-ways[other], other))
        for reader, _ in schedule.readers[task]:
            waits[reader] -= 1
            if not waits[reader]:
                enter(reader)
    return schedule.assignment()


LIST_SCHEDULERS: dict[str, ListScheduler] = {
    "heft": heft_assignment,
    "critical": critical_path_assignment,
}
"""By name, from a graph of tasks to an assignment of units; ``None`` when it runs out of memory."""


def list_schedules(
    problem: Problem,
    graphs: Sequence[TaskGraph],
    schedulers: Sequence[str],
    options: SolverOptions,
) -> list[IntArray]:
    """The assignments of units that list schedulers give for several graphs of tasks, equal ones once.

    Where the time is up, those count that are there, or the first one.
    """
    answers: dict[bytes, IntArray] = {}
    for name in schedulers:
        for tasks in graphs:
            answer = LIST_SCHEDULERS[name](problem, tasks)
            if answer is not None:
                answers.setdefault(answer.tobytes(), answer)
            if answers and options.expired:
                return list(answers.values())
    return list(answers.values())
