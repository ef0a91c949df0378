"""One placement for many requests: the busiest device shall have as little to do as can be.

A mixture of placements is never worse, so its bound is one here. The placements that it was searched with
divide the work between the devices in many ways; they, pipelines and single devices are where local search
begins, and the policy's answer is another start on all but large graphs. Then stretches of the best placement
are drawn anew, rounded from the mixture or at random, and searched around (iterated local search).
"""

from __future__ import annotations

from math import log

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.columns import Columns
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.local import improve, improve_again
from ov_autoplace.solvers.mixture import searched_columns
from ov_autoplace.solvers.pipelines import pipelines
from ov_autoplace.solvers.policy import policy_proposals
from ov_autoplace.solvers.portfolio import enumerated
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["rounded", "solve_rate", "solve_rate_locally"]

_ENUMERATED_PLACEMENTS = 4096
_STARTS = 4
_STALE_KICKS = 16  # so many that bring nothing faster end the search
_KICKED_WORK = 60_000  # nodes that the simulator visits in one search
_STARTS_UP_TO = 1_000  # groups; beyond, local search begins from one placement


def solve_rate(problem: Problem, options: SolverOptions, columns: Columns | None = None) -> Placement:
    """What the solver ``portfolio`` does under ``rate``; never slower than the best single device.

    Few enough placements are all tried. On all but large graphs none is slower than that of the solver
    ``policy`` without a time limit either.

    Args:
        problem: Of the objective ``rate``.
        options: How to search.
        columns: What :func:`~ov_autoplace.solvers.mixture.searched_columns` found for it, where that is
            known.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator, units = problem.evaluator, problem.units
    choices = np.isfinite(units.op_seconds).sum(axis=1)
    if np.log(choices).sum() <= log(_ENUMERATED_PLACEMENTS) + 1e-9:
        best = enumerated(problem.table, evaluator)
        return evaluator.answer(best, float(evaluator.latencies([best])[0]))
    columns = columns or searched_columns(problem, options)
    bound = 1.0 / columns.bound
    proposals = [*columns.assignments, *pipelines(units)]
    order = np.argsort(evaluator.latencies(proposals), kind="stable")
    starts = [proposals[i] for i in order[: _STARTS if len(problem.table) <= _STARTS_UP_TO else 1]]
    improved = [improve(evaluator, start, options, enough=bound) for start in starts]
    if evaluator.latencies(improved).min() > bound * (1 + 1e-9):
        improved += policy_proposals(problem, options)
    rng, shares = np.random.default_rng(options.seed), columns.shares()
    best = improve_again(
        evaluator,
        evaluator.best(improved),
        options,
        lambda best, number: _kicked(units, best, shares if number % 2 else None, rng),
        _STALE_KICKS if len(problem.table) <= _STARTS_UP_TO else 0,
        bound,
        _KICKED_WORK,
    )
    return evaluator.answer(best, bound)


def _kicked(
    units: UnitGraph, device: IntArray, shares: FloatArray | None, rng: np.random.Generator
) -> IntArray:
    """A copy with a long stretch rounded from shares, or with a few short ones on devices drawn at random."""
    changed: IntArray = device.copy()
    if shares is not None:
        stretch = _stretch(units, len(units) / 3, rng)
        changed[stretch] = rounded(units, shares, rng)[stretch]
        return changed
    may_run = np.isfinite(units.op_seconds)
    for _ in range(int(rng.integers(1, 4))):
        target = int(rng.choice(units.usable_devices))
        stretch = _stretch(units, len(units) / 4, rng)
        changed[stretch[may_run[stretch, target]]] = target
    return changed


def rounded(units: UnitGraph, shares: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw an assignment from a fractional one.

    As Kleinberg and Tardos do ("Approximation Algorithms for Classification Problems with Pairwise
    Relationships", 2002): a device and a threshold are drawn, and the device takes all units of which it has
    a larger share, so that neighbours mostly stay together.

    Args:
        units: The units.
        shares: Share of each unit that each device has, ``float64[U, D]``; need not add up to 1.
        rng: Where the draws come from.

    Returns:
        ``int32[U]``.
    """
    allowed = np.isfinite(units.op_seconds)
    shares = np.where(allowed, shares, 0.0)
    most = shares.max(axis=1, keepdims=True)
    # Every unit has a device that takes it at any threshold; one that nobody chose has its fastest.
    fastest = units.op_seconds == units.op_seconds.min(axis=1, keepdims=True)
    shares = np.where(most > 0, shares / np.maximum(most, 1e-300), fastest)
    devices = np.array(units.usable_devices, dtype=np.int32)
    drawn = np.full(len(units), -1, dtype=np.int32)
    left = np.arange(len(units))
    while len(left):
        device = rng.choice(devices)
        takes = shares[left, device] >= 1.0 - rng.random()
        drawn[left[takes]] = device
        left = left[~takes]
    return drawn


def _stretch(units: UnitGraph, most: float, rng: np.random.Generator) -> IntArray:
    """Neighbours in topological order; short ones are as probable as long ones."""
    length = int(2.0 ** rng.uniform(0.0, np.log2(max(1.0, most) + 1)))
    first = int(rng.integers(len(units) - length + 1))
    return np.asarray(units.order[first : first + length])


def solve_rate_locally(problem: Problem, options: SolverOptions) -> Placement:
    """Local search from the best of the single devices, the pipelines and the greedy placement.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator = problem.evaluator
    starts = [*evaluator.singles().values(), *pipelines(problem.units)]
    starts.append(greedy_assignment(problem.table, problem.units))
    return evaluator.answer(improve(evaluator, evaluator.best(starts), options))
