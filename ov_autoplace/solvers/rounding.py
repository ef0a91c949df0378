"""Placements on many devices from what each device would choose alone.

While the prices of the decomposition by device climb (:mod:`decomposition`), the mean of the devices'
choices comes near the best fractional placement. It is rounded as Kleinberg and Tardos do ("Approximation
Algorithms for Classification Problems with Pairwise Relationships", 2002): a device and a threshold are
drawn, and the device takes all units of which it has a larger share, so that neighbours mostly stay together.
The fastest of many draws are searched around on the true objective; then the best has stretches drawn anew.
"""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.decomposition import Ascent, Decomposition
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["rounded", "rounded_proposals"]

_MOST_UNITS = 2_500
_ROUNDS, _STEPS = 2, 40  # of the climb, and steps in each
_DRAWS = 200
_SEARCHED = 2  # draws of each round
_WORK = 1_500_000  # of one search, in nodes
_BATCHES, _BATCHES_WITH_TIME_LIMIT = 64, 10_000
_BATCH = 64
_STALE_BATCHES = 200
_LONGEST = 0.5  # stretch, as a share of all units


def rounded_proposals(evaluator: Evaluator, options: SolverOptions) -> tuple[list[IntArray], float] | None:
    """Placements from rounding, with a bound of the true objective; ``None`` where the graph is too wide.

    Memory must not be limited.
    """
    units = evaluator.units
    if len(units) > _MOST_UNITS or not len(units.producer):
        return None
    parts = Decomposition(units, units_are_nodes=evaluator.units_are_nodes)
    if not parts.counts_pieces:
        return None
    rng = np.random.default_rng(options.seed)
    fastest = np.argmin(units.op_seconds, axis=1).astype(np.int32)
    best = evaluator.best([*evaluator.singles().values(), greedy_assignment(evaluator.table, units), fastest])
    ascent = Ascent(parts)
    draws = np.empty((0, len(units)), dtype=np.int32)
    for _ in range(_ROUNDS):
        ascent.climb(float(evaluator.latencies([best])[0]), _STEPS, options.deadline)
        draws = rounded(units, ascent.shares, _DRAWS, rng)
        for i in np.argsort(evaluator.latencies(draws), kind="stable")[:_SEARCHED]:
            end = improve(evaluator, draws[i], options, enough=ascent.bound, work=_WORK)
            best = evaluator.best([best, end])
    drawn_anew = _with_stretches_of(evaluator, best, draws, rng, options, ascent.bound)
    return [improve(evaluator, drawn_anew, options, enough=ascent.bound, work=_WORK)], ascent.bound


def rounded(units: UnitGraph, shares: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Draw assignments from a fractional one.

    Args:
        units: The units.
        shares: Share of each unit that each device has, ``float64[U, D]``; need not add up to 1.
        count: Number of draws, B.
        rng: Where the draws come from.

    Returns:
        ``int32[B, U]``.
    """
    allowed = np.isfinite(units.op_seconds)
    shares = np.where(allowed, shares, 0.0)
    most = shares.max(axis=1, keepdims=True)
    # Every unit has a device that takes it at any threshold; one that nobody chose has its fastest.
    fastest = units.op_seconds == units.op_seconds.min(axis=1, keepdims=True)
    shares = np.where(most > 0, shares / np.maximum(most, 1e-300), fastest)
    devices = np.array(units.usable_devices, dtype=np.int32)
    drawn = np.full((count, len(units)), -1, dtype=np.int32)
    for assignment in drawn:
        left = np.arange(len(units))
        while len(left):
            device = rng.choice(devices)
            takes = shares[left, device] >= 1.0 - rng.random()
            assignment[left[takes]] = device
            left = left[~takes]
    return drawn


def _with_stretches_of(
    evaluator: Evaluator,
    best: IntArray,
    draws: IntArray,
    rng: np.random.Generator,
    options: SolverOptions,
    enough: float,
) -> IntArray:
    """Replace stretches of a placement, in the order of execution, by those of others while that helps."""
    order = evaluator.units.order
    value = float(evaluator.latencies([best])[0])
    stale = 0
    for _ in range(_BATCHES if options.deadline is None else _BATCHES_WITH_TIME_LIMIT):
        if stale == _STALE_BATCHES or options.expired or value <= enough * (1 + 1e-9):
            break
        batch = np.repeat(best[None], _BATCH, axis=0)
        for changed in batch:
            length = int(np.exp2(rng.uniform(0.0, np.log2(2 + _LONGEST * len(order)))))
            first = int(rng.integers(len(order)))
            stretch = order[first : first + length]
            changed[stretch] = draws[rng.integers(len(draws)), stretch]
        latencies = evaluator.latencies(batch, value)
        stale += 1
        if latencies.min() < value * (1 - 1e-9):
            best, value, stale = batch[int(np.argmin(latencies))], float(latencies.min()), 0
    return best
