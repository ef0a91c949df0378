"""The exact solver for two devices: a minimum s-t cut."""

from __future__ import annotations

from functools import partial

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import OptionError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.memory import first_fit, limited_move
from ov_autoplace.solvers.moves import Moved, share_out, swap
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["cut_proposals", "solve_mincut"]

# A large graph, where a cut takes long, is spared further cuts when it is this close to the bound.
_LARGE = 10_000
_CLOSE_ENOUGH = 1.02
# Cyclic subgraphs make HETERO cut, and transfer, more than the cut counted. In trials on random graphs this
# factor helped most where transfers are dear.
_DEAR = 4.0


def solve_mincut(problem: Problem, options: SolverOptions) -> Placement:
    """The best placement that a few minimum cuts find, with the bound that the first one proves.

    Raises:
        OptionError: More than two devices can be used.
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator = problem.evaluator
    proposals, bound = cut_proposals(evaluator)
    return evaluator.answer(evaluator.best(proposals), bound)


def cut_proposals(evaluator: Evaluator) -> tuple[list[IntArray], float]:
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
    units = evaluator.units
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
    is_large = len(units) >= _LARGE
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
    return list(distinct.values()), bound
