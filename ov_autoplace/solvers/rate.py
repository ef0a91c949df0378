"""One placement for many requests: the busiest device shall have as little to do as can be.

A mixture of placements is never worse, so its bound is one here. The placements that it was searched with divide the
work between the devices in many ways; they, pipelines and single devices are where local search begins.
"""

from __future__ import annotations

from itertools import permutations
from math import log

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.auto import enumerated
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.mixture import searched_columns
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["solve_rate", "solve_rate_locally"]

_ENUMERATED_PLACEMENTS = 4096
_STARTS = 4
_STARTS_UP_TO = 1_000  # groups; beyond, local search begins from one placement
_PIPELINED_DEVICES = 4
_MOST_STAGES_ENDS = 256


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
    bound = 1.0 / columns.bound if columns.bound > 0 else 0.0
    proposals = [*columns.assignments, *_pipelines(units)]
    latencies = evaluator.latencies(proposals)
    order = np.argsort(latencies, kind="stable")
    starts = [proposals[i] for i in order[: _STARTS if len(problem.table) <= _STARTS_UP_TO else 1]]
    improved = [improve(evaluator, start, options, enough=bound) for start in starts]
    return evaluator.answer(evaluator.best(improved), bound)


def solve_rate_locally(problem: Problem, options: SolverOptions) -> Placement:
    """Local search from the best of the single devices, the pipelines and the greedy placement.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator = problem.evaluator
    starts = [*evaluator.singles().values(), *_pipelines(problem.units)]
    starts.append(greedy_assignment(problem.table, problem.units))
    return evaluator.answer(improve(evaluator, evaluator.best(starts), options))


def _pipelines(units: UnitGraph) -> list[IntArray]:
    """The first units on one device and all others on another one, for every pair of a few devices."""
    devices = units.usable_devices
    if not 2 <= len(devices) <= _PIPELINED_DEVICES:
        return []
    may_run = np.isfinite(units.op_seconds)
    ends = np.unique(np.linspace(1, len(units) - 1, min(_MOST_STAGES_ENDS, max(len(units) - 1, 0))).astype(np.int64))
    found = []
    for first, second in permutations(devices, 2):
        for end in ends.tolist():
            device: IntArray = np.full(len(units), second, dtype=np.int32)
            device[units.order[:end]] = first
            # What cannot run there is on the other one, or wherever it can.
            wrong = np.flatnonzero(~may_run[np.arange(len(units)), device])
            device[wrong] = first + second - device[wrong]
            wrong = wrong[~may_run[wrong, device[wrong]]]
            device[wrong] = np.argmin(units.op_seconds[wrong], axis=1)
            if not units.has_memory_limits or units.fits(device):
                found.append(device)
    return found
