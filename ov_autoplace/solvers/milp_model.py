"""Placement as a mixed-integer program, solved by HiGHS through SciPy.

Binary ``x[u, d]``: unit u is on device d. A tensor that device q receives costs by who sends it, so q's
possible senders are put into classes of equal price, cheapest first, and ``w[t, q, k]`` is what q receives of
tensor t from class k:

    sum_k w[t, q, k] >= x[c, q] - x[producer, q]     for every consumer c: paid once, however many there are
    w[t, q, k] <= sum of x[producer, p] over p in class k    for every class but the dearest

The dearest class needs no upper limit, because minimisation fills the others first. Memory is one row per
device, or one per device and moment where the liveness of results is known; a result is held wherever its
producer or a consumer is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.problem.units import UnitGraph

__all__ = ["Solved", "solve_model"]

_GAP = 1e-4  # at which to stop


@dataclass(frozen=True, eq=False)
class Solved:
    """What HiGHS found.

    Attributes:
        assignment: Assignment of units, ``int32[U]``, that fits into memory, or ``None``.
        bound: Proven lower bound of the relaxed objective over all that was allowed; ``inf`` = nothing fits.
        is_optimal: Whether the search ended by itself.
    """

    assignment: IntArray | None
    bound: float
    is_optimal: bool


@dataclass(eq=False)
class _Rows:
    """A sparse system ``low <= A v <= high`` and the price of each variable, as they grow."""

    price: list[float] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def variable(self, price: float) -> int:
        """A new variable between 0 and 1."""
        self.price.append(price)
        return len(self.price) - 1

    def add(self, terms: list[tuple[int, float]], low: float, high: float) -> None:
        """A new row."""
        for column, value in terms:
            self.row.append(len(self.low))
            self.column.append(column)
            self.value.append(value)
        self.low.append(low)
        self.high.append(high)


class _Model:
    """The program of a unit graph; a unit that may be on one device only is a constant in it."""

    def __init__(self, units: UnitGraph, allowed: BoolArray, shrinking: tuple[int, ...] = ()) -> None:
        """``shrinking`` devices take whatever they have to; the most that one of them holds is minimised."""
        self.units = units
        self.allowed = allowed
        self.rows = _Rows()
        self.constant = 0.0
        choices = allowed.sum(axis=1)
        self.device = np.argmax(allowed, axis=1).astype(np.int32)
        # Variable of each unit and device; -1 = it is there for certain, -2 = it cannot.
        self.x: list[list[int]] = np.where(allowed, -1, -2).tolist()
        for u in np.flatnonzero(choices > 1).tolist():
            for d in np.flatnonzero(allowed[u]).tolist():
                self.x[u][d] = self.rows.variable(float(units.op_seconds[u, d]))
            self.rows.add([(v, 1.0) for v in self.x[u] if v >= 0], 1.0, 1.0)
        fixed = np.flatnonzero(choices == 1)
        self.constant += float(units.op_seconds[fixed, self.device[fixed]].sum())
        self.binaries = len(self.rows.price)
        if not shrinking:
            self._add_transfers()
        self._add_memory(shrinking)

    def _add_transfers(self) -> None:
        units = self.units
        offsets, consumers = units.offsets.tolist(), units.consumers.tolist()
        rate, latency = units.transfer_seconds_per_byte.tolist(), units.transfer_latency.tolist()
        for t, producer in enumerate(units.producer.tolist()):
            readers = consumers[offsets[t] : offsets[t + 1]]
            size = float(units.tensor_bytes[t])
            senders = [p for p, v in enumerate(self.x[producer]) if v != -2]
            for q in range(units.num_devices):
                there = [self.x[c][q] for c in readers if self.x[c][q] != -2]
                prices = {p: latency[p][q] + rate[p][q] * size for p in senders if p != q}
                if there and prices and senders != [q]:
                    self._add_receiver(producer, q, there, prices)

    def _add_receiver(self, producer: int, q: int, there: list[int], prices: dict[int, float]) -> None:
        """The cost of one tensor on one receiving device; ``there`` are its consumers' variables."""
        x = self.x[producer]
        if -1 in there:  # received for certain, unless it is made here
            for p, price in prices.items():
                if x[p] == -1:
                    self.constant += price
                else:
                    self.rows.price[x[p]] += price
            return
        steps = sorted(set(prices.values()))
        if steps == [0.0]:
            return
        received = [self.rows.variable(price) for price in steps]
        own = [(x[q], 1.0)] if x[q] >= 0 else []
        for consumer in set(there):
            self.rows.add([(w, 1.0) for w in received] + own + [(consumer, -1.0)], 0.0, np.inf)
        for w, step in zip(received[:-1], steps, strict=False):
            senders = [(x[p], 1.0) for p, price in prices.items() if price == step]
            self.rows.add([(w, -1.0), *senders], 0.0, np.inf)

    def _add_memory(self, shrinking: tuple[int, ...]) -> None:
        units = self.units
        most = 0
        if shrinking:
            self.rows.price = [0.0] * self.binaries
            most = self.rows.variable(1.0)
        for d in sorted({*np.flatnonzero(units.may_overflow).tolist(), *shrinking}):
            capacity = 0.0 if d in shrinking else float(units.memory_capacity[d])
            scale = 1.0 / max(capacity, 1.0) if d not in shrinking else 1.0 / max(units.most_bytes, 1.0)
            for base in self._memory_rows(d):
                used = sum(size for v, size in base if v == -1)
                terms: dict[int, float] = {}
                for v, size in base:
                    if v >= 0 and size > 0:
                        terms[v] = terms.get(v, 0.0) + size * scale
                if d in shrinking:
                    terms[most] = -1.0
                if terms:
                    self.rows.add(list(terms.items()), -np.inf, (capacity * MEMORY_TOLERANCE - used) * scale)

    def _memory_rows(self, d: int) -> list[list[tuple[int, float]]]:
        """Bytes that may be held on a device at once, as (variable, bytes), one list per moment."""
        units = self.units
        held = list(zip((row[d] for row in self.x), units.memory_bytes.tolist(), strict=True))
        if units.liveness is None:
            return [held]
        moments = units.liveness.critical_moments()
        present: dict[int, int] = {}
        for result in sorted({r for moment in moments for r in moment.tolist()}):
            present[result] = self._presence(units.liveness.holders_of(result), d)
        sizes = units.liveness.result_bytes
        return [
            held + [(present[r], float(sizes[r])) for r in moment.tolist() if present[r] != -2]
            for moment in moments
        ]

    def _presence(self, holders: IntArray, d: int) -> int:
        """The variable that is 1 when any of some units is on a device."""
        there: set[int] = {self.x[u][d] for u in holders.tolist()} - {-2}
        if not there or -1 in there:
            return -1 if there else -2
        if len(there) == 1:
            return there.pop()
        present = self.rows.variable(0.0)
        for v in there:
            self.rows.add([(present, 1.0), (v, -1.0)], 0.0, np.inf)
        return present

    def assignment(self, values: FloatArray) -> IntArray:
        """The assignment of units that a solution is."""
        weight = np.where(self.allowed, 0.0, -1.0)
        for u, row in enumerate(self.x):
            for d, v in enumerate(row):
                if v >= 0:
                    weight[u, d] = values[v]
        chosen: IntArray = np.argmax(weight, axis=1).astype(np.int32)
        return chosen


def solve_model(
    units: UnitGraph,
    allowed: BoolArray,
    *,
    time_limit: float | None = None,
    node_limit: int | None = None,
    shrinking: tuple[int, ...] = (),
    is_fractional: bool = False,
) -> Solved:
    """Minimise the relaxed objective over the placements that are allowed and fit into memory.

    Args:
        units: The units, with their memory limits.
        allowed: Where each unit may be, ``bool[U, D]``, at least one device each and only such as
            can run it.
        time_limit: Seconds.
        node_limit: Nodes of the search tree, for an answer that can be repeated.
        shrinking: Devices whose limits do not hold: instead of seconds, the most bytes that one of them
            holds is minimised. The bound then says nothing.
        is_fractional: Units may be on several devices in parts, which takes a hundredth of the time and less;
            the assignment is where most of each is.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    if shrinking:
        units = units.without_limits(shrinking)
    model = _Model(units, allowed, shrinking)
    rows = model.rows
    if not rows.price:
        fits = units.fits(model.device)
        return Solved(model.device if fits else None, model.constant if fits else np.inf, is_optimal=True)
    price = np.array(rows.price)
    scale = 1.0 / max(float(np.abs(price).max()), 1e-300)
    matrix = csr_array((rows.value, (rows.row, rows.column)), shape=(len(rows.low), len(price)))
    options: dict[str, float] = {"mip_rel_gap": _GAP}
    if time_limit is not None:
        options["time_limit"] = max(time_limit, 0.01)
    if node_limit is not None:
        options["node_limit"] = node_limit
    result = milp(
        price * scale,
        integrality=np.zeros(len(price)) if is_fractional else np.arange(len(price)) < model.binaries,
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, rows.low, rows.high),
        options=options,
    )
    if result.status == 2:
        return Solved(None, np.inf, is_optimal=True)
    assignment = None
    if result.x is not None:
        found = model.assignment(result.x)
        assignment = found if units.fits(found) else None
    # Without a root relaxation nothing is proven beyond what nobody can avoid.
    dual = result.fun if is_fractional and result.status == 0 else result.mip_dual_bound
    bound = model.constant + (float(dual) / scale if dual is not None and np.isfinite(dual) else 0.0)
    return Solved(assignment, bound, is_optimal=result.status == 0)
