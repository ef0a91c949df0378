"""What devices hold while units are put on them one after another, and which of them could take one more.

When a result is alive does not depend on the placement (``cost/liveness.py``), so what a device
holds is a sum over the units that it has got, in whatever order it got them. ``packing_bytes`` count as if no
result were ever freed, which on deep networks is up to ten times as much.
"""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, rows_of
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.problem.units import UnitGraph

__all__ = ["DeviceMemory"]


class DeviceMemory:
    """The memory of D devices, on which some units are.

    Args:
        units: U units with their memory limits.
        device: Where all of them are at first, ``int32[U]``; by default no unit is anywhere.
    """

    def __init__(self, units: UnitGraph, device: IntArray | None = None) -> None:
        self._units = units
        D, live = units.num_devices, units.liveness
        self._capacity = units.memory_capacity * MEMORY_TOLERANCE
        self._device_of = units.device_of.tolist()
        self._always = np.zeros(D)  # bytes held all the time
        self._peak = np.zeros(D)  # the most bytes of results held at one moment
        self._held = np.zeros((0 if live is None else live.moments, D))
        # The results that each unit makes or reads: number, bytes, first moment, moment after the last.
        self._results: list[list[tuple[int, float, int, int]]] = [[] for _ in range(len(units))]
        if live is not None:
            pair = np.unique(live.holders.astype(np.int64) * len(live.result_bytes) + rows_of(live.offsets))
            holder, number = np.divmod(pair, len(live.result_bytes))
            columns = number, live.result_bytes[number], live.first[number], live.last[number] + 1
            for unit, *result in zip(holder.tolist(), *(column.tolist() for column in columns), strict=True):
                self._results[unit].append(tuple(result))
            self._holders = np.zeros((len(live.result_bytes), D), dtype=np.int32)
        if device is not None:
            for unit, d in enumerate(device.tolist()):
                self.put(unit, d)

    def takes(self, unit: int) -> BoolArray:
        """Which devices have room for a unit that is nowhere, ``bool[D]``."""
        most = self._peak
        if results := self._results[unit]:
            begin, end = min(r[2] for r in results), max(r[3] for r in results)
            held = self._held[begin:end].copy()
            for number, size, first, after in results:
                held[first - begin : after - begin] += size * (self._holders[number] == 0)
            most = np.maximum(most, held.max(axis=0))
        fits = self._always + self._units.memory_bytes[unit] + most <= self._capacity
        return np.asarray(fits[self._units.device_of])

    def put(self, unit: int, device: int) -> None:
        """Give a unit that is nowhere to a device, whether or not it has room."""
        d = self._device_of[device]
        self._always[d] += self._units.memory_bytes[unit]
        for number, size, first, after in self._results[unit]:
            if not self._holders[number, d]:
                self._held[first:after, d] += size
                self._peak[d] = max(self._peak[d], self._held[first:after, d].max())
            self._holders[number, d] += 1

    def remove(self, unit: int, device: int) -> None:
        """Take a unit away from the device that it is on."""
        d = self._device_of[device]
        self._always[d] -= self._units.memory_bytes[unit]
        for number, size, first, after in self._results[unit]:
            self._holders[number, d] -= 1
            if not self._holders[number, d]:
                self._held[first:after, d] -= size
        self._peak[d] = self._held[:, d].max(initial=0.0)

    @property
    def beyond(self) -> FloatArray:
        """By how many bytes each device is too full, ``float64[D]``; it is not where that is not above 0."""
        return np.asarray((self._always + self._peak - self._capacity)[self._units.device_of])
