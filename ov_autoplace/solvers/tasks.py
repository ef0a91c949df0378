"""What is placed on lanes as a whole: pieces, chains of them, and ever longer branches.

Placing single operations on lanes pays a transfer and a launch for every one that changes the lane; placing
whole chains pays them where chains fork and join only. A graph of tasks becomes a coarser one by contracting
an edge whose producer has no other consumer or whose consumer has no other producer: then there is no second
way between the two, and the tasks stay free of cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.plan.simulator import parts_of
from ov_autoplace.problem.problem import Problem

__all__ = ["TaskGraph", "hop_seconds", "piece_seconds", "seconds_after", "seconds_until", "task_graphs"]

_COARSEST = 3  # tasks per lane


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """N tasks in topological order, which have to be placed on L lanes.

    Attributes:
        seconds: Run time of each task on each lane, ``float64[N, L]``; ``inf`` = forbidden.
        producers: For each task those that it reads, with the bytes of the largest tensor.
        together: Class of each task, ``int32[N]``: tasks of one class share a lane.
        units: Units of each class.
    """

    seconds: FloatArray
    producers: list[list[tuple[int, float]]]
    together: IntArray
    units: list[IntArray]

    def __len__(self) -> int:
        return len(self.seconds)


def task_graphs(problem: Problem) -> Iterator[TaskGraph]:
    """Graphs of ever fewer and larger tasks: pieces, chains, and branches up to a few per lane."""
    contraction = _Contraction(problem)
    yield contraction.tasks()
    size = len(contraction)
    limit = 0.0
    lightest = contraction.total_seconds / max(1, 4 * size)
    while True:
        contraction.contract(limit)
        if len(contraction) < size:
            yield contraction.tasks()
        size = len(contraction)
        if limit >= contraction.total_seconds or size <= _COARSEST * problem.table.num_devices:
            return
        limit = max(2 * limit, lightest)


def piece_seconds(problem: Problem) -> FloatArray:
    """Run time of each piece on each lane, ``float64[P, L]``.

    ``inf`` = it is forbidden there, 0 = it is in no submodel.
    """
    parts = parts_of(problem.table)
    allowed = np.isfinite(problem.units.op_seconds)[problem.units.unit_of]
    seconds = np.zeros((len(parts), problem.table.num_devices))
    np.add.at(seconds, parts.piece_of, np.where(allowed, problem.table.op_seconds, np.inf))
    return np.where(parts.runs[:, None] | np.isinf(seconds), seconds, 0.0)


def hop_seconds(problem: Problem, size: float) -> FloatArray:
    """From the end of a task to when a reader of so many bytes on another lane can start, ``float64[L, L]``.

    It includes the launch of the reader's submodel; on the diagonal nothing is to be done.
    """
    table = problem.table
    hop = table.transfer_latency + table.transfer_seconds_per_byte * size + table.launch_seconds
    np.fill_diagonal(hop, 0.0)
    return np.asarray(hop)


def seconds_until(problem: Problem, tasks: TaskGraph, stretch: IntArray) -> FloatArray:
    """The least time from the start of each task's stretch to its end on each lane, ``float64[N, L]``.

    All that is before it is where that is shortest.

    Args:
        problem: On L lanes.
        tasks: N tasks.
        stretch: Of each task, ``int32[N]``: ways begin and end with stretches.
    """
    finish = np.zeros_like(tasks.seconds)
    for task, producers in enumerate(tasks.producers):
        ready = problem.table.launch_seconds if stretch[task] == 0 else np.zeros(len(finish[task]))
        for p, size in producers:
            if stretch[p] == stretch[task]:
                ready = np.maximum(ready, (finish[p][:, None] + hop_seconds(problem, size)).min(axis=0))
        finish[task] = ready + tasks.seconds[task]
    return finish


def seconds_after(problem: Problem, tasks: TaskGraph, stretch: IntArray | None = None) -> FloatArray:
    """The least time from the end of each task on each lane to the end of its stretch, ``float64[N, L]``.

    All that is behind it is where that is shortest. Without stretches, these are the *optimistic costs* of
    H. Arabnejad, J. G. Barbosa, "List Scheduling Algorithm for Heterogeneous Systems by an Optimistic Cost
    Table", IEEE TPDS 25(3), 2014.
    """
    after = np.zeros_like(tasks.seconds)
    for task in range(len(tasks) - 1, -1, -1):
        onward = after[task] + tasks.seconds[task]
        for p, size in tasks.producers[task]:
            if stretch is None or stretch[p] == stretch[task]:
                after[p] = np.maximum(after[p], (hop_seconds(problem, size) + onward).min(axis=1))
    return after


class _Contraction:
    """Tasks that are contracted step by step; one is named by a piece of its own."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._parts = parts_of(problem.table)
        seconds = piece_seconds(problem)
        P = len(self._parts)
        self._first = list(range(P))  # a forest: piece to a piece of its task
        self._seconds = [row.copy() for row in seconds]
        self._weight: list[float] = seconds.min(axis=1, initial=np.inf).tolist()
        self._readers: list[dict[int, float]] = [{} for _ in range(P)]
        self._producers: list[dict[int, float]] = [{} for _ in range(P)]
        offsets, consumers = self._parts.offsets.tolist(), self._parts.consumers.tolist()
        sizes = self._parts.tensor_bytes.tolist()
        for t, p in enumerate(self._parts.producer.tolist()):
            for c in consumers[offsets[t] : offsets[t + 1]]:
                self._link(p, c, sizes[t])
        self._alive = {int(p) for p in np.flatnonzero(self._parts.runs)}
        table = problem.table
        apart = ~np.eye(table.num_devices, dtype=np.bool_)
        self._hop = float(table.transfer_latency[apart].min()) if apart.any() else 0.0
        self.total_seconds = float(sum(self._weight[p] for p in self._alive))

    def __len__(self) -> int:
        return len(self._alive)

    def _link(self, producer: int, consumer: int, size: float) -> None:
        largest = max(size, self._readers[producer].get(consumer, 0.0))
        self._readers[producer][consumer] = self._producers[consumer][producer] = largest

    def contract(self, limit: float) -> None:
        """Contract chains, and edges at tasks that take less than ``limit`` seconds, the lightest first."""
        queue = [(self._weight[p], p) for p in self._alive]
        heapify(queue)
        while queue:
            weight, task = heappop(queue)
            if task not in self._alive or weight != self._weight[task]:
                continue
            partner = self._partner(task, weight < limit)
            if partner is None:
                continue
            for changed in self._join(task, partner):
                heappush(queue, (self._weight[changed], changed))

    def _partner(self, task: int, is_light: bool) -> int | None:
        """The neighbour to be contracted with: the lightest of those that may be."""
        readers, producers = self._readers[task], self._producers[task]
        # A heavy task may join chains alone, whatever the number of its neighbours.
        edges = [(task, c) for c in readers] if is_light or len(readers) == 1 else []
        if is_light or len(producers) == 1:
            edges += [(p, task) for p in producers]
        found = []
        for producer, consumer in edges:
            leaves_alone = len(self._readers[producer]) == 1
            enters_alone = len(self._producers[consumer]) == 1
            is_chain = leaves_alone and enters_alone
            if (is_chain or (is_light and (leaves_alone or enters_alone))) and self._suit(producer, consumer):
                other = consumer if producer == task else producer
                found.append((self._weight[other], other))
        return min(found)[1] if found else None

    def _suit(self, first: int, second: int) -> bool:
        """Whether one lane for both costs no more than a transfer between the best lane of each."""
        together = float((self._seconds[first] + self._seconds[second]).min())
        return together <= self._weight[first] + self._weight[second] + self._hop

    def _join(self, task: int, partner: int) -> set[int]:
        """Contract two neighbours; the tasks that may have a partner now.

        The one of more neighbours keeps its name: a hub is not rewritten for every task that joins it.
        """
        degree = {t: len(self._readers[t]) + len(self._producers[t]) for t in (task, partner)}
        kept, gone = sorted(degree, key=lambda t: (-degree[t], t))
        self._first[gone] = kept
        self._alive.discard(gone)
        self._seconds[kept] = self._seconds[kept] + self._seconds[gone]
        self._weight[kept] = float(self._seconds[kept].min())
        changed = {kept}
        for ends, back in ((self._readers, self._producers), (self._producers, self._readers)):
            for neighbour, size in ends[gone].items():
                del back[neighbour][gone]
                if neighbour != kept:
                    changed.add(neighbour)
                    ends[kept][neighbour] = back[neighbour][kept] = max(size, ends[kept].get(neighbour, 0.0))
            ends[gone] = {}
        for ends in (self._readers, self._producers):
            if len(ends[kept]) == 1:
                changed.update(ends[kept])
        return changed

    def tasks(self) -> TaskGraph:
        """The present tasks."""
        order = self._order()
        number = {task: i for i, task in enumerate(order)}
        roots = np.array([self._root(p) for p in range(len(self._parts))])
        unit_of_piece = np.empty(len(self._parts), dtype=np.int32)
        unit_of_piece[self._parts.piece_of] = self._problem.units.unit_of
        together, units = self._classes(roots, unit_of_piece)
        return TaskGraph(
            seconds=np.stack([self._seconds[task] for task in order])
            if order
            else np.empty((0, self._problem.table.num_devices)),
            producers=[[(number[p], size) for p, size in self._producers[task].items()] for task in order],
            together=together[unit_of_piece[order]] if order else np.empty(0, dtype=np.int32),
            units=units,
        )

    def _classes(self, roots: IntArray, unit_of_piece: IntArray) -> tuple[IntArray, list[IntArray]]:
        """Class of each unit, and the units of each: pieces of one task and of one unit share a lane."""
        from ov_autoplace import _core

        U = len(self._problem.units)
        pairs = np.stack([unit_of_piece, unit_of_piece[roots]], axis=1)
        together = _core.connected_labels(U, np.ascontiguousarray(pairs, dtype=np.int32))
        by_class = np.argsort(together, kind="stable").astype(np.int32)
        return together, np.split(by_class, np.cumsum(np.bincount(together))[:-1])

    def _root(self, piece: int) -> int:
        while self._first[piece] != piece:
            self._first[piece] = self._first[self._first[piece]]
            piece = self._first[piece]
        return piece

    def _order(self) -> list[int]:
        """The tasks, producers first."""
        waits = {task: len(self._producers[task]) for task in self._alive}
        ready = [task for task, count in waits.items() if not count]
        heapify(ready)
        order = []
        while ready:
            task = heappop(ready)
            order.append(task)
            for reader in self._readers[task]:
                waits[reader] -= 1
                if not waits[reader]:
                    heappush(ready, reader)
        return order
