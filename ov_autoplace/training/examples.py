"""Examples to learn from: placement problems with a teacher's answers, made without end in other processes.

Example i is a function of the seed and i alone, so a run that resumes at example i goes on as if it had never
stopped, whatever the number of processes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.errors import PlacementError, TrainingError
from ov_autoplace.policy.features import PolicyGraph, policy_graph
from ov_autoplace.policy.probes import probe_features
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import solve
from ov_autoplace.training.targets import RandomTargets, Task, random_task
from ov_autoplace.training.workload import Workload, load_folder

__all__ = ["Example", "by_family", "example_batches", "make_example", "validation_set"]

_AHEAD = 6  # batches made in advance per process
_SMALLEST = 4  # groups
_TRIVIAL = 0.4  # share of the problems solved by one device that is kept: they are many, and teach little


@dataclass(frozen=True, eq=False)
class Example:
    """A graph on a machine, and the answer to imitate.

    Attributes:
        task: The cost tables.
        graph: What the policy sees.
        truth: The same graph with the true costs; ``graph`` itself unless the policy sees an estimate.
        label: The teacher's device of each unit, ``int64[N]``.
        best_seconds: Latency of the teacher's answer.
    """

    task: Task
    graph: PolicyGraph
    truth: PolicyGraph
    label: NDArray[np.int64]
    best_seconds: float


def by_family(workloads: Sequence[Workload]) -> tuple[tuple[Workload, ...], ...]:
    """Workloads by family, those that are too small to decide anything left out.

    Raises:
        TrainingError: None is left.
    """
    families: dict[str, list[Workload]] = {}
    for workload in workloads:
        if len(workload) >= _SMALLEST:
            families.setdefault(workload.family, []).append(workload)
    if not families:
        raise TrainingError(f"no workload has {_SMALLEST} groups or more; write larger ones")
    return tuple(tuple(families[name]) for name in sorted(families))


def make_example(
    families: Sequence[Sequence[Workload]],
    random: np.random.Generator,
    targets: RandomTargets,
    devices: int,
    thorough: bool = False,
) -> Example:
    """One problem: a workload of a random family on a random machine, and its solution.

    Args:
        families: Workloads by family.
        random: Source of everything random.
        targets: How machines are drawn.
        devices: Number of devices.
        thorough: Solve it as well as is known, and take it whatever the answer. Else two devices are solved
            by cuts alone, which is ten times faster and a tenth of a percent worse, and most problems that
            one device solves best are drawn anew.
    """
    while True:
        family = families[int(random.integers(len(families)))]
        workload = family[int(random.integers(len(family)))]
        task = random_task(workload, random, targets, devices)
        try:
            answer = solve(task.true, "mincut" if devices == 2 and not thorough else "auto")
        except PlacementError:
            continue  # units whose groups have no device in common
        is_single = (answer.assignment == answer.assignment[0]).all()
        if is_single and devices == 2 and not thorough and random.random() >= _TRIVIAL:
            continue
        graph = policy_graph(Problem.of(task.shown))
        # What is derived from a graph is made here, in the worker.
        assert graph.levels
        assert len(probe_features(graph)) == len(graph)
        truth = graph if task.shown is task.true else policy_graph(Problem.of(task.true))
        label = graph.problem.units.from_groups(answer.assignment).astype(np.int64)
        assert answer.latency_seconds is not None
        return Example(task, graph, truth, label, answer.latency_seconds)


_families: tuple[tuple[Workload, ...], ...] = ()


def _load(folder: str) -> None:
    """Give a worker process its workloads."""
    global _families
    Thread(target=_end_with_parent, daemon=True).start()
    _families = by_family(load_folder(folder))


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _batch(number: int, seed: int, targets: RandomTargets, graphs: int, units: int) -> list[Example]:
    """Batch ``number`` of the stream of ``seed``."""
    random = np.random.default_rng((seed, number))
    counts, weights = zip(*targets.devices, strict=True)
    devices = int(random.choice(counts, p=np.array(weights) / sum(weights)))
    batch: list[Example] = []
    total = 0
    while len(batch) < graphs and total < units:
        problem = make_example(_families, random, targets, devices)
        batch.append(problem)
        total += len(problem.graph)
    return batch


def example_batches(
    folder: Path, targets: RandomTargets, seed: int, first: int, graphs: int, units: int, workers: int
) -> Generator[list[Example]]:
    """Batches ``first``, ``first + 1``, ... of a stream, made by ``workers`` processes.

    Args:
        folder: Holds workloads.
        targets: How machines are drawn.
        seed: Of the stream.
        first: Number of the first batch.
        graphs: Most problems per batch.
        units: A batch with this many units is closed.
        workers: Number of processes.
    """
    load_folder(folder)  # what is wrong with it is said here, not in a process
    make = partial(_batch, seed=seed, targets=targets, graphs=graphs, units=units)
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, _load, (str(folder),)) as pool:
        waiting: deque[Future[list[Example]]] = deque()
        number = first
        try:
            while True:
                while len(waiting) < _AHEAD * workers:
                    waiting.append(pool.submit(make, number))
                    number += 1
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def validation_set(
    families: Sequence[Sequence[Workload]], targets: RandomTargets, count: int, devices: int, seed: int
) -> list[Example]:
    """Problems to judge a policy on, each solved as well as is known; families take turns."""
    problems = []
    for i in range(count):
        random = np.random.default_rng((seed, devices, i))
        problems.append(make_example([families[i % len(families)]], random, targets, devices, thorough=True))
    return problems
