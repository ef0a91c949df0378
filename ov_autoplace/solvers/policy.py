"""The learned policy as a solver: its answer within memory limits, and a short local search from there.

The search is that of every other solver, on the true objective. What the policy knows guides it: groups of
its graph move as a whole, and what its scores prefer is tried first. It takes about as long as the network.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.cuts import descend
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.list_schedulers import list_schedules
from ov_autoplace.solvers.local import improve, improve_again
from ov_autoplace.solvers.memory import filled, first_fit
from ov_autoplace.solvers.pipelines import pipelines
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import task_graphs

if TYPE_CHECKING:
    from ov_autoplace.policy.features import PolicyGraph
    from ov_autoplace.policy.runner import PolicyRunner

__all__ = ["policy_assignment", "policy_proposals", "refined_assignment", "solve_policy"]

# Nodes visited by the simulator in the search: at most 2,600 placements of up to 75 groups, 250 of 800.
_WORK = 200_000
_LONG_WORK = 4 * _WORK  # in each of the two that go on from the best of the first
# So many searches from changed copies that find nothing faster are enough: more in small graphs, where each
# takes a moment. On validation problems of up to 300 units, up to 48 took the mean gap under memory limits on
# three devices from 0.53 to 0.27 %, and under ``overlap`` on three columns from 0.61 to 0.42.
_STALE_KICKS, _STALE_KICKS_OF_SMALL = 8, 48
_KICKED_UNITS = 1_600  # in all of them
_DRAWS, _TEMPERATURE = 4, 3.0  # further starts under memory limits
_LARGE = 2_000  # units; above, the policy takes longer than the search that it begins, and gigabytes


def solve_policy(problem: Problem, options: SolverOptions) -> Placement:
    """The policy's placement, improved by a short local search, which a time limit makes a longer one.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        PlacementError: Nothing that fits into memory was found.
    """
    from ov_autoplace.policy.runner import PolicyRunner

    if problem.table.num_devices == 1:
        only = first_fit(problem.table, problem.units)
        return problem.evaluator.answer(only)
    return problem.evaluator.answer(_searched(problem, PolicyRunner(options.policy), options))


def policy_proposals(problem: Problem, options: SolverOptions) -> list[IntArray]:
    """What :func:`solve_policy` answers without a time limit, where other solvers begin, each ``int32[U]``.

    Nothing where the graph is large, the time is up, the checkpoint is ``"none"``, or the policy finds
    nothing that fits into memory.

    Raises:
        CheckpointError: The checkpoint that ``options`` name cannot be used.
    """
    from ov_autoplace.policy.runner import find_policy

    if len(problem.units) > _LARGE or options.expired:
        return []
    policy = find_policy(options.policy, problem.table.num_devices)
    if policy is None:
        return []
    try:
        return [_searched(problem, policy, replace(options, deadline=None))]
    except PlacementError:
        return []


def _searched(problem: Problem, policy: PolicyRunner, options: SolverOptions) -> IntArray:
    """:func:`refined_assignment`'s placement by the scores of a policy, ``int32[U]``."""
    from ov_autoplace.policy.merging import graph_within_reach

    graph = graph_within_reach(problem)
    answer = refined_assignment(policy.scores(graph), graph, options)
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
    scores: NDArray[np.floating],
    graph: PolicyGraph,
    options: SolverOptions | None = None,
    start: IntArray | None = None,
    most_stale: int = _STALE_KICKS_OF_SMALL,
) -> IntArray:
    """:func:`policy_assignment`'s placement after a short local search that scores guide, ``int32[N]``.

    The search begins in other places too, see :func:`_other_starts`. Two longer ones go on from the best that
    was found, the first of them in an order that is not the scores', and further ones from copies of it with
    a few groups of units elsewhere, until eight on end find nothing faster, in small graphs up to
    ``most_stale``, or until a time limit is over. On estimated costs there is no search: it would believe
    what the policy has learned to doubt.

    Args:
        scores: The policy's, ``[N, D]``.
        graph: N units.
        options: Seed and deadline of the search.
        start: Allowed placement to begin with instead of the one that the scores ask for, ``int32[N]``.
        most_stale: At least eight, and no matter where graphs are large.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    options = options or SolverOptions()
    start = policy_assignment(scores, graph) if start is None else start
    if graph.is_estimate:
        return start
    problem, evaluator = graph.problem, graph.problem.evaluator
    blocks = _groups(graph)
    search = partial(improve, evaluator, blocks=blocks)
    starts = [start, *_other_starts(problem, start, options)]
    if problem.units.has_memory_limits:
        # What fits lies in many places with nothing between them.
        starts += _drawn(scores, graph, _DRAWS, options.seed)
    found = [search(start, options, work=_WORK, preferred=scores) for start in starts]
    best = evaluator.best(found)
    # A search ends where nothing near is better by the moves that it drew, and others lead on from there.
    best = search(best, replace(options, seed=options.seed + 1), work=_LONG_WORK)
    best = search(best, replace(options, seed=options.seed + 2), work=_LONG_WORK, preferred=scores)
    enough = int(np.clip(_KICKED_UNITS // len(graph), _STALE_KICKS, most_stale))
    return improve_again(
        evaluator,
        best,
        replace(options, seed=options.seed + 2),
        [*blocks, *np.arange(len(graph), dtype=np.int32)[:, None]],
        enough,
        work=_WORK,
        blocks=blocks,
        preferred=scores,
    )


def _drawn(scores: NDArray[np.floating], graph: PolicyGraph, count: int, seed: int) -> list[IntArray]:
    """Placements drawn from the scores, which are made less sure; none where they do not fit into memory."""
    from ov_autoplace.policy.readout import draw

    try:
        return list(draw(scores, graph, count, seed, _TEMPERATURE))
    except PlacementError:
        return []


def _other_starts(problem: Problem, start: IntArray, options: SolverOptions) -> list[IntArray]:
    """Where the search begins besides the policy's placement, which may be far from all that is good.

    Under memory limits, where the policy's may have been mended beyond recognition, these are placements that
    fill devices as they go, else where cuts lead from it, which move more units at once than a search does,
    and a walk along the graph, which makes fewer cycles. On lanes it may leave all but one without work, and
    a list schedule does not; many requests may flow through a few devices, one after the other.
    """
    units, evaluator = problem.units, problem.evaluator
    found: list[IntArray] = []
    several = list(_SEVERAL[problem.objective](problem))
    if units.has_memory_limits and (in_order := filled(units)) is not None:
        found.append(in_order)
    if not units.has_memory_limits and not several:
        found.append(descend(units.with_launches(1.0), start, options))
    if units.has_memory_limits or not several:
        with suppress(PlacementError):
            found.append(greedy_assignment(problem.table, units))
    return [*found, evaluator.best(several)] if several else found


def _schedules(problem: Problem) -> list[IntArray]:
    return list_schedules(problem, list(task_graphs(problem)), ("heft",), SolverOptions())


_SEVERAL: dict[str, Callable[[Problem], list[IntArray]]] = {
    "hetero": lambda problem: [],
    "overlap": _schedules,
    "rate": lambda problem: pipelines(problem.units),
}
"""By objective, placements that share out the work, of which the best is a start."""


def _groups(graph: PolicyGraph) -> list[IntArray]:
    """The units of every group of the graph that is neither a unit nor everything."""
    found: dict[bytes, IntArray] = {}
    for group in graph.groupings:
        order = np.argsort(group, kind="stable").astype(np.int32)
        for members in np.split(order, np.cumsum(np.bincount(group))[:-1]):
            if 1 < len(members) < len(graph):
                found[members.tobytes()] = members
    return list(found.values())
