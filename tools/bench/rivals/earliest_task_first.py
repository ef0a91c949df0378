"""m-ETF: the memory-constrained earliest-task-first scheduler of Baechi.

B. Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, after J.-J. Hwang et
al., "Scheduling Precedence Graphs in Systems with Interprocessor Communication Times", SIAM J. Comput. 18(2),
1989: of all groups whose producers are placed, and all devices that still have room for them, the pair that
can *start* earliest is placed next.

Of equal starts the group with the longest way to the end goes first (its static level, as in ETF). Baechi's
devices are all alike; where ours are not, and only the device is left to choose, the one where the group
finishes earliest is taken. Transfers wait for no other transfer. Like HEFT, m-ETF believes that devices run
side by side, which HETERO's do not: it is scored on HETERO's objective like everything else.
"""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.list_schedule import ListSchedule
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import TaskGraph
from rivals.list_scheduling import scheduled


def solve_earliest_task_first(problem: Problem, options: SolverOptions) -> Placement:
    """The devices of m-ETF's schedule; see :func:`scheduled`."""
    return scheduled(problem, _assignment)


def _assignment(problem: Problem, tasks: TaskGraph) -> IntArray | None:
    schedule = earliest_task_first(problem, tasks)
    return None if schedule is None else schedule.assignment()


def earliest_task_first(problem: Problem, tasks: TaskGraph) -> ListSchedule | None:
    """Schedule tasks with m-ETF; ``None`` where every one that could be next finds all its devices full.

    Tasks that must share a device follow the first of them, which reserves memory for all.
    """
    schedule, level = ListSchedule(problem, tasks), _static_levels(tasks)
    free = np.zeros(problem.table.num_devices)
    waits = [len(producers) for producers in tasks.producers]
    arrival = {task: schedule.ready_seconds(task) for task, count in enumerate(waits) if not count}
    while arrival:
        starts = {
            (task, lane): max(arrived[lane], free[lane])
            for task, arrived in arrival.items()
            for lane in schedule.candidates(task).tolist()
        }
        if not starts:
            return None
        earliest = min(starts.values())
        ends = {pair: earliest + tasks.seconds[pair] for pair, start in starts.items() if start == earliest}
        task, lane = min(ends, key=lambda pair: (-level[pair[0]], pair[0], ends[pair], pair[1]))
        free[lane] = ends[task, lane]
        schedule.put(task, lane, free[lane])
        del arrival[task]
        for reader, _ in schedule.readers[task]:
            waits[reader] -= 1
            if not waits[reader]:
                arrival[reader] = schedule.ready_seconds(reader)
    return schedule


def _static_levels(tasks: TaskGraph) -> list[float]:
    """Longest way from the start of each task to the end of the graph, without transfers."""
    can = np.isfinite(tasks.seconds)
    level = (np.where(can, tasks.seconds, 0.0).sum(axis=1) / np.maximum(can.sum(axis=1), 1)).tolist()
    after = [0.0] * len(tasks)
    for task in range(len(tasks) - 1, -1, -1):
        level[task] += after[task]
        for producer, _ in tasks.producers[task]:
            after[producer] = max(after[producer], level[task])
    return level
