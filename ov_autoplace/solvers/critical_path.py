"""List schedules on lanes by a critical path that is found anew at each step.

Y.-K. Kwok, I. Ahmad, "Dynamic Critical-Path Scheduling", IEEE TPDS 7(5), 1996: the critical path changes with
every task that is placed. Here it is the longest of the ways through the ready tasks, each to where it is
shortest by the optimistic costs: of all ready tasks, the one on it goes next, to that lane.

H. Arabnejad, J. G. Barbosa, "List Scheduling Algorithm for Heterogeneous Systems by an Optimistic Cost
Table", IEEE TPDS 25(3), 2014: what follows a task on a lane takes at least its *optimistic cost*, the
longest way to the end when every task behind it is where that is shortest.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.list_schedule import ListSchedule
from ov_autoplace.solvers.tasks import TaskGraph

__all__ = ["critical_path_assignment", "optimistic_costs"]

_MOST_READY = 16  # tasks that one step chooses among


def optimistic_costs(problem: Problem, tasks: TaskGraph) -> FloatArray:
    """Shortest time from the end of each task on each lane to the end of all, ``float64[N, L]`` in seconds.

    Every task behind it is where it takes least, however many are there already.
    """
    costs = np.zeros_like(tasks.seconds)
    for task in range(len(tasks) - 1, -1, -1):
        onward = costs[task] + tasks.seconds[task]
        for p, size in tasks.producers[task]:
            costs[p] = np.maximum(costs[p], (_hop_seconds(problem, size) + onward).min(axis=1))
    return costs


def critical_path_assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    """Units by a critical path found anew at each step, ``int32[U]``; ``None`` when memory is full.

    Ways only get longer while lanes fill. Where more tasks are ready than a step looks at, it takes those
    whose ways were the longest when they were last looked at.
    """
    schedule, costs = ListSchedule(problem, tasks), optimistic_costs(problem, tasks)
    waits = [len(producers) for producers in tasks.producers]
    ready: list[tuple[float, int]] = []

    def enter(task: int) -> None:
        heappush(ready, (-float((schedule.finish_seconds(task) + costs[task]).min()), task))

    for task in [task for task, count in enumerate(waits) if not count]:
        enter(task)
    while ready:
        looked_at = [heappop(ready)[1] for _ in range(min(_MOST_READY, len(ready)))]
        finish = {task: schedule.finish_seconds(task) for task in looked_at}
        ways = {task: float((ends + costs[task]).min()) for task, ends in finish.items()}
        task = max(ways, key=lambda t: (ways[t], -t))
        lane = int(np.argmin(finish[task] + costs[task]))
        if not np.isfinite(finish[task][lane]):
            return None
        schedule.put(task, lane, float(finish[task][lane]))
        for other in looked_at:
            if other != task:
                heappush(ready, (-ways[other], other))
        for reader, _ in schedule.readers[task]:
            waits[reader] -= 1
            if not waits[reader]:
                enter(reader)
    return schedule.assignment()


def _hop_seconds(problem: Problem, size: float) -> FloatArray:
    """From the end of a task to when a reader of so many bytes on another lane can start, ``float64[L, L]``.

    It includes the launch of the reader's submodel; on the diagonal nothing is to be done.
    """
    table = problem.table
    hop = table.transfer_latency + table.transfer_seconds_per_byte * size + table.launch_seconds
    np.fill_diagonal(hop, 0.0)
    return np.asarray(hop)
