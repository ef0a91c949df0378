"""Greedy placement in topological order."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import IntArray, grouped, rows_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.problem.device_memory import DeviceMemory
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.memory import first_fit

__all__ = ["greedy_assignment"]


def greedy_assignment(table: CostTable, units: UnitGraph) -> IntArray:
    """The greedy assignment of units, ``int32[U]``; within memory limits, else :func:`first_fit`'s.

    A unit costs its op time plus the transfers of those inputs that no earlier consumer has brought to
    the device already. A unit's place in the order is that of its first group.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    D = units.num_devices
    inputs = grouped(rows_of(units.offsets), units.consumers, len(units))
    seconds = units.op_seconds.tolist()
    room = DeviceMemory(units) if units.has_memory_limits else None
    producer, tensor_bytes = units.producer.tolist(), units.tensor_bytes.tolist()
    latency, rate = units.transfer_latency.tolist(), units.transfer_seconds_per_byte.tolist()
    chosen = [-1] * len(units)
    arrived: set[tuple[int, int]] = set()
    for u, tensors in enumerate(inputs):
        costs = seconds[u]
        if room is not None:
            costs = np.where(room.takes(u), costs, np.inf).tolist()
        for tensor in tensors:
            sender = chosen[producer[tensor]]
            if sender < 0:
                continue
            for d in range(D):
                if d != sender and (tensor, d) not in arrived:
                    costs[d] += latency[sender][d] + rate[sender][d] * tensor_bytes[tensor]
        best = min(range(D), key=costs.__getitem__)
        if costs[best] == np.inf:
            return first_fit(table, units)
        chosen[u] = best
        if room is not None:
            room.put(u, best)
        arrived.update((tensor, best) for tensor in tensors)
    device = np.array(chosen, dtype=np.int32)
    return device if units.fits(device) else first_fit(table, units)
