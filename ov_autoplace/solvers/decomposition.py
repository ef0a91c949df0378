"""Placement taken apart by device: the bound, and placements put together from parts.

Every device chooses a set of units that fits into it, as if it were alone; a price per unit (its Lagrange
multiplier) makes the sets agree that each unit is on one device. That is the dual of the set-partitioning
program of Dantzig and Wolfe ("Decomposition Principle for Linear Programs", 1960). Copies of a device choose
the same set, so they need one choice between them and their exchange, which drowns branch and bound, never
arises; and as each set fits into one device, the transfers between copies are in the bound.

A device alone also knows something of its subgraphs, which the relaxed objective does not count: what reads a
tensor after a path that left the device's set is in another subgraph than what made it. Where memory is not
limited, its choice pays for these subgraphs, and the bound is one of the true objective.

The prices climb along subgradients with Polyak's step ("Minimization of Unsmooth Functionals", 1969). The
sets seen on the way are then put together by a small program, whose answers are placements.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.memory import repair
from ov_autoplace.solvers.network import Stars, minimum_cut
from ov_autoplace.solvers.pooling import copies_of

__all__ = ["Ascent", "Decomposition", "in_and_out"]

_MOST_STATES = 1_000
_MOST_PIECE_STATES = 400_000  # over all units
_LABELS, _LABELS_AT_FIRST = 4_000, 400
_PATIENCE = 12  # steps without a better bound, after which the next ones are shorter
_SHORTER = 0.6
_SHORTEST = 2e-3
_NEW_SHARE = 0.05  # weight of the newest choice in the mean of all
_DEFLECTION = 0.7  # share of the last direction in the next one
_MOST_SETS = 600
_SET_GAP = 2e-3


class Decomposition:
    """The choices of single devices.

    Attributes:
        units: The units, with their memory limits.
        classes: Devices by class of copies.
    """

    def __init__(self, units: UnitGraph, *, units_are_nodes: bool = False) -> None:
        """``units_are_nodes`` says that HETERO cuts between units only, and pays for all tensors."""
        self.units = units
        self.classes = copies_of(units)
        stars = (
            len(units),
            np.ascontiguousarray(units.place[units.producer]),
            np.ascontiguousarray(units.offsets, dtype=np.int32),
            np.ascontiguousarray(units.place[units.consumers]),
        )
        latency = in_and_out(units.transfer_latency, units.usable_devices)
        rate = in_and_out(units.transfer_seconds_per_byte, units.usable_devices)
        self._entering, self._leaving = (
            a[:, None] + b[:, None] * units.tensor_bytes for a, b in zip(latency, rate, strict=True)
        )
        self._pieces: _core.PieceSweep | None = None
        if units_are_nodes and not units.has_memory_limits:
            pieces = _core.PieceSweep(*stars, _MOST_PIECE_STATES)
            self._pieces = pieces if pieces.is_narrow else None
        self._sweep = None if self.counts_pieces else _core.SubsetSweep(*stars, _MOST_STATES)

    @property
    def counts_pieces(self) -> bool:
        """Whether devices pay for their subgraphs: the bound is one of the true objective then."""
        return self._pieces is not None

    @property
    def is_affordable(self) -> bool:
        """Whether few enough tensors are alive at once for a sweep, or no memory is limited."""
        return not self.units.has_memory_limits or (self._sweep is not None and self._sweep.is_narrow)

    def capacity(self, device: int) -> float:
        """Bytes of a device, ``inf`` where it could hold everything."""
        units = self.units
        return float(units.memory_capacity[device]) if units.may_overflow[device] else np.inf

    def choose(self, worth: FloatArray, labels: int) -> tuple[FloatArray, list[BoolArray]]:
        """What the first device of each class takes when each unit that it takes is worth some seconds.

        Returns:
            By class, a lower bound of what any set costs that fits, less its worth, and a set, ``bool[U]``.
        """
        first = [members[0] for members in self.classes]
        if self._pieces is not None:
            return self._choose_pieces(self._pieces, first, worth)
        chosen = [self._choose_subset(d, worth, labels) for d in first]
        return np.array([bound for bound, _ in chosen]), [subset for _, subset in chosen]

    def _choose_pieces(
        self, sweep: _core.PieceSweep, devices: list[int], worth: FloatArray
    ) -> tuple[FloatArray, list[BoolArray]]:
        units = self.units
        returning = np.stack([units.transfer_seconds(d, d) for d in devices], axis=1)
        bounds, chosen = sweep.cheapest(
            (units.op_seconds[:, devices] - worth[:, None])[units.order],
            np.ascontiguousarray(self._leaving[devices].T),
            np.ascontiguousarray(self._entering[devices].T),
            returning,
            units.launch_seconds[devices],
        )
        sets = chosen.reshape(len(devices), len(units))[:, self.units.place].astype(np.bool_)
        return bounds, list(sets)

    def _choose_subset(self, device: int, worth: FloatArray, labels: int) -> tuple[float, BoolArray]:
        units = self.units
        price = units.op_seconds[:, device] - worth
        leaving, entering = self._leaving[device], self._entering[device]
        if self._sweep is None or not self._sweep.is_narrow:
            # A unit that may not be here costs more than everything that could be gained by taking it.
            most = np.abs(worth).sum() + leaving.sum() + entering.sum()
            stars = Stars(units.producer, units.consumers, np.diff(units.offsets), leaving, entering)
            cut = minimum_cut(np.where(np.isfinite(price), price, most), np.zeros(len(units)), [stars])
            return cut.lower_bound, cut.smallest
        order = units.order
        bound, chosen = self._sweep.cheapest(
            price[order],
            units.memory_bytes[order],
            self.capacity(device),
            leaving,
            entering,
            labels,
        )
        return bound, chosen[self.units.place].astype(np.bool_)

    def cost(self, device: int, chosen: BoolArray) -> float:
        """What a set costs: op times, and this device's share of the transfers that it takes part in."""
        units = self.units
        inside = np.add.reduceat(chosen[units.consumers].astype(np.int64), units.offsets[:-1])
        produced = chosen[units.producer]
        sent = produced & (inside < np.diff(units.offsets))
        received = ~produced & (inside > 0)
        seconds = units.op_seconds[chosen, device].sum()
        return float(seconds + self._leaving[device, sent].sum() + self._entering[device, received].sum())


def in_and_out(prices: FloatArray, devices: list[int]) -> tuple[FloatArray, FloatArray]:
    """Shares of the price of each way, ``enter[q] + leave[p] <= prices[p, q]``, as large as they can be.

    Where everything passes through the host, and on a bus, the two shares are the whole price.

    Returns:
        What entering each device costs, and what leaving it does, both ``float64[D]``.
    """
    from scipy.optimize import linprog

    D = len(prices)
    ways = [(p, q) for p in devices for q in devices if p != q]
    largest = max((float(prices[w]) for w in ways), default=0.0)
    if largest <= 0.0:
        return np.zeros(D), np.zeros(D)
    rows = np.zeros((len(ways), 2 * D))
    for row, (p, q) in zip(rows, ways, strict=True):
        row[q] = row[D + p] = 1.0
    limits = np.array([prices[w] for w in ways]) / largest
    solved = linprog(-rows.sum(axis=0), A_ub=rows, b_ub=limits, bounds=(0, None))
    shares = np.maximum(solved.x, 0.0) * largest * (1 - 1e-9)
    return shares[:D], shares[D:]


@dataclass(eq=False)
class Ascent:
    """The climb of the units' prices, which can be stopped and gone on with.

    Attributes:
        parts: The choices of single devices.
        bound: The best lower bound of the relaxed objective so far, in seconds.
        sets: What devices chose and can hold: (first device of the class, ``bool[U]``).
        shares: Mean of what the first device of each class chose lately, ``float64[U, D]``.
    """

    parts: Decomposition
    bound: float = -np.inf
    sets: dict[tuple[int, bytes], BoolArray] = field(default_factory=dict)
    shares: FloatArray = field(init=False)
    _prices: FloatArray = field(init=False)
    _step: float = 1.0
    _labels: int = _LABELS_AT_FIRST

    def __post_init__(self) -> None:
        self._prices = self.parts.units.op_seconds.min(axis=1)
        self.shares = np.zeros_like(self.parts.units.op_seconds)

    def add(self, device: IntArray) -> None:
        """Remember the sets of a placement."""
        for members in self.parts.classes:
            for d in members:
                self._remember(members[0], device == d)

    def climb(self, target: float, steps: int, until: float | None = None) -> bool:
        """Take steps towards a bound of ``target`` seconds.

        Returns:
            Whether going on may help: neither is the target reached, nor have the steps become too short.
        """
        prices = self._prices.copy()
        direction = np.zeros_like(prices)
        failures = 0
        for _ in range(steps):
            if until is not None and time.monotonic() >= until:
                return True
            value, taken = self._evaluate(prices)
            if value > self.bound + 1e-6 * abs(target):
                self.bound, self._prices, failures = value, prices.copy(), 0
            else:
                failures += 1
            if failures >= _PATIENCE:
                self._step *= _SHORTER
                if self._step < _SHORTEST:
                    if self._labels >= _LABELS:
                        return False
                    self._step, self._labels = _SHORTER**3, _LABELS
                prices, failures = self._prices.copy(), 0
                direction[:] = 0.0
            direction = _DEFLECTION * direction + (1.0 - taken)
            square = float(direction @ direction)
            if self.bound >= target * (1 - 1e-4) or square == 0.0:
                return False
            prices = prices + self._step * (target - value) / square * direction
        return True

    def _evaluate(self, prices: FloatArray) -> tuple[float, FloatArray]:
        """The bound at some prices, and how many devices take each unit there."""
        value, taken = float(prices.sum()), np.zeros(len(prices))
        costs, sets = self.parts.choose(prices, self._labels)
        self.shares *= 1 - _NEW_SHARE
        for members, cost, chosen in zip(self.parts.classes, costs.tolist(), sets, strict=True):
            value += len(members) * cost
            taken += len(members) * chosen
            self.shares[:, members[0]] += _NEW_SHARE * chosen
            self._remember(members[0], chosen)
        return value, taken

    def _remember(self, device: int, chosen: BoolArray) -> None:
        held = float(self.parts.units.memory_bytes[chosen].sum())
        if chosen.any() and held <= self.parts.capacity(device) * MEMORY_TOLERANCE:
            self.sets.pop((device, chosen.tobytes()), None)
            self.sets[device, chosen.tobytes()] = chosen

    def assemble(self, seconds: float | None, nodes: int) -> IntArray | None:
        """The best placement made of known sets and, where memory is not limited, of single units."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        parts = self.parts
        units = parts.units
        known = [(d, chosen) for (d, _), chosen in self.sets.items() if units.may_overflow[d]][-_MOST_SETS:]
        # Units in no set go to a roomy device; where none can run them, they cost more than anything else.
        on_roomy: FloatArray = np.where(units.may_overflow, np.inf, units.op_seconds)
        fits_roomy: BoolArray = np.isfinite(on_roomy.min(axis=1))
        most = units.op_seconds.max(where=np.isfinite(units.op_seconds), initial=0.0)
        left = np.where(fits_roomy, on_roomy.min(axis=1), most * len(units))
        price = np.concatenate([[parts.cost(d, chosen) for d, chosen in known], left])
        member = np.concatenate([np.array([c for _, c in known]).reshape(-1, len(units)), np.eye(len(units))])
        of_class = np.zeros((len(parts.classes), len(price)))
        for row, members in zip(of_class, parts.classes, strict=True):
            row[: len(known)] = [d == members[0] for d, _ in known]
        sizes = [len(members) for members in parts.classes]
        options: dict[str, float] = {"mip_rel_gap": _SET_GAP, "node_limit": nodes}
        if seconds is not None:
            options["time_limit"] = max(seconds, 0.01)
        solved = milp(
            price / price.max(initial=1e-300),
            integrality=np.ones(len(price)),
            bounds=Bounds(0.0, 1.0),
            constraints=[
                LinearConstraint(csr_array(member.T.astype(np.float64)), 1.0, 1.0),
                LinearConstraint(csr_array(of_class), 0.0, sizes),
            ],
            options=options,
        )
        if solved.x is None:
            return None
        alone = np.where(fits_roomy[:, None], on_roomy, units.op_seconds)
        device: IntArray = np.argmin(alone, axis=1).astype(np.int32)
        free = {members[0]: list(members) for members in parts.classes}
        for i in np.flatnonzero(solved.x[: len(known)] > 0.5).tolist():
            d, chosen = known[i]
            device[chosen] = free[d].pop(0)
        return device if units.fits(device) else repair(units, device)
