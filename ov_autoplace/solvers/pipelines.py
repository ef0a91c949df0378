"""Two devices one after the other: where many requests are in flight, each has its part of every one."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.problem.units import UnitGraph

__all__ = ["pipelines"]

_MOST_DEVICES = 4
_MOST_ENDS = 256  # of first stages


def pipelines(units: UnitGraph) -> list[IntArray]:
    """The first units on one device and all others on another one, for every pair of a few devices."""
    devices = units.usable_devices
    if not 2 <= len(devices) <= _MOST_DEVICES:
        return []
    may_run = np.isfinite(units.op_seconds)
    ends = np.unique(np.linspace(1, len(units) - 1, min(_MOST_ENDS, max(len(units) - 1, 0))).astype(np.int64))
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
