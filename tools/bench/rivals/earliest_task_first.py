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

from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.solver import SolverOptions
from rivals.list_scheduling import ListSchedule, scheduled, upward_ranks
from rivals.producers import Producers

__all__ = ["earliest_task_first", "solve_earliest_task_first"]


def solve_earliest_task_first(problem: Problem, options: SolverOptions) -> Placement:
    """The devices of m-ETF's schedule; see :func:`scheduled`."""
    return scheduled(problem, earliest_task_first)


def earliest_task_first(problem: Problem) -> ListSchedule:
    """Schedule a table's groups with m-ETF.

    Groups that must share a device follow the first of them, which reserves memory for all.

    Raises:
        PlacementError: Every group that could be next finds every device that it may run on full.
    """
    table, units = problem.table, problem.units
    G, D = len(table), table.num_devices
    unit_of = units.unit_of
    # A unit runs where all of its groups do.
    seconds = np.where(np.isfinite(units.op_seconds)[unit_of], table.op_seconds, np.inf)
    level = upward_ranks(table, seconds, transfers=False)
    producers = Producers.of(table)
    readers: list[list[int]] = [[] for _ in range(G)]
    waiting = np.zeros(G, dtype=np.int64)
    for g in range(G):
        for p, _ in producers.of_group(g):
            readers[p].append(g)
            waiting[g] += 1
    room = units.memory_capacity * (1 + 1e-12)
    decided = np.full(len(units), -1)
    arrival, free = np.zeros((G, D)), np.zeros(D)
    device = np.zeros(G, dtype=np.int32)
    start, finish = np.zeros(G), np.zeros(G)
    ready = np.flatnonzero(waiting == 0).tolist()
    while ready:
        rows = np.array(ready)
        unit = unit_of[rows]
        takes = np.where(
            decided[unit, None] < 0,
            units.packing_bytes[unit, None] <= room,
            decided[unit, None] == np.arange(D),
        )
        begin = np.where(takes & np.isfinite(seconds[rows]), np.maximum(arrival[rows], free), np.inf)
        earliest = begin.min()
        if earliest == np.inf:
            raise PlacementError(f"every device that may run {table.names[ready[0]]!r} is full")
        of_group, on_device = np.nonzero(begin == earliest)
        end = earliest + seconds[rows[of_group], on_device]
        first = np.lexsort((on_device, end, rows[of_group], -level[rows[of_group]]))[0]
        g, d = int(rows[of_group[first]]), int(on_device[first])
        if decided[unit_of[g]] < 0:
            decided[unit_of[g]] = d
            room[d] -= units.packing_bytes[unit_of[g]]
        device[g], start[g], finish[g] = d, earliest, end[first]
        free[d] = finish[g]
        ready.remove(g)
        for reader in readers[g]:
            waiting[reader] -= 1
            if not waiting[reader]:
                arrival[reader] = _arrival(table, producers, reader, device, finish)
                ready.append(reader)
    return ListSchedule(device, start, finish)


def _arrival(
    table: CostTable, producers: Producers, g: int, device: np.ndarray, finish: np.ndarray
) -> np.ndarray:
    """When all inputs of a group are on each device, ``float64[D]``."""
    D = table.num_devices
    times = np.zeros(D)
    for p, size in producers.of_group(g):
        sender = device[p]
        way = table.transfer_latency[sender] + table.transfer_seconds_per_byte[sender] * size
        times = np.maximum(times, finish[p] + np.where(np.arange(D) == sender, 0.0, way))
    return times
