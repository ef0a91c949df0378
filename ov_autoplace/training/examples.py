"""Examples to learn from: placement problems with a teacher's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.errors import PlacementError, TrainingError
from ov_autoplace.policy.features import PolicyGraph, policy_graph
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.labelled import Labelled
from ov_autoplace.training.targets import RandomTargets, Task, random_task
from ov_autoplace.training.teachers import teach
from ov_autoplace.training.workload import Workload

__all__ = [
    "Example",
    "by_family",
    "label_task",
    "make_labelled",
]

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
    objective: str | None = None,
) -> Labelled:
    """One problem: a workload of a random family on a random machine, and a quick teacher's solution.

    Most problems that one device solves best are drawn anew.

    Args:
        families: Workloads by family.
        random: Source of everything random.
        targets: How machines are drawn.
        devices: Number of devices; ``None`` draws it.
        objective: What placements are scored by; ``None`` draws it.
    """
    while True:
        family = families[int(random.integers(len(families)))]
        workload = family[int(random.integers(len(family)))]
        try:
            labelled = label_task(random_task(workload, random, targets, devices, objective))
        except PlacementError:
            continue  # units whose groups have no device in common, or less memory than it takes
        answer = labelled.assignment
        if (answer != answer[0]).any() or random.random() < _TRIVIAL:
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
