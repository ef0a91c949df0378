"""Random placement: what no method may lose to."""

from __future__ import annotations

import numpy as np

from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.solver import SolverOptions

_TRIES = 100


def solve_random(problem: Problem, options: SolverOptions) -> Placement:
    """Place every unit on one of its allowed devices, each as likely as the others.

    Where memory is limited, placements are drawn until one fits; after 100 that do not, the answer is the
    solvers' first fit.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    units = problem.units
    random = np.random.default_rng(options.seed)
    allowed = np.isfinite(units.op_seconds)
    for _ in range(_TRIES):
        # The largest of equally distributed numbers is each of them equally often.
        drawn = np.where(allowed, random.random(allowed.shape), -1.0)
        device = drawn.argmax(axis=1).astype(np.int32)
        if units.fits(device):
            return problem.evaluator.answer(device)
    return problem.evaluator.answer(first_fit(problem.table, units))
