"""The best single device: what every other answer has to beat."""

from __future__ import annotations

import numpy as np

from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["solve_single"]


def solve_single(problem: Problem, options: SolverOptions) -> Placement:
    """Place everything on the one device that is fastest.

    Raises:
        PlacementError: No device may run everything; the sentence gives one reason per device.
    """
    evaluator = problem.evaluator
    singles = list(evaluator.singles().values())
    if not singles:
        raise PlacementError(f"no single device can take every group: {_reasons(problem)}")
    return evaluator.answer(evaluator.best(singles))


def _reasons(problem: Problem) -> str:
    table, units = problem.table, problem.units
    reasons = []
    for d, device in enumerate(table.devices):
        forbidden = np.flatnonzero(np.isinf(units.op_seconds[:, d]))
        if len(forbidden):
            group = table.names[int(np.argmax(units.unit_of == forbidden[0]))]
            reasons.append(f"{device} may not run {group!r}")
        else:
            needed = f"{units.memory_bytes.sum():.0f} bytes"
            reasons.append(f"{device} may hold {units.memory_capacity[d]:.0f} of {needed}")
    return "; ".join(reasons)
