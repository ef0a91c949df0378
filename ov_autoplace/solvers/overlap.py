"""Lanes and devices that work at once: list schedules of ever longer branches, then local search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.overlap_bound import overlap_bound
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.critical_path import critical_path_assignment
from ov_autoplace.solvers.exact import exact_assignment, is_tiny
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.heft import heft_assignment
from ov_autoplace.solvers.local import improve, improve_again, kicked
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.policy import policy_proposals
from ov_autoplace.solvers.solver import Solver, SolverOptions
from ov_autoplace.solvers.tasks import TaskGraph, task_graphs

__all__ = [
    "LIST_SCHEDULERS",
    "list_schedules",
    "searching",
    "solve_chains",
    "solve_lanes_locally",
    "solve_overlap",
]

ListScheduler = Callable[[Problem, TaskGraph], IntArray | None]

LIST_SCHEDULERS: dict[str, ListScheduler] = {
    "heft": heft_assignment,
    "critical": critical_path_assignment,
}
"""By name, from a graph of tasks to an assignment of units; ``None`` when it runs out of memory."""

_NO_HURRY = SolverOptions()
_STARTS = 3
_STALE_KICKS = 6
_WORK = 1_500_000  # groups that the simulator visits in one search
_KICKED_WORK = 300_000


def solve_overlap(problem: Problem, options: SolverOptions) -> Placement:
    """What the solver ``portfolio`` does under ``overlap``; never slower than the best single lane.

    Few enough placements are all tried. On all but large graphs the policy's answer is one of the starts, so
    that none is slower than that of the solver ``policy`` without a time limit either.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator = problem.evaluator
    if is_tiny(problem):
        best = exact_assignment(problem, options)
        return evaluator.answer(best, float(evaluator.latencies([best])[0]))
    graphs = _graphs(problem, options)
    proposals = list_schedules(problem, graphs, tuple(LIST_SCHEDULERS), options)
    with suppress(PlacementError):
        proposals.append(greedy_assignment(problem.table, problem.units))
    bound = overlap_bound(problem)
    is_open = evaluator.latencies(proposals).min(initial=np.inf) > bound * (1 + 1e-9)
    if is_open:
        proposals += policy_proposals(problem, options)
    return evaluator.answer(_search(problem, options, proposals, graphs, bound), bound)


def searching(scheduler: str) -> Solver:
    """The solver that improves the schedules of one list scheduler by local search."""

    def solve(problem: Problem, options: SolverOptions) -> Placement:
        graphs = _graphs(problem, options)
        proposals = list_schedules(problem, graphs, (scheduler,), options)
        return problem.evaluator.answer(_search(problem, options, proposals, graphs))

    return solve


def solve_chains(problem: Problem, options: SolverOptions) -> Placement:
    """The best of HEFT's schedules of chains and of ever longer branches, and of the single lanes.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator, graphs = problem.evaluator, list(task_graphs(problem))[1:]
    found = [*evaluator.singles().values(), *list_schedules(problem, graphs, ("heft",))]
    if not found:
        found = [first_fit(problem.table, problem.units)]
    return evaluator.answer(evaluator.best(found))


def list_schedules(
    problem: Problem,
    graphs: Sequence[TaskGraph],
    schedulers: Sequence[str],
    options: SolverOptions = _NO_HURRY,
) -> list[IntArray]:
    """The assignments of units that list schedulers give for several graphs of tasks, equal ones once.

    Where the time is up, those count that are there, or the first one.
    """
    answers: dict[bytes, IntArray] = {}
    for name in schedulers:
        for tasks in graphs:
            answer = LIST_SCHEDULERS[name](problem, tasks)
            if answer is not None:
                answers.setdefault(answer.tobytes(), answer)
            if answers and options.expired:
                return list(answers.values())
    return list(answers.values())


def _graphs(problem: Problem, options: SolverOptions) -> list[TaskGraph]:
    """The graphs of tasks, the finest first, as many as there is time for."""
    graphs: list[TaskGraph] = []
    for tasks in task_graphs(problem):
        graphs.append(tasks)
        if options.expired:
            break
    return graphs


def solve_lanes_locally(problem: Problem, options: SolverOptions) -> Placement:
    """Local search from the single lanes and the greedy placement; chains and branches move as a whole.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    start = greedy_assignment(problem.table, problem.units)
    return problem.evaluator.answer(_search(problem, options, [start], _graphs(problem, options)))


def _search(
    problem: Problem,
    options: SolverOptions,
    proposals: Sequence[IntArray],
    graphs: Sequence[TaskGraph],
    bound: float = 0.0,
) -> IntArray:
    """The best that local search finds from some proposals and the single lanes, ``int32[U]``.

    Args:
        problem: With the objective ``overlap``.
        options: Seed and deadline. With a deadline, searches start again from changed answers until it is
            over.
        proposals: Assignments of units that are allowed.
        graphs: Whose tasks move as a whole.
        bound: Stop at this latency in seconds.

    Raises:
        PlacementError: There are no proposals, no single lane fits, and nothing else was found that does.
    """
    evaluator = problem.evaluator
    singles = list(evaluator.singles().values())
    starts = [*proposals, *singles] or [first_fit(problem.table, problem.units)]
    starts = [starts[i] for i in np.argsort(evaluator.latencies(starts), kind="stable")[:_STARTS]]
    if singles:
        # List schedules are often much alike; from one lane the search takes another way.
        starts.append(evaluator.best(singles))
    blocks = _blocks(graphs)
    improved = [improve(evaluator, start, options, bound, _WORK, blocks) for start in starts]
    rng = np.random.default_rng(options.seed)
    return improve_again(
        evaluator,
        evaluator.best(improved),
        options,
        lambda best, _: kicked(problem.units, best, blocks, rng),
        _STALE_KICKS,
        bound,
        _KICKED_WORK,
        blocks,
    )


def _blocks(graphs: Sequence[TaskGraph]) -> list[IntArray]:
    """The units of every task of every graph, each set once."""
    return list({units.tobytes(): units for tasks in graphs for units in tasks.units}.values())
