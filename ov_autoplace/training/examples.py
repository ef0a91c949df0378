"""Examples to learn from: placement problems with a teacher's answers, read from files or made meanwhile.

Batch i is a function of the seed and i alone, so a run that resumes at batch i goes on as if it had never
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
from ov_autoplace.training.labelled import Labelled, load_labelled
from ov_autoplace.training.targets import RandomTargets, Task, drawn, random_task
from ov_autoplace.training.teachers import teach
from ov_autoplace.training.workload import Workload, load_folder

__all__ = [
    "Example",
    "by_family",
    "example_batches",
    "label_task",
    "load_examples",
    "make_example",
    "make_labelled",
    "stored_batches",
    "validation_set",
]

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
        best_seconds: What the teacher's answer takes, by the objective of the task.
        bound_seconds: Proven below every allowed placement; 0 where nothing is.
    """

    task: Task
    graph: PolicyGraph
    truth: PolicyGraph
    label: NDArray[np.int64]
    best_seconds: float
    bound_seconds: float = 0.0

    @classmethod
    def of(cls, labelled: Labelled) -> Example:
        """What a policy sees of a problem; all that is derived from its graph is made here."""
        task = labelled.task
        graph = policy_graph(Problem.of(task.shown, objective=task.objective))
        assert graph.levels
        assert len(probe_features(graph)) == len(graph)
        truth = graph
        if task.shown is not task.true:
            truth = policy_graph(Problem.of(task.true, objective=task.objective))
        label = graph.problem.units.from_groups(labelled.assignment.astype(np.int32)).astype(np.int64)
        return cls(task, graph, truth, label, labelled.best_seconds, labelled.bound_seconds)

    @property
    def problem(self) -> Problem:
        """Of the table that the policy reads."""
        return self.graph.problem

    @property
    def true_problem(self) -> Problem:
        """Of the true table: placements are scored by its evaluator."""
        return self.truth.problem

    @property
    def objective(self) -> str:
        """What placements are scored by."""
        return self.task.objective


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


def make_labelled(
    families: Sequence[Sequence[Workload]],
    random: np.random.Generator,
    targets: RandomTargets,
    devices: int | None = None,
    thorough: bool = False,
) -> Labelled:
    """One problem: a workload of a random family on a random machine, and its solution.

    Args:
        families: Workloads by family.
        random: Source of everything random.
        targets: How machines are drawn.
        devices: Number of devices; ``None`` draws it.
        thorough: Solve it as well as is known, and take it whatever the answer. Else a quick teacher answers,
            and most problems that one device solves best are drawn anew.
    """
    while True:
        family = families[int(random.integers(len(families)))]
        workload = family[int(random.integers(len(family)))]
        try:
            labelled = label_task(random_task(workload, random, targets, devices), thorough)
        except PlacementError:
            continue  # units whose groups have no device in common, or less memory than it takes
        answer = labelled.assignment
        if thorough or (answer != answer[0]).any() or random.random() < _TRIVIAL:
            return labelled


def label_task(task: Task, thorough: bool = False) -> Labelled:
    """A problem with its solution.

    Args:
        task: The problem.
        thorough: Solve it as well as is known, instead of quickly.

    Raises:
        PlacementError: No placement is allowed, or none that fits into memory was found.
    """
    problem = Problem.of(task.true, objective=task.objective)
    answer, bound = teach(problem, thorough)
    evaluator = problem.evaluator
    singles = list(evaluator.singles().values())
    return Labelled(
        task,
        problem.units.to_groups(answer).astype(np.int16),
        best_seconds=float(evaluator.latencies([answer])[0]),
        bound_seconds=bound,
        single_seconds=float(evaluator.latencies(singles).min()) if singles else np.inf,
    )


def make_example(
    families: Sequence[Sequence[Workload]],
    random: np.random.Generator,
    targets: RandomTargets,
    devices: int,
    thorough: bool = False,
) -> Example:
    """A problem of :func:`make_labelled` as the policy sees it."""
    return Example.of(make_labelled(families, random, targets, devices, thorough))


def load_examples(folder: str | Path) -> list[Example]:
    """All examples of a folder of shards (``tools/examples.py`` writes them), by file name.

    Raises:
        TrainingError: The folder has none, or one cannot be read.
    """
    return [Example.of(labelled) for labelled in _labelled_folder(folder)]


def stored_batches(
    folder: str | Path, seed: int, first: int, graphs: int, units: int
) -> Generator[list[Example]]:
    """Batches ``first``, ``first + 1``, ... of a stream without end, drawn from a folder of shards.

    All examples of a batch have the same number of devices; objectives are mixed. What a policy sees of an
    example is made when it is first drawn, and kept.

    Args:
        folder: As ``tools/examples.py`` writes it.
        seed: Of the stream.
        first: Number of the first batch.
        graphs: Most examples per batch.
        units: A batch with this many units is closed.

    Raises:
        TrainingError: The folder has none, or one cannot be read.
    """
    labelled = _labelled_folder(folder)
    columns = np.array([problem.task.true.num_devices for problem in labelled])
    made: dict[int, Example] = {}
    number = first
    while True:
        random = np.random.default_rng((seed, number))
        # A random example says how many devices, so that each is drawn as often as any other.
        alike = np.flatnonzero(columns == columns[random.integers(len(columns))])
        batch: list[Example] = []
        total = 0
        for i in random.permutation(alike)[:graphs].tolist():
            if i not in made:
                made[i] = Example.of(labelled[i])
            batch.append(made[i])
            total += len(made[i].graph)
            if total >= units:
                break
        yield batch
        number += 1


def _labelled_folder(folder: str | Path) -> list[Labelled]:
    paths = sorted(Path(folder).glob("*.npz"))
    if not paths:
        raise TrainingError(f"{folder} holds no examples; write some there with tools/examples.py")
    return [problem for path in paths for problem in load_labelled(path)]


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
    devices = drawn(targets.devices, random)
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
