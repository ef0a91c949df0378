"""Lanes and devices that work at once: list schedules of ever longer branches, then local search."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.list_schedulers import LIST_SCHEDULERS, list_schedules
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.overlap_bound import overlap_bound
from ov_autoplace.solvers.search import Search
from ov_autoplace.solvers.solver import Proposals, Proposer, SolverOptions
from ov_autoplace.solvers.tasks import TaskGraph, task_graphs

__all__ = ["OVERLAP", "chain_proposals", "schedules_of"]


def _proposals(problem: Problem, options: SolverOptions) -> Proposals:
    """The schedules of all list schedulers, and the greedy placement."""
    graphs = _graphs(problem, options)
    found = list_schedules(problem, graphs, tuple(LIST_SCHEDULERS), options)
    with suppress(PlacementError):
        found.append(greedy_assignment(problem.table, problem.units))
    return Proposals(found, overlap_bound(problem, graphs[0]), _blocks(graphs))


def _simple(problem: Problem, options: SolverOptions) -> Proposals:
    start = greedy_assignment(problem.table, problem.units)
    return Proposals([start], blocks=_blocks(_graphs(problem, options)))


def schedules_of(scheduler: str) -> Proposer:
    """The schedules of one list scheduler."""

    def propose(problem: Problem, options: SolverOptions) -> Proposals:
        graphs = _graphs(problem, options)
        return Proposals(list_schedules(problem, graphs, (scheduler,), options), blocks=_blocks(graphs))

    return propose


OVERLAP = Search(
    _proposals,
    _simple,
    most_groups=np.inf,
    work=1_500_000,
    kicked_work=300_000,
    most_stale=6,
    moves_regions=True,
)


def chain_proposals(problem: Problem, options: SolverOptions) -> Proposals:
    """HEFT's schedules of chains and of ever longer branches, and the single lanes.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    graphs, singles = list(task_graphs(problem))[1:], problem.evaluator.singles().values()
    found = [*singles, *list_schedules(problem, graphs, ("heft",), options)]
    return Proposals(found or [first_fit(problem.table, problem.units)])


def _graphs(problem: Problem, options: SolverOptions) -> list[TaskGraph]:
    """The graphs of tasks, the finest first, as many as there is time for."""
    graphs: list[TaskGraph] = []
    for tasks in task_graphs(problem):
        graphs.append(tasks)
        if options.expired:
            break
    return graphs


def _blocks(graphs: Sequence[TaskGraph]) -> list[IntArray]:
    """The units of every task of every graph, each set once."""
    return list({units.tobytes(): units for tasks in graphs for units in tasks.units}.values())
