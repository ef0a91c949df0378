"""A search that moves whole groups of units, for lanes, devices that work at once, and many requests.

It begins in several places, moves the groups of :mod:`ov_autoplace.problem.groupings` beside subgraphs and
units, and goes on from changed copies of the best placement until nothing faster is found.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.unit_costs import UnitCosts
from ov_autoplace.solvers.cuts import descend
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.list_schedulers import list_schedules
from ov_autoplace.solvers.local import improve, improve_again
from ov_autoplace.solvers.memory import filled, first_fit
from ov_autoplace.solvers.pipelines import pipelines
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import task_graphs

__all__ = ["region_proposals", "regions_moved"]

# Nodes visited by the simulator in the search: at most 2,600 placements of up to 75 groups, 250 of 800.
_WORK = 200_000
_LONG_WORK = 4 * _WORK  # in each of the two that go on from the best of the first
# So many searches from changed copies that find nothing faster are enough: more in small graphs, where each
# takes a moment. On validation problems of up to 300 units, up to 48 took the mean gap under memory limits on
# three devices from 0.53 to 0.27 %, and under ``overlap`` on three columns from 0.61 to 0.42.
_STALE_KICKS, _STALE_KICKS_OF_SMALL = 8, 48
_KICKED_UNITS = 1_600  # in all of them
_LARGE = 2_000  # units; above, the search takes longer than the one that it begins


def region_proposals(problem: Problem, options: SolverOptions) -> list[IntArray]:
    """What :func:`regions_moved` answers without a time limit, where other searches begin, each ``int32[U]``.

    Nothing where the graph is large, the time is up, or nothing that fits into memory was found.
    """
    if len(problem.units) > _LARGE or options.expired:
        return []
    try:
        return [regions_moved(UnitCosts.of(problem), replace(options, deadline=None))]
    except PlacementError:
        return []


def regions_moved(
    costs: UnitCosts,
    options: SolverOptions | None = None,
    start: IntArray | None = None,
    most_stale: int = _STALE_KICKS_OF_SMALL,
) -> IntArray:
    """A fast placement, ``int32[N]``: where searches end that move whole groups of units.

    The search begins in several places, see :func:`_other_starts`. Two longer ones go on from the best that
    was found, and further ones from copies of it with a few groups of units elsewhere, until eight on end
    find nothing faster, in small graphs up to ``most_stale``, or until a time limit is over.

    Args:
        costs: Of N units.
        options: Seed and deadline of the search.
        start: Allowed placement to begin with, ``int32[N]``; ``None`` = the best single device, or what fits.
        most_stale: At least eight, and no matter where graphs are large.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    options = options or SolverOptions()
    problem, evaluator = costs.problem, costs.problem.evaluator
    if start is None:
        singles = list(evaluator.singles().values())
        start = evaluator.best(singles) if singles else first_fit(problem.table, problem.units)
    blocks = _groups(costs)
    search = partial(improve, evaluator, blocks=blocks)
    starts = [start, *_other_starts(problem, start, options)]
    best = evaluator.best([search(start, options, work=_WORK) for start in starts])
    # A search ends where nothing near is better by the moves that it drew, and others lead on from there.
    for further in (1, 2):
        best = search(best, replace(options, seed=options.seed + further), work=_LONG_WORK)
    enough = int(np.clip(_KICKED_UNITS // len(costs), _STALE_KICKS, most_stale))
    return improve_again(
        evaluator,
        best,
        replace(options, seed=options.seed + 2),
        [*blocks, *np.arange(len(costs), dtype=np.int32)[:, None]],
        enough,
        work=_WORK,
        blocks=blocks,
    )


def _other_starts(problem: Problem, start: IntArray, options: SolverOptions) -> list[IntArray]:
    """Where the search begins besides one placement, which may be far from all that is good.

    Under memory limits these are placements that fill devices as they go, else where cuts lead from it, which
    move more units at once than a search does, and a walk along the graph, which makes fewer cycles. On lanes
    it may leave all but one without work, and a list schedule does not; many requests may flow through a few
    devices, one after the other.
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


def _groups(costs: UnitCosts) -> list[IntArray]:
    """The units of every group of the groupings that is neither a unit nor everything."""
    found: dict[bytes, IntArray] = {}
    for group in costs.groupings:
        order = np.argsort(group, kind="stable").astype(np.int32)
        for members in np.split(order, np.cumsum(np.bincount(group))[:-1]):
            if 1 < len(members) < len(costs):
                found[members.tobytes()] = members
    return list(found.values())
