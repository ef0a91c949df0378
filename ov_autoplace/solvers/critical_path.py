"""List schedules on lanes that look ahead: PEFT, CPOP, and a critical path that is found anew at each step.

H. Arabnejad, J. G. Barbosa, "List Scheduling Algorithm for Heterogeneous Systems by an Optimistic Cost
Table", IEEE TPDS 25(3), 2014 (PEFT): what follows a task on a lane takes at least its *optimistic cost*, the
longest way to the end when every task behind it is where that is shortest. Tasks are taken by their mean
optimistic cost, and each goes where its end and its optimistic cost sum up to least.

H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE TPDS 13(3), 2002 (CPOP): tasks are taken by the length of the longest
way through them; those on the longest of all go to one lane, the others where they finish earliest.

Y.-K. Kwok, I. Ahmad, "Dynamic Critical-Path Scheduling", IEEE TPDS 7(5), 1996: the critical path changes with
every task that is placed. Here it is the longest of the ways through the ready tasks, each to where it is
shortest by the optimistic costs: of all ready tasks, the one on it goes next, to that lane.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.heft import mean_hop, mean_seconds, upward_ranks
from ov_autoplace.solvers.list_schedule import ListSchedule, by_priority, hop_seconds
from ov_autoplace.solvers.tasks import TaskGraph

__all__ = ["cpop_assignment", "critical_path_assignment", "optimistic_costs", "peft_assignment"]

_MOST_READY = 16  # tasks that one step chooses among


def peft_assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    """PEFT's assignment of units, ``int32[U]``; ``None`` when it runs out of memory."""
    costs = optimistic_costs(problem, tasks)
    return by_priority(
        problem, tasks, costs.mean(axis=1), lambda task, finish: int(np.argmin(finish + costs[task]))
    )


def optimistic_costs(problem: Problem, tasks: TaskGraph) -> FloatArray:
    """Shortest time from the end of each task on each lane to the end of all, ``float64[N, L]`` in seconds.

    Every task behind it is where it takes least, however many are there already.
    """
    costs = np.zeros_like(tasks.seconds)
    for task in range(len(tasks) - 1, -1, -1):
        onward = costs[task] + tasks.seconds[task]
        for p, size in tasks.producers[task]:
            costs[p] = np.maximum(costs[p], (hop_seconds(problem, size) + onward).min(axis=1))
    return costs


def cpop_assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    """CPOP's assignment of units, ``int32[U]``; ``None`` when it runs out of memory."""
    before, mean, (latency, rate) = np.zeros(len(tasks)), mean_seconds(tasks), mean_hop(problem)
    for task in range(len(tasks)):
        for p, size in tasks.producers[task]:
            before[task] = max(before[task], before[p] + mean[p] + latency + rate * size)
    through = before + upward_ranks(problem, tasks)
    path = _critical_path(tasks, through)
    lane_of_path = int(np.argmin(tasks.seconds[path].sum(axis=0)))
    is_critical = set(path)

    def rule(task: int, finish: FloatArray) -> int:
        stays = task in is_critical and np.isfinite(finish[lane_of_path])
        return lane_of_path if stays else int(np.argmin(finish))

    return by_priority(problem, tasks, through, rule)


def _critical_path(tasks: TaskGraph, through: FloatArray) -> list[int]:
    """The tasks of one way that is as long as the longest: from a first task, step by step to its end."""
    longest = float(through.max(initial=0.0)) * (1 - 1e-9)
    path: list[int] = []
    for task in np.flatnonzero(through >= longest).tolist():
        producers = [p for p, _ in tasks.producers[task]]
        if (not path and not producers) or (path and path[-1] in producers):
            path.append(task)
    return path


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
