"""Problems of every objective on held-out shapes and machines, and the best placements known of them.

The test split's results are looked at when nothing is chosen by them any more; choices are made by the
validation split's, whose families, shapes and machines are others.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from examples import judged_problem
from harness import ROOT
from harness.methods import Instance
from ov_autoplace.errors import PlacementError
from ov_autoplace.solvers import solve
from ov_autoplace.training.examples import by_family
from ov_autoplace.training.labelled import Labelled, load_labelled, save_labelled
from ov_autoplace.training.workload import Workload, load_folder
from workloads import write_workloads

_FOLDER = ROOT / "build" / "judged"
_NETWORKS, _SHAPES = 24, 50
_SMALLEST, _LARGEST = 8, 300
_MOST_GROUPS = 60  # for constraint programming

Kind = tuple[str, int, bool]
"""Objective, number of columns, and whether memory limits bind."""


def problems_of(split: str, kind: Kind, count: int, seed: int) -> list[Labelled]:
    """The first ``count`` problems of a kind (``examples.JUDGED``), made where they were not made before.

    Args:
        split: ``validation`` or ``held-out``.
        kind: Objective, number of columns, and whether memory limits bind.
        count: How many.
        seed: Of graphs and machines.
    """
    folder = _FOLDER / f"{split}-{seed}"
    objective, devices, limited = kind
    path = folder / f"{objective}-{devices}{'-limited' * limited}-{count}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        families = by_family(_workloads(split, seed))
        save_labelled(path, [judged_problem(families, seed, i, kind) for i in range(count)])
    return load_labelled(path)


def _workloads(split: str, seed: int) -> Sequence[Workload]:
    folder = _FOLDER / f"workloads-{split}-{seed}"
    if not folder.exists():
        write_workloads(folder, split, _NETWORKS, _SHAPES, seed, _SMALLEST, _LARGEST)
    return load_folder(folder)


def instance_of(problem: Labelled, known: float | None = None) -> Instance:
    """A problem for methods side by side; ``known`` are seconds of a better placement than its label's."""
    task = problem.task
    best = problem.best_seconds if known is None else known
    return Instance(task.name, task.family, task.true, task.objective, best)


def best_seconds(problem: Labelled, seconds: float) -> float:
    """Seconds of the best placement that is found of a problem, that of its label among them.

    Who searches is of another family than the teacher where one can: constraint programming on small graphs,
    where OR-tools is installed, else mixed-integer programs, else the default solver with more time.

    Args:
        problem: The problem with its label.
        seconds: How long to search.
    """
    table, objective = problem.task.true, problem.task.objective
    best = problem.best_seconds
    if best <= problem.bound_seconds * (1 + 1e-9):
        return best
    solver = "milp" if objective == "hetero" and table.num_devices > 2 else "portfolio"
    if len(table) <= _MOST_GROUPS and find_spec("ortools"):
        solver = "oracle"
    try:
        found = solve(table, solver, objective=objective, time_limit=seconds)
    except PlacementError:
        return best  # it found nothing in the time that it had
    return min(best, found.latency_seconds)
