"""Placements that minimum cuts lead to: exact ones on two devices, descents by many cuts on more."""

from __future__ import annotations

from functools import partial

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import OptionError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.memory import filled, first_fit, limited_move
from ov_autoplace.solvers.moves import Moved, all_moves, share_out, swap
from ov_autoplace.solvers.solver import Proposals, SolverOptions

__all__ = [
    "cheapest",
    "cut_proposals",
    "descend",
    "expansion_proposals",
]

# A large graph, where a cut takes long, is spared further cuts when it is this close to the bound.
_CLOSE_ENOUGH = 1.02
# Cyclic subgraphs make HETERO cut, and transfer, more than the cut counted. In trials on random graphs this
# factor helped most where transfers are dear.
_DEAR = 4.0
_LAUNCH_SHARES = (0.0, 1.0)
_LAUNCH_SHARES_WITH_LIMITS = (1.0,)
_STARTS_OF_LARGE = 2
_LARGE = 200
_ROUNDS = 6
_UNITS_CUT = 60_000  # over all moves of one descent: what bounds its time
_UNITS_CUT_WITH_LIMITS = 4_000  # where a move is a dozen cuts and no limit on time ends the descent


def cheapest(problem: Problem, options: SolverOptions) -> Proposals:
    """Placements that cost little under ``hetero``, and a bound of what the cheapest costs.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    if len(problem.units.usable_devices) <= 2:
        return cut_proposals(problem, options)
    return expansion_proposals(problem, options)


def cut_proposals(problem: Problem, options: SolverOptions) -> Proposals:
    """Single devices, and placements from minimum cuts on two devices.

    The first cut minimises the relaxed objective: its value is the bound. Cuts that also charge a launch
    with each transfer are exact for chains, where each transfer begins one subgraph. Where subgraphs
    depend on each other in a cycle, which HETERO has to split, two more kinds follow: with dearer
    transfers, and without a way back, which leaves no cycle.

    Returns:
        Distinct assignments of units that fit into memory, and a proven lower bound of the latency.

    Raises:
        OptionError: More than two devices can be used.
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator, units = problem.evaluator, problem.units
    usable = units.usable_devices
    if len(usable) > 2:
        names = ", ".join(evaluator.table.devices[d] for d in usable)
        raise OptionError(
            f"the solver 'mincut' places on two devices, but {names} can all be used; "
            "use 'expansion' or 'portfolio'"
        )
    first, second = usable[0], usable[-1]
    start = first_fit(evaluator.table, units) if units.has_memory_limits else None
    singles = list(evaluator.singles().values())

    def cut(priced: UnitGraph) -> Moved:
        if start is None:
            return share_out(priced, first, second)
        return limited_move(priced, start, partial(swap, first=first, second=second))

    plain = cut(units)
    found = [*singles, *plain.assignments]
    bound = evaluator.bound(plain.lower_bound)
    is_large = len(units) >= options.large
    close_enough = bound * (_CLOSE_ENOUGH if is_large else 1 + 1e-9)
    latencies = evaluator.latencies(found)
    if latencies.min() > close_enough:
        launching = units.with_launches(1.0)
        one_ways = [launching.one_way(first, second), launching.one_way(second, first)]
        if is_large and np.argmin(latencies) < len(singles):
            variants = one_ways
        else:
            found += cut(launching).assignments
            variants = []
            if not is_large and any(evaluator.work(a) > evaluator.nodes for a in found):
                variants = [launching.with_transfers_times(_DEAR), *one_ways]
        for variant in variants:
            found += cut(variant).assignments
    distinct = {a.tobytes(): a for a in found}
    return Proposals(list(distinct.values()), bound)


def expansion_proposals(problem: Problem, options: SolverOptions) -> Proposals:
    """The starting points (single devices, greedy) and where descents from them end, and a bound."""
    evaluator, units = problem.evaluator, problem.units
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
    return Proposals(list(proposals.values()), evaluator.bound(_isolating_bound(units)))


def _isolating_bound(units: UnitGraph) -> float:
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
