"""Three and more devices: descent by cuts, each over exponentially many placements."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.memory import filled, limited_move
from ov_autoplace.solvers.moves import all_moves, share_out
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["descend", "expansion_proposals", "isolating_bound", "solve_expansion"]

_LAUNCH_SHARES = (0.0, 1.0)
_LAUNCH_SHARES_WITH_LIMITS = (1.0,)
_STARTS_OF_LARGE = 2
_LARGE = 200
_ROUNDS = 6
_UNITS_CUT = 60_000  # over all moves of one descent: what bounds its time
_UNITS_CUT_WITH_LIMITS = 4_000  # where a move is a dozen cuts and no limit on time ends the descent


def solve_expansion(problem: Problem, options: SolverOptions) -> Placement:
    """The best placement that expansion and swap moves reach, with a bound from isolating cuts.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator = problem.evaluator
    best = evaluator.best(expansion_proposals(evaluator, options))
    return evaluator.answer(best, evaluator.bound(isolating_bound(problem.units)))


def expansion_proposals(evaluator: Evaluator, options: SolverOptions) -> list[IntArray]:
    """The starting points (single devices, greedy) and where descents from them end; at least one."""
    units = evaluator.units
    singles = list(evaluator.singles().values())
    fastest = np.argmin(units.op_seconds, axis=1).astype(np.int32)
    starts = [*singles, greedy_assignment(evaluator.table, units)]
    if units.fits(fastest):
        starts.append(fastest)
    has_limits = units.has_memory_limits
    if has_limits and (in_order := filled(units)) is not None:
        starts.append(in_order)
    proposals = {a.tobytes(): a for a in starts}
    starts = list(proposals.values())
    order = np.argsort(evaluator.latencies(starts), kind="stable")
    if len(units) > _LARGE:
        order = order[:_STARTS_OF_LARGE]
    for share in _LAUNCH_SHARES_WITH_LIMITS if has_limits else _LAUNCH_SHARES:
        priced = units.with_launches(share)
        for i in order:
            end = descend(priced, starts[i], options)
            proposals[end.tobytes()] = end
    return list(proposals.values())


def isolating_bound(units: UnitGraph) -> float:
    """A lower bound of the relaxed objective on any number of devices.

    For each device: the minimum cut between it and one device that is as good as the best of all others
    at everything. The largest of these minima holds.
    """
    usable = units.usable_devices
    bounds = []
    for device in usable:
        others = [d for d in usable if d != device]
        bounds.append(share_out(units.against(device, others), 0, 1).lower_bound if others else 0.0)
    return max(bounds)


def descend(units: UnitGraph, device: IntArray, options: SolverOptions) -> IntArray:
    """Apply expansions and swaps as long as the relaxed objective falls, ``int32[U]``.

    Args:
        units: U units, with the launches that cuts should count (``with_launches``).
        device: Allowed placement to begin with, ``int32[U]``.
        options: Deadline.
    """
    moves = all_moves(units.usable_devices)
    has_limits = units.has_memory_limits
    value = units.relaxed_seconds(device)
    unchanged = 0
    cut = _UNITS_CUT_WITH_LIMITS if has_limits and options.deadline is None else _UNITS_CUT
    most = max(2 * units.num_devices, min(_ROUNDS * len(moves), cut // len(units)))
    for step in range(most):
        if unchanged == len(moves) or options.expired:
            break
        move = moves[step % len(moves)]
        moved = limited_move(units, device, move) if has_limits else move(units, device)
        values = [units.relaxed_seconds(a) for a in moved.assignments]
        best = int(np.argmin(values))
        unchanged += 1
        if values[best] < value * (1 - 1e-9):
            device, value, unchanged = moved.assignments[best], values[best], 0
    return device
