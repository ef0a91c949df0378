"""The exact solver for two devices: a minimum s-t cut."""

from __future__ import annotations

from functools import partial

from ov_autoplace._arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError
from ov_autoplace.solvers.constraints import Constraints
from ov_autoplace.solvers.memory import first_fit, limited_move
from ov_autoplace.solvers.moves import share_out, swap
from ov_autoplace.solvers.solver import Evaluator, SolverAnswer, SolverOptions
from ov_autoplace.solvers.units import UnitGraph

__all__ = ["cut_proposals", "solve_mincut"]

# How much of a launch to charge with each transfer. None: the relaxed objective itself, whose minimum
# is the proven bound. One: exact for a chain, where each hand-over begins one subgraph. A subgraph that
# receives several tensors makes the truth lie between.
_LAUNCH_SHARES = (0.0, 0.5, 1.0)
_LAUNCH_SHARES_OF_LARGE = (0.0, 1.0)
_LARGE = 10_000


def solve_mincut(table: CostTable, constraints: Constraints, options: SolverOptions) -> SolverAnswer:
    """The best placement that a few minimum cuts find, with the bound that the first one proves.

    Raises:
        OptionError: More than two devices can be used.
        PlacementError: Nothing that fits into memory was found.
    """
    units = UnitGraph.of(table, constraints)
    if len(units.usable_devices) > 2:
        raise OptionError(
            f"the solver 'mincut' places on two devices, but {', '.join(table.devices)} can all be used; "
            "use 'expansion' or 'auto'"
        )
    evaluator = Evaluator(table, units, options.objective)
    proposals, relaxed_bound = cut_proposals(table, units)
    best = evaluator.best([*evaluator.singles().values(), *proposals])
    return evaluator.answer(best, evaluator.bound(relaxed_bound))


def cut_proposals(table: CostTable, units: UnitGraph) -> tuple[list[IntArray], float]:
    """Assignments of units from minimum cuts on at most two devices.

    Returns:
        Distinct assignments that fit into memory, and a proven lower bound of the relaxed objective.
    """
    usable = units.usable_devices
    first, second = usable[0], usable[-1]
    has_limits = units.has_memory_limits
    start = first_fit(table, units) if has_limits else None
    proposals: dict[bytes, IntArray] = {}
    bound = 0.0
    for share in _LAUNCH_SHARES if len(units) < _LARGE else _LAUNCH_SHARES_OF_LARGE:
        priced = units.with_launches(share)
        if start is None:
            moved = share_out(priced, first, second)
        else:
            moved = limited_move(priced, start, partial(swap, first=first, second=second))
        if share == 0.0:
            bound = moved.lower_bound
        proposals.update({a.tobytes(): a for a in moved.assignments})
    return list(proposals.values()), bound
