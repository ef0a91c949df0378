"""The learned policy as a solver: its answer within memory limits, and a short local search from there.

The search is that of every other solver, on the true objective. What the policy knows guides it: groups of
its levels move as a whole, and what its scores prefer is tried first. It takes about as long as the network.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.heft import heft_assignment
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.memory import filled, first_fit
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import task_graphs

if TYPE_CHECKING:
    from ov_autoplace.policy.features import PolicyGraph

__all__ = ["policy_assignment", "refined_assignment", "searched_assignment", "solve_policy"]

# Nodes visited by the simulator in the search: at most 2,600 placements of up to 75 groups, 250 of 800.
_WORK = 200_000
_LAST_WORK = 4 * _WORK  # of the last search under memory limits


def solve_policy(problem: Problem, options: SolverOptions) -> Placement:
    """The policy's placement, improved by a short local search, which a time limit makes a longer one.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        PlacementError: Nothing that fits into memory was found.
    """
    return problem.evaluator.answer(searched_assignment(problem, options))


def searched_assignment(problem: Problem, options: SolverOptions | None = None) -> IntArray:
    """:func:`refined_assignment`'s placement by the scores of a checkpoint, ``int32[U]``.

    Args:
        problem: U units.
        options: Checkpoint, seed and deadline.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        PlacementError: Nothing that fits into memory was found.
    """
    options = options or SolverOptions()
    if problem.table.num_devices == 1:
        return first_fit(problem.table, problem.units)  # the only one
    from ov_autoplace.policy.merging import graph_within_reach
    from ov_autoplace.policy.runner import PolicyRunner

    graph = graph_within_reach(problem)
    scores = PolicyRunner(options.policy).scores(graph)
    answer = refined_assignment(scores, graph, options)
    return problem.units.from_groups(graph.problem.units.to_groups(answer))


def policy_assignment(scores: NDArray[np.floating], graph: PolicyGraph) -> IntArray:
    """The placement of N units that scores ask for, or a faster single device, ``int32[N]``.

    Where memory is too tight for what the scores prefer, it is first fit's.

    Args:
        scores: The policy's, ``[N, D]``.
        graph: N units.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    from ov_autoplace.policy.readout import fitting_or_single

    try:
        return fitting_or_single(scores, graph)
    except PlacementError:
        return first_fit(graph.problem.table, graph.problem.units)


def refined_assignment(
    scores: NDArray[np.floating], graph: PolicyGraph, options: SolverOptions | None = None
) -> IntArray:
    """:func:`policy_assignment`'s placement after a short local search that scores guide, ``int32[N]``.

    On lanes and under memory limits the search begins in other places too, see :func:`_other_starts`; under
    memory limits it then goes on from the best that it found, in an order that is not the scores'. On
    estimated costs there is no search: it would believe what the policy has learned to doubt.

    Args:
        scores: The policy's, ``[N, D]``.
        graph: N units.
        options: Seed and deadline of the search.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    options = options or SolverOptions()
    start = policy_assignment(scores, graph)
    if graph.is_estimate:
        return start
    problem = graph.problem
    search = partial(improve, problem.evaluator, options=options, blocks=_groups(graph))
    starts = [start, *_other_starts(problem)]
    best = problem.evaluator.best([search(start, work=_WORK, preferred=scores) for start in starts])
    if problem.units.has_memory_limits:
        # Scores know little of memory, and all searches so far tried first what they prefer.
        return search(best, work=_LAST_WORK if options.deadline is None else None)
    return best if options.deadline is None else search(best, preferred=scores)


def _other_starts(problem: Problem) -> list[IntArray]:
    """Where the search begins besides the policy's placement, which may be far from all that is good.

    Under memory limits, where it may have been mended beyond recognition, these are placements that fill
    devices as they go; on lanes it may leave all but one without work, and a list schedule does not.
    """
    found: list[IntArray | None] = []
    if problem.units.has_memory_limits:
        with suppress(PlacementError):
            found.append(greedy_assignment(problem.table, problem.units))
        found.append(filled(problem.units))
    if problem.objective == "overlap":
        schedules = [heft_assignment(problem, tasks) for tasks in task_graphs(problem)]
        possible = [schedule for schedule in schedules if schedule is not None]
        found += [problem.evaluator.best(possible)] if possible else []
    return [start for start in found if start is not None]


def _groups(graph: PolicyGraph) -> list[IntArray]:
    """The units of every group of the graph's levels that is neither a unit nor everything."""
    found: dict[bytes, IntArray] = {}
    group = np.arange(len(graph))
    for level in graph.levels:
        group = level.parent[group]
        order = np.argsort(group, kind="stable").astype(np.int32)
        for members in np.split(order, np.cumsum(np.bincount(group))[:-1]):
            if 1 < len(members) < len(graph):
                found[members.tobytes()] = members
    return list(found.values())
