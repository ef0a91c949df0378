"""The placements that a mixture is made of, and the linear program over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph

__all__ = ["Columns"]

_LEAST = 1e-9  # of all requests: what gets less gets none
_PROGRAM_SECONDS = 20.0


class Columns:
    """Placements, how long each keeps every device busy, and what is known of their mixtures.

    Attributes:
        assignments: Distinct assignments of units that can run, each ``int32[U]``.
        busy: Seconds of each device for one request of each, ``float64[D]``, while nothing else runs.
        prices: Of each device in the last program, ``float64[D]``, summing up to 1.
        rate: Of the best mixture of these placements that was found by the last program, if all devices work
            at once and memory is not limited.
        cuts: How often a bound was proven.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._known: set[bytes] = set()
        self._on_one: list[bool] = []
        self._bound = np.inf  # of mixtures, before all of them are slowed down
        self.assignments: list[IntArray] = []
        self.busy: list[FloatArray] = []
        self.prices: FloatArray = np.zeros(problem.units.num_devices)
        self.rate = 0.0
        self.cuts = 0

    def add(self, device: IntArray) -> bool:
        """Take a placement in; whether it is new and can run."""
        key = device.tobytes()
        if key in self._known:
            return False
        self._known.add(key)
        table = self._problem.table
        schedule = simulate(table, self._problem.units.to_groups(device), "rate")
        if not np.isfinite(schedule.seconds_per_request):
            return False
        on_one = len(np.unique(schedule.lane_of)) <= 1
        self.assignments.append(device.copy())
        self._on_one.append(on_one)
        self.busy.append(np.array(schedule.device_seconds) / (1.0 if on_one else table.corun_factor))
        return True

    def prove(self, least: float) -> None:
        """Note that at prices that sum up to 1 no placement costs less than so many seconds."""
        self.cuts += 1
        if least > 0:
            self._bound = min(self._bound, 1.0 / least)

    @property
    def bound(self) -> float:
        """Requests per second that no mixture exceeds."""
        factor = self._problem.table.corun_factor
        _, single = self.best_on_one(factor)
        return max(self._bound / factor, single)

    def is_proven(self, tolerance: float) -> bool:
        """Whether the last program's mixture is as good as the bound."""
        return self.rate >= self._bound * (1 - tolerance)

    def costs_at(self, prices: FloatArray) -> FloatArray:
        """What each placement costs, ``float64[K]``."""
        return np.asarray(np.array(self.busy) @ prices)

    def solve(self) -> FloatArray:
        """Requests per second of each placement in the best mixture, ``float64[K]``; sets prices and rate."""
        if not self.busy:
            return np.empty(0)
        from scipy.optimize import linprog

        busy, scale = self._scaled()
        solved = linprog(
            -np.ones(len(busy)), A_ub=busy.T, b_ub=np.ones(busy.shape[1]), bounds=(0, None), method="highs"
        )
        if solved.x is None:  # of a placement that costs nothing there is no end
            self.rate = np.inf
            return np.empty(0)
        prices = np.maximum(-np.asarray(solved.ineqlin.marginals), 0.0)
        self.prices = prices / max(float(prices.sum()), 1e-300)
        rates = np.maximum(np.asarray(solved.x, dtype=np.float64), 0.0) / scale
        self.rate = float(rates.sum())
        return rates

    def best_on_one(self, corun_factor: float) -> tuple[int | None, float]:
        """The best placement on one device alone, which then nothing slows down, and its rate."""
        rates = [
            (1.0 / max(float(busy.max()), 1e-300), i)
            for i, (busy, on_one) in enumerate(zip(self.busy, self._on_one, strict=True))
            if on_one
        ]
        if not rates or corun_factor <= 1:
            return (None, 0.0)
        rate, best = max(rates, key=lambda found: found[0])
        return best, rate

    def use_one(self, used: Sequence[int]) -> bool:
        """Whether some placements together use one device only."""
        busy = np.array([self.busy[i] for i in used])
        return bool((busy > 0).any(axis=0).sum() <= 1)

    def mixture(self, units: UnitGraph) -> tuple[list[int], FloatArray]:
        """Indices of the placements of the best mixture that fits into memory, and the rate of each."""
        rates = self.solve()
        used: IntArray = np.flatnonzero(rates > _LEAST * rates.sum()).astype(np.int32)
        held = np.array([units.memory_of(device) for device in self.assignments])
        if (held[used].sum(axis=0) > units.memory_capacity * MEMORY_TOLERANCE).any():
            used, rates = self._fitting(units, held)
        else:
            rates = rates[used]
        factor = 1.0 if self.use_one(used.tolist()) else self._problem.table.corun_factor
        return used.tolist(), np.asarray(rates / factor)

    def _fitting(self, units: UnitGraph, held: FloatArray) -> tuple[IntArray, FloatArray]:
        """The best mixture whose placements fit together: a binary says whether one is there at all."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        busy, scale = self._scaled()
        K = len(busy)
        most = 1.0 / np.maximum(busy.max(axis=1), 1e-300)
        limited = np.isfinite(units.memory_capacity)
        capacity = np.maximum(units.memory_capacity[limited], 1.0)
        share = held[:, limited] / capacity
        nothing = np.zeros((busy.shape[1], K))
        rows = [
            LinearConstraint(np.hstack([busy.T, nothing]), -np.inf, 1.0),
            LinearConstraint(np.hstack([np.eye(K), -np.diag(most)]), -np.inf, 0.0),
            LinearConstraint(np.hstack([np.zeros_like(share.T), share.T]), -np.inf, MEMORY_TOLERANCE),
        ]
        solved = milp(
            np.concatenate([-np.ones(K), np.zeros(K)]),
            integrality=np.repeat([0, 1], K),
            bounds=Bounds(0.0, np.concatenate([most, np.ones(K)])),
            constraints=rows,
            options={"time_limit": _PROGRAM_SECONDS},
        )
        rates = (
            np.zeros(K) if solved.x is None else np.maximum(solved.x[:K], 0.0) * (solved.x[K:] > 0.5) / scale
        )
        used = np.flatnonzero(rates > _LEAST * max(float(rates.sum()), 1e-300)).astype(np.int32)
        if not len(used) or (held[used].sum(axis=0) > units.memory_capacity * MEMORY_TOLERANCE).any():
            # Each of them fits alone.
            used = np.array([int(np.argmin(busy.max(axis=1)))], dtype=np.int32)
            return used, most[used] / scale
        return used, rates[used]

    def _scaled(self) -> tuple[FloatArray, float]:
        """The busy times over a typical one, which programs are at ease with, and that one."""
        busy = np.array(self.busy)
        scale = max(float(busy.max(axis=1).min()), 1e-300)
        return busy / scale, scale
