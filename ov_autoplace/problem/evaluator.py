"""How a placement of units is scored: with the true objective, each one once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray, IntArray, rows_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import OBJECTIVES, simulate_batch
from ov_autoplace.problem.units import UnitGraph

__all__ = ["Evaluator"]


_REMEMBERED_BATCH = 8


# From this many nodes on, a placement that is slower than the best single device is simulated only until that
# is known: it may need tens of thousands of subgraphs.
_LARGE = 5_000


class Evaluator:
    """Scores assignments of units with the true objective.

    Attributes:
        table: The cost table.
        units: Its units.
        objective: Of the simulator.
    """

    def __init__(self, table: CostTable, units: UnitGraph, objective: str = "hetero") -> None:
        self.table = table
        self.units = units
        self.objective = objective
        # With the limit that each was simulated with: above it, a latency may be a lower bound only.
        self._known: dict[bytes, tuple[float, float]] = {}
        self._best_single: float | None = None

    def latencies(self, devices: Sequence[IntArray] | IntArray, limit_seconds: float = np.inf) -> FloatArray:
        """Latency in seconds of each of B assignments, each ``int32[U]``.

        What is above ``limit_seconds``, or on a large graph above the latency of the best single device, may
        be a lower bound of the latency.
        """
        limit_seconds = min(limit_seconds, self._useless_seconds)
        batch = np.asarray(devices, dtype=np.int32).reshape(-1, len(self.units))
        if len(batch) > _REMEMBERED_BATCH:
            return self._simulate(batch, limit_seconds)
        keys = [row.tobytes() for row in batch]
        new = [i for i, key in enumerate(keys) if not self._knows(key, limit_seconds)]
        if new:
            for i, seconds in zip(new, self._simulate(batch[new], limit_seconds).tolist(), strict=True):
                self._known[keys[i]] = seconds, limit_seconds
        return np.array([self._known[key][0] for key in keys])

    def _knows(self, key: bytes, limit_seconds: float) -> bool:
        """Whether a latency is known exactly, or known to be above the limit."""
        seconds, limit = self._known.get(key, (0.0, -1.0))
        return seconds <= limit or seconds > limit_seconds

    @property
    def _useless_seconds(self) -> float:
        """Latency of the best single device on a large graph; nobody wants a slower placement."""
        if self._best_single is None:
            singles = list(self.singles().values()) if self.nodes >= _LARGE else []
            self._best_single = float(self._simulate(np.array(singles), np.inf).min()) if singles else np.inf
        return self._best_single

    def _simulate(self, batch: IntArray, limit_seconds: float) -> FloatArray:
        if len(self.units.unit_of) != len(self.units):
            batch = batch[:, self.units.unit_of]
        return simulate_batch(self.table, batch, limit_seconds=limit_seconds, objective=self.objective)

    def best(self, devices: Sequence[IntArray] | IntArray) -> IntArray:
        """The fastest of several assignments; of those that are equal up to rounding, the first."""
        latencies = self.latencies(devices)
        return devices[int(np.argmax(latencies <= latencies.min() * (1 + 1e-9)))]

    @property
    def nodes(self) -> int:
        """Nodes that the simulator walks for one assignment."""
        wiring = self.table.wiring
        return len(self.table) if wiring is None else len(wiring.node_group)

    def work(self, device: IntArray) -> int:
        """What simulating an assignment takes, in nodes visited; ``nodes`` when no subgraphs form a cycle.

        On lanes none do, and it is groups that are visited.

        HETERO cuts subgraphs that depend on each other in a cycle, one at a time, and so must the simulator:
        a placement with thousands of them in one cycle takes seconds to simulate and is useless besides.
        """
        units = self.units
        if OBJECTIVES[self.objective].at_once:
            return len(self.table)
        edges = np.stack([units.producer[rows_of(units.offsets)], units.consumers], axis=1)
        crosses = device[edges[:, 0]] != device[edges[:, 1]]
        subgraph = _core.connected_labels(len(units), np.ascontiguousarray(edges[~crosses]))
        cycle = _core.merge_cycles(subgraph, np.ascontiguousarray(edges[crosses]))
        cycle_of = np.zeros(int(subgraph.max()) + 1, dtype=np.int64)
        cycle_of[subgraph] = cycle
        # Units in a cycle are visited once for each of its subgraphs.
        visited = int((np.bincount(cycle_of) * np.bincount(cycle)).sum())
        return self.nodes + (visited - len(units)) * self.nodes // len(units)

    def singles(self) -> dict[int, IntArray]:
        """The allowed placements on one device, by device."""
        units = self.units
        runs_all = np.isfinite(units.op_seconds).all(axis=0)
        fits = ~units.may_overflow
        return {int(d): np.full(len(units), d, dtype=np.int32) for d in np.flatnonzero(runs_all & fits)}

    def answer(self, device: IntArray, lower_bound: float | None = None) -> Placement:
        """The placement of the groups that an assignment of units is.

        Args:
            device: Of each unit, ``int32[U]``.
            lower_bound: Proven bound below every allowed placement's latency, in seconds.
        """
        placement = Placement.of_groups(self.table, self.units.to_groups(device))
        return replace(placement, lower_bound_seconds=lower_bound)

    def bound(self, relaxed_bound: float) -> float:
        """A bound of the true objective from one of the relaxed objective.

        A placement uses one device, and is then known exactly, or at least two, and then launches at
        least one subgraph on each of them besides everything that the relaxed objective counts.
        """
        singles = list(self.singles().values())
        best_single = float(self.latencies(singles).min()) if singles else np.inf
        launches = np.sort(self.units.launch_seconds[self.units.usable_devices])
        if len(launches) < 2:
            return best_single
        return min(best_single, relaxed_bound + float(launches[:2].sum()))
