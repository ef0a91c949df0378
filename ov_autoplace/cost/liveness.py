"""Memory that a placement takes: weights, and the results that are alive at once.

Groups run one after the other in the table's order. A result is held by every device that makes or reads it,
from when it is made until its last reader has run: HETERO gives both ends of a transfer a buffer of their
own. The interval does not depend on the placement, so what a device holds at a moment is a sum over
results that are on it, which a mixed-integer program can say, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray, IntArray, offsets_of, rows_of
from ov_autoplace._base.kept import kept

if TYPE_CHECKING:
    from ov_autoplace.cost.table import CostTable

__all__ = ["MEMORY_TOLERANCE", "Liveness", "held_bytes", "liveness_of", "static_bytes"]

MEMORY_TOLERANCE = 1 + 1e-12
"""A limit holds up to this factor: sums of bytes in another order differ in their last digits."""


@dataclass(frozen=True, eq=False)
class Liveness:
    """R results, each alive between two moments of M; a holder is a group or, after ``regrouped``, a unit.

    Attributes:
        moments: Number of moments: groups of the table.
        result_bytes: ``float64[R]``.
        first, last: Moments between which each result is alive, both included, ``int32[R]``.
        offsets, holders: CSR of what makes or reads each result, ``int32[R + 1]``, ``int32[E]``.
    """

    moments: int
    result_bytes: FloatArray
    first: IntArray
    last: IntArray
    offsets: IntArray
    holders: IntArray

    def holders_of(self, result: int) -> IntArray:
        """What makes or reads one result."""
        return self.holders[self.offsets[result] : self.offsets[result + 1]]

    def regrouped(self, unit_of: IntArray) -> Liveness:
        """The same results, held by the units of the groups."""
        return replace(self, holders=unit_of[self.holders])

    def peak_bytes(self, device: IntArray, num_devices: int) -> FloatArray:
        """The most that each device holds of results at one moment, ``float64[D]`` or ``float64[B, D]``.

        Args:
            device: Device of each holder, of one assignment or several, ``int32[H]`` or ``int32[B, H]``.
            num_devices: D.
        """
        peaks = _core.peak_bytes(
            self.moments,
            self.result_bytes,
            self.first,
            self.last,
            self.offsets,
            self.holders,
            np.ascontiguousarray(np.atleast_2d(device), dtype=np.int32),
            num_devices,
        )
        return np.asarray(peaks.reshape(*device.shape[:-1], num_devices))

    def critical_moments(self) -> list[IntArray]:
        """The results that are alive together, at those moments that no other moment includes."""
        starts, ends = np.argsort(self.first, kind="stable"), np.argsort(self.last, kind="stable")
        alive: set[int] = set()
        found = []
        next_start = next_end = 0
        while next_end < len(ends):
            moment = self.last[ends[next_end]]
            has_grown = False
            while next_start < len(starts) and self.first[starts[next_start]] <= moment:
                alive.add(int(starts[next_start]))
                next_start, has_grown = next_start + 1, True
            if has_grown:
                found.append(np.array(sorted(alive), dtype=np.int32))
            while next_end < len(ends) and self.last[ends[next_end]] == moment:
                alive.discard(int(ends[next_end]))
                next_end += 1
        return found


def liveness_of(table: CostTable) -> Liveness | None:
    """When the results of a table's groups are alive, or ``None`` where the table does not know."""
    return None if table.result_bytes is None else _liveness(table)


@kept
def _liveness(table: CostTable) -> Liveness:
    G = len(table)
    producer = table.tensor_producer
    last = np.maximum(producer, _last_readers(table))
    first = np.where(table.tensor_is_constant, 0, producer)
    last = np.where(table.tensor_is_constant, G - 1, last)
    # What no other group reads lives inside its own group only.
    moving = ~table.tensor_is_constant
    handed_on = np.bincount(producer[moving], table.tensor_bytes[moving], minlength=G)
    assert table.result_bytes is not None
    inner = np.maximum(table.result_bytes - handed_on, 0.0)
    groups = np.arange(G, dtype=np.int32)
    holders = np.insert(table.tensor_consumers, table.tensor_offsets[:-1], producer)
    return Liveness(
        moments=G,
        result_bytes=np.concatenate([table.tensor_bytes, inner]),
        first=np.concatenate([first, groups]).astype(np.int32),
        last=np.concatenate([last, groups]).astype(np.int32),
        offsets=offsets_of(np.concatenate([np.diff(table.tensor_offsets) + 1, np.ones(G, dtype=np.int32)])),
        holders=np.concatenate([holders, groups]).astype(np.int32),
    )


def _last_readers(table: CostTable) -> IntArray:
    last = np.zeros(len(table.tensor_producer), dtype=np.int32)
    np.maximum.at(last, rows_of(table.tensor_offsets), table.tensor_consumers)
    return last


def static_bytes(table: CostTable) -> FloatArray:
    """Bytes that each group holds all the time, ``float64[G]``.

    Without results of its own. A constant that several groups share is a result that lives for ever: each
    device that reads it has a copy.
    """
    if table.result_bytes is None:
        return table.memory_bytes
    shared = table.tensor_is_constant
    constants = np.bincount(table.tensor_producer[shared], table.tensor_bytes[shared], minlength=len(table))
    return np.maximum(table.memory_bytes - table.result_bytes - constants, 0.0)


def held_bytes(table: CostTable, assignment: IntArray) -> FloatArray:
    """The most that each device has to hold at once under a placement, ``float64[D]``.

    Args:
        table: A cost table; without ``result_bytes``, all of ``memory_bytes`` is held all the time.
        assignment: Device of each group, ``int32[G]``.
    """
    held = np.bincount(assignment, static_bytes(table), table.num_devices).astype(np.float64)
    liveness = liveness_of(table)
    return held if liveness is None else held + liveness.peak_bytes(assignment, table.num_devices)
