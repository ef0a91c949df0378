"""List scheduling: HEFT, the standard heuristic for graphs on unequal processors.

H. Topcuoglu, S. Hariri, M.-Y. Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
Computing", IEEE TPDS 13(3), 2002: groups are taken by *upward rank*, the length of the longest way to the end
of the graph in mean times and mean transfers, and each goes where it finishes earliest, if need be into a gap
between two others (insertion).

HEFT assumes that devices run side by side, that a transfer costs neither of them time, and that launches are
free. HETERO runs the subgraphs of one request one after another. So the device that HEFT chooses because the
other one is busy is a loss here: that is what the comparison shows, and not how good HEFT is at its own task.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.solver import SolverOptions
from rivals.producers import Producers

__all__ = ["ListSchedule", "list_schedule", "scheduled", "solve_list_scheduling", "upward_ranks"]


@dataclass(frozen=True, eq=False)
class ListSchedule:
    """A schedule of G groups under HEFT's own assumptions.

    Attributes:
        assignment: Device of each group, ``int32[G]``.
        start_seconds, finish_seconds: ``float64[G]``.
    """

    assignment: IntArray
    start_seconds: FloatArray
    finish_seconds: FloatArray

    @property
    def makespan_seconds(self) -> float:
        """When the last group is done."""
        return float(self.finish_seconds.max(initial=0.0))


def solve_list_scheduling(problem: Problem, options: SolverOptions) -> Placement:
    """The devices of HEFT's schedule; see :func:`scheduled`."""
    return scheduled(problem, list_schedule)


def scheduled(problem: Problem, schedule: Callable[[Problem], ListSchedule]) -> Placement:
    """The devices of a schedule; where it runs out of memory, the solvers' first fit.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    try:
        return Placement.of_groups(problem.table, schedule(problem).assignment)
    except PlacementError:
        return problem.evaluator.answer(first_fit(problem.table, problem.units))


def list_schedule(problem: Problem) -> ListSchedule:
    """Schedule a table's groups with HEFT.

    Groups that must share a device follow the first of them.

    Raises:
        PlacementError: A group finds every device that it may run on full.
    """
    table, units = problem.table, problem.units
    # A unit runs where all of its groups do.
    seconds = np.where(np.isfinite(units.op_seconds)[units.unit_of], table.op_seconds, np.inf)
    producers = Producers.of(table)
    latency, rate = table.transfer_latency.tolist(), table.transfer_seconds_per_byte.tolist()
    timelines = [_Timeline() for _ in range(table.num_devices)]
    room = (units.memory_capacity * (1 + 1e-12)).tolist()
    device_of_unit = [-1] * len(units)
    device = np.zeros(len(table), dtype=np.int32)
    start, finish = np.zeros(len(table)), np.zeros(len(table))
    # Ranks fall along every tensor, so groups come in topological order; equal ones stay in theirs.
    for g in np.argsort(-upward_ranks(table, seconds), kind="stable").tolist():
        unit = int(units.unit_of[g])
        inputs = [(float(finish[p]), int(device[p]), size) for p, size in producers.of_group(g)]
        best, best_start, best_finish = -1, np.inf, np.inf
        decided = device_of_unit[unit]
        for d in range(table.num_devices) if decided < 0 else (decided,):
            if not np.isfinite(seconds[g, d]) or (decided < 0 and units.packing_bytes[unit] > room[d]):
                continue
            arrivals = [t if e == d else t + latency[e][d] + rate[e][d] * size for t, e, size in inputs]
            begin = timelines[d].earliest(max(arrivals, default=0.0), seconds[g, d])
            if begin + seconds[g, d] < best_finish:
                best, best_start, best_finish = d, begin, begin + float(seconds[g, d])
        if best < 0:
            raise PlacementError(f"every device that may run {table.names[g]!r} is full")
        if decided < 0:
            device_of_unit[unit] = best
            room[best] -= units.packing_bytes[unit]
        timelines[best].insert(best_start, best_finish)
        device[g], start[g], finish[g] = best, best_start, best_finish
    return ListSchedule(device, start, finish)


def upward_ranks(table: CostTable, op_seconds: FloatArray, transfers: bool = True) -> FloatArray:
    """Longest way from the start of each group to the end of the graph, ``float64[G]`` in seconds.

    Args:
        table: Its transfers are averaged over all ordered pairs of devices.
        op_seconds: Averaged over the devices where they are finite, ``float64[G, D]``.
        transfers: Whether transfers are part of the way; without them it is a group's *static level*.
    """
    D = table.num_devices
    can = np.isfinite(op_seconds)
    mean_seconds = np.where(can, op_seconds, 0.0).sum(axis=1) / np.maximum(can.sum(axis=1), 1)
    apart = ~np.eye(D, dtype=bool)
    mean_latency = table.transfer_latency[apart].mean() if D > 1 else 0.0
    mean_rate = table.transfer_seconds_per_byte[apart].mean() if D > 1 else 0.0
    transfer = (float(transfers) * (mean_latency + mean_rate * table.tensor_bytes)).tolist()
    rank: list[float] = mean_seconds.tolist()
    producer, consumers = table.tensor_producer.tolist(), table.tensor_consumers.tolist()
    offsets, is_constant = table.tensor_offsets.tolist(), table.tensor_is_constant.tolist()
    after = [0.0] * len(table)
    # By the last producer first: what a producer's rank needs is then known.
    for t in np.argsort(-table.tensor_producer, kind="stable").tolist():
        if is_constant[t]:
            continue
        p = producer[t]
        longest = max((rank[c] + after[c] for c in consumers[offsets[t] : offsets[t + 1]]), default=0.0)
        after[p] = max(after[p], transfer[t] + longest)
    return np.asarray(np.array(rank) + np.array(after), dtype=np.float64)


@dataclass(slots=True)
class _Timeline:
    """When one device is busy: intervals that do not overlap, in order."""

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def earliest(self, ready: float, length: float) -> float:
        """First time at or after ``ready`` when the device is free for ``length`` seconds."""
        i = bisect_right(self.ends, ready)
        begin = ready
        while i < len(self.starts) and self.starts[i] < begin + length:
            begin = max(begin, self.ends[i])
            i += 1
        return begin

    def insert(self, start: float, end: float) -> None:
        """Make the device busy; nothing needs no time."""
        if end > start:
            insort(self.starts, start)
            insort(self.ends, end)
