"""The solver to use unless one knows better: enumeration, cuts, then local search, by size and devices."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import log, prod

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.expansion import expansion_proposals, isolating_bound
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.milp import refine, with_relaxation
from ov_autoplace.solvers.mincut import cut_proposals
from ov_autoplace.solvers.pooling import without_copies
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["allowed_assignments", "enumerated", "solve_portfolio"]

_ENUMERATED_PLACEMENTS = 4096
_STARTS = 3
# Up to so many devices, expansion moves are as good as the program. On more of them its relaxation proves
# much more than isolating cuts do, and local search takes longer to end.
_FEW_DEVICES = 4
_WORK_ON_MANY_DEVICES = 1_500_000  # nodes that the simulator visits in one search
_STARTS_UP_TO = 200
_WORK_WITH_LIMITS = 600_000


def solve_portfolio(problem: Problem, options: SolverOptions) -> Placement:
    """Find the fastest placement that is worth the time, never a slower one than the best single device.

    Few enough placements are all tried. Otherwise minimum cuts (two devices) or descent by cuts (more)
    propose, and local search on the true objective improves the best of them. Copies of a device are taken
    for one, unless memory limits make them worth having; then mixed-integer programs search on.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    table, units, evaluator = problem.table, problem.units, problem.evaluator
    choices = np.isfinite(units.op_seconds).sum(axis=1)
    if np.log(choices).sum() <= log(_ENUMERATED_PLACEMENTS) + 1e-9:
        best = enumerated(table, evaluator)
        return evaluator.answer(best, float(evaluator.latencies([best])[0]))
    if not units.has_memory_limits:
        units = without_copies(units)
        evaluator = Evaluator(table, units)
    if len(units.usable_devices) <= 2:
        proposals, bound = cut_proposals(evaluator)
    else:
        proposals, bound = _on_many_devices(evaluator, options)
    # Cuts do not see the cycles that HETERO takes apart, and where these are dear all their proposals may be
    # far off; walking along the graph happens to make fewer of them.
    with suppress(PlacementError):  # of which the proposals found a way around
        proposals = [*proposals, greedy_assignment(table, units)]
    if evaluator.latencies(proposals).min() <= bound * (1 + 1e-9):
        return evaluator.answer(evaluator.best(proposals), bound)
    if units.has_memory_limits:
        return evaluator.answer(*_limited(evaluator, proposals, bound, options))
    starts = _starts(evaluator, proposals)
    is_many = table.num_devices > _FEW_DEVICES and options.deadline is None
    work = _WORK_ON_MANY_DEVICES if is_many else None
    improved = [improve(evaluator, start, options, bound, work) for start in starts]
    return evaluator.answer(evaluator.best(improved), bound)


def _on_many_devices(evaluator: Evaluator, options: SolverOptions) -> tuple[list[IntArray], float]:
    """Proposals for more than two devices, and a bound of the latency."""
    units = evaluator.units
    proposals = expansion_proposals(evaluator, options)
    bound = evaluator.bound(isolating_bound(units))
    if units.has_memory_limits or evaluator.table.num_devices <= _FEW_DEVICES:
        return proposals, bound
    return with_relaxation(evaluator, proposals, bound, options)


def _limited(
    evaluator: Evaluator, proposals: list[IntArray], bound: float, options: SolverOptions
) -> tuple[IntArray, float]:
    """Under memory limits local search reaches far where it may cross them; mixed-integer programs go on."""
    in_short = replace(options, deadline=None)
    improved = [
        improve(evaluator, start, in_short, bound, _WORK_WITH_LIMITS)
        for start in _starts(evaluator, proposals)
    ]
    return refine(evaluator, [*improved, *proposals], bound, options)


def _starts(evaluator: Evaluator, proposals: list[IntArray]) -> list[IntArray]:
    """The fastest of some proposals, from which local search begins."""
    count = _STARTS if len(evaluator.table) <= _STARTS_UP_TO else 1
    return [proposals[i] for i in np.argsort(evaluator.latencies(proposals), kind="stable")[:count]]


def enumerated(table: CostTable, evaluator: Evaluator) -> IntArray:
    """The optimum, by trying every allowed placement."""
    return evaluator.best(allowed_assignments(table, evaluator))


def allowed_assignments(table: CostTable, evaluator: Evaluator) -> IntArray:
    """Every allowed assignment of units, single devices first, ``int32[B, U]``: few enough to be listed.

    Raises:
        PlacementError: None fits into memory.
    """
    units = evaluator.units
    options = [np.flatnonzero(np.isfinite(row)) for row in units.op_seconds]
    count = prod(len(o) for o in options)
    number = np.arange(count)
    devices = np.empty((count, len(units)), dtype=np.int32)
    for u, allowed in enumerate(options):
        devices[:, u] = allowed[number % len(allowed)]
        number //= len(allowed)
    if units.has_memory_limits:
        devices = devices[[units.fits(d) for d in devices]]
        if not len(devices):
            first_fit(table, units)  # which says what would fit
    return np.concatenate([*(s[None] for s in evaluator.singles().values()), devices])
