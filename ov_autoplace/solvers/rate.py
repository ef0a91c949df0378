"""One placement for many requests: the busiest device shall have as little to do as can be.

A mixture of placements is never worse, so its bound is one here. The placements that it was searched with
divide the work between the devices in many ways; they, pipelines and single devices are where local search
begins.
"""

from __future__ import annotations

from math import log

import numpy as np

from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.auto import enumerated
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.mixture import searched_columns
from ov_autoplace.solvers.pipelines import pipelines
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["solve_rate", "solve_rate_locally"]

_ENUMERATED_PLACEMENTS = 4096
_STARTS = 4
_STARTS_UP_TO = 1_000  # groups; beyond, local search begins from one placement


def solve_rate(problem: Problem, options: SolverOptions) -> Placement:
    """What the solver ``auto`` does under the objective ``rate``; never slower than the best single device.

    Few enough placements are all tried.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator, units = problem.evaluator, problem.units
    choices = np.isfinite(units.op_seconds).sum(axis=1)
    if np.log(choices).sum() <= log(_ENUMERATED_PLACEMENTS) + 1e-9:
        best = enumerated(problem.table, evaluator)
        return evaluator.answer(best, float(evaluator.latencies([best])[0]))
    columns = searched_columns(problem, options)
    bound = 1.0 / columns.bound
    proposals = [*columns.assignments, *pipelines(units)]
    order = np.argsort(evaluator.latencies(proposals), kind="stable")
    starts = [proposals[i] for i in order[: _STARTS if len(problem.table) <= _STARTS_UP_TO else 1]]
    improved = [improve(evaluator, start, options, enough=bound) for start in starts]
    return evaluator.answer(evaluator.best(improved), bound)


def solve_rate_locally(problem: Problem, options: SolverOptions) -> Placement:
    """Local search from the best of the single devices, the pipelines and the greedy placement.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator = problem.evaluator
    starts = [*evaluator.singles().values(), *pipelines(problem.units)]
    starts.append(greedy_assignment(problem.table, problem.units))
    return evaluator.answer(improve(evaluator, evaluator.best(starts), options))
