"""HEFT on lanes, over single pieces or over whole chains and branches.

H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
Computing", IEEE TPDS 13(3), 2002: tasks are taken by *upward rank*, the length of the longest way to the end
of the graph in mean times and mean transfers, and each goes where it finishes earliest.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.list_schedule import ListSchedule
from ov_autoplace.solvers.tasks import TaskGraph

__all__ = ["heft_assignment", "upward_ranks"]


def heft_assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    """HEFT's assignment of units, ``int32[U]``; ``None`` when it runs out of memory.

    Of ranks that are equal up to rounding, the first task goes first.
    """
    schedule, ranks = ListSchedule(problem, tasks), upward_ranks(problem, tasks)
    # Sums in another order differ in their last digits.
    largest = max(float(ranks.max(initial=0.0)), np.finfo(np.float64).tiny)
    urgency: list[float] = np.round(-ranks / largest, 12).tolist()
    waits = [len(producers) for producers in tasks.producers]
    ready = [(urgency[task], task) for task, count in enumerate(waits) if not count]
    heapify(ready)
    while ready:
        task = heappop(ready)[1]
        finish = schedule.finish_seconds(task)
        if not np.isfinite(finish).any():
            return None
        lane = int(np.argmin(finish))
        schedule.put(task, lane, float(finish[lane]))
        for reader, _ in schedule.readers[task]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, (urgency[reader], reader))
    return schedule.assignment()


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
