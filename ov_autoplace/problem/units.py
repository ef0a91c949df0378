"""The graph of indivisible units that the solvers work on, and the relaxed objective.

Groups that must share a device are one unit here, so no solver can break a co-location. The relaxed
objective of a placement is the sum of op times plus one transfer per tensor and receiving *device*.
HETERO pays one per receiving *subgraph*, plus launches, so the relaxed objective never exceeds the true
one; with two devices its minimum is a minimum s-t cut (Stone, "Multiprocessor Scheduling with the Aid of
Network Flow Algorithms", 1977).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, offsets_of, rows_of
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE, Liveness, liveness_of, static_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.problem.constraints import Constraints

__all__ = ["UnitGraph"]


@dataclass(frozen=True, eq=False)
class UnitGraph:
    """U units on D devices, which exchange T tensors. A device assignment of units is ``int32[U]``.

    Attributes:
        unit_of: Unit of each group of the table, ``int32[G]``.
        op_seconds: Run time of each unit on each device, ``float64[U, D]``; ``inf`` = forbidden.
        memory_bytes: Bytes that each unit holds all the time, ``float64[U]``.
        packing_bytes: The same with all results of the unit, as if none were freed, ``float64[U]``: what
            heuristics pack by. Nothing else where the liveness is not known.
        liveness: When which results are held besides, by units; ``None`` = not known.
        memory_capacity: Bytes per device, ``float64[D]``.
        producer: Unit that makes each tensor that can be transferred, ``int32[T]``.
        tensor_bytes: ``float64[T]``.
        offsets, consumers: CSR of consuming units, ``int32[T + 1]``, ``int32[E]``.
        transfer_latency, transfer_seconds_per_byte: ``float64[D, D]`` (from, to), diagonal unused.
        launch_seconds: Per subgraph, ``float64[D]``; not part of the relaxed objective.
        device_of: First column of the device of each column, ``int32[D]``: lanes of one device share memory.
    """

    unit_of: IntArray
    op_seconds: FloatArray
    memory_bytes: FloatArray
    packing_bytes: FloatArray
    liveness: Liveness | None
    memory_capacity: FloatArray
    producer: IntArray
    tensor_bytes: FloatArray
    offsets: IntArray
    consumers: IntArray
    transfer_latency: FloatArray
    transfer_seconds_per_byte: FloatArray
    launch_seconds: FloatArray
    device_of: IntArray

    @classmethod
    def of(cls, table: CostTable, constraints: Constraints) -> UnitGraph:
        """Contract a table's groups to units."""
        unit_of = constraints.unit_of
        op_seconds = np.where(constraints.allowed, table.op_seconds, np.inf)
        memory, packing, liveness = static_bytes(table), table.memory_bytes, liveness_of(table)
        lengths = np.diff(table.tensor_offsets)
        moves = ~table.tensor_is_constant
        producer, tensor_bytes, consumers = table.tensor_producer, table.tensor_bytes, table.tensor_consumers
        if not moves.all():
            consumers = consumers[np.repeat(moves, lengths)]
            producer, tensor_bytes, lengths = producer[moves], tensor_bytes[moves], lengths[moves]
        units = int(unit_of.max(initial=-1)) + 1
        if units < len(unit_of):
            op_seconds = np.stack([np.bincount(unit_of, column, units) for column in op_seconds.T], axis=1)
            memory, packing = (np.bincount(unit_of, b, units).astype(np.float64) for b in (memory, packing))
            liveness = None if liveness is None else liveness.regrouped(unit_of)
            producer = unit_of[producer]
            tensor = np.repeat(np.arange(len(producer)), lengths)
            pair = np.unique(tensor * units + unit_of[consumers])
            pair = pair[pair % units != producer[pair // units]]
            consumers = (pair % units).astype(np.int32)
            lengths = np.bincount(pair // units, minlength=len(producer))
        used = lengths > 0
        if not used.all():
            producer, tensor_bytes, lengths = producer[used], tensor_bytes[used], lengths[used]
        return cls(
            unit_of=unit_of,
            op_seconds=op_seconds,
            memory_bytes=memory,
            packing_bytes=packing,
            liveness=liveness,
            memory_capacity=constraints.memory_capacity,
            producer=producer,
            tensor_bytes=tensor_bytes,
            offsets=offsets_of(lengths),
            consumers=consumers,
            transfer_latency=table.transfer_latency,
            transfer_seconds_per_byte=table.transfer_seconds_per_byte,
            launch_seconds=table.launch_seconds,
            device_of=table.device_of,
        )

    def __len__(self) -> int:
        return len(self.op_seconds)

    def to_groups(self, device: NDArray[np.integer[Any]]) -> IntArray:
        """Device of each group of the table, ``int32[G]``, from that of each unit, ``int[U]``."""
        return np.ascontiguousarray(device[self.unit_of], dtype=np.int32)

    def from_groups(self, assignment: IntArray) -> IntArray:
        """Device of each unit, ``int32[U]``, from that of each group, ``int32[G]``."""
        device = np.empty(len(self), dtype=np.int32)
        device[self.unit_of] = assignment
        return device

    @property
    def num_devices(self) -> int:
        """Number of devices, D."""
        return int(self.op_seconds.shape[1])

    @property
    def usable_devices(self) -> list[int]:
        """Devices that at least one unit may run on."""
        return [int(d) for d in np.flatnonzero(np.isfinite(self.op_seconds).any(axis=0))]

    @property
    def has_memory_limits(self) -> bool:
        """Whether some device could be asked to hold more than it can."""
        return bool(self.may_overflow.any())

    @cached_property
    def may_overflow(self) -> BoolArray:
        """Which devices could be asked to hold more than they can, ``bool[D]``."""
        return np.asarray(self.memory_capacity * MEMORY_TOLERANCE < self.most_bytes)

    @cached_property
    def most_bytes(self) -> float:
        """The bytes of one device that has everything; no device ever holds more."""
        everything = float(self.memory_bytes.sum())
        if self.liveness is None:
            return everything
        together = np.zeros(len(self), dtype=np.int32)
        return everything + float(self.liveness.peak_bytes(together, 1)[0])

    def without_limits(self, devices: Sequence[int]) -> UnitGraph:
        """The same units, some devices holding as much as they like."""
        capacity = self.memory_capacity.copy()
        capacity[list(devices)] = np.inf
        return replace(self, memory_capacity=capacity)

    def with_launches(self, share: float) -> UnitGraph:
        """The same units with ``share`` launches of the receiving device on top of every transfer."""
        return replace(self, transfer_latency=self.transfer_latency + share * self.launch_seconds)

    def with_transfers_times(self, factor: float) -> UnitGraph:
        """The same units with dearer transfers, so that fewer are made."""
        return replace(
            self,
            transfer_latency=self.transfer_latency * factor,
            transfer_seconds_per_byte=self.transfer_seconds_per_byte * factor,
        )

    def one_way(self, sender: int, receiver: int) -> UnitGraph:
        """The same units, with transfers back from ``receiver`` to ``sender`` dearer than any placement."""
        seconds = np.where(np.isfinite(self.op_seconds), self.op_seconds, 0.0)
        latency = self.transfer_latency.copy()
        latency[receiver, sender] += seconds.max(axis=1).sum() + self.transfer_latency.sum()
        return replace(self, transfer_latency=latency)

    def with_memory_price(self, device: int, seconds_per_byte: float) -> UnitGraph:
        """The same units, paying for the memory that they hold on ``device``."""
        op_seconds = self.op_seconds.copy()
        op_seconds[:, device] += seconds_per_byte * self.memory_bytes
        return replace(self, op_seconds=op_seconds)

    def against(self, device: int, others: list[int]) -> UnitGraph:
        """Two devices: ``device``, and one that is as good as the best of ``others`` at everything."""

        def merged(prices: FloatArray) -> FloatArray:
            to_others, to_device = prices[device, others].min(), prices[others, device].min()
            return np.array([[0.0, to_others], [to_device, 0.0]])

        return replace(
            self,
            op_seconds=np.stack([self.op_seconds[:, device], self.op_seconds[:, others].min(axis=1)], axis=1),
            memory_capacity=np.array([np.inf, np.inf]),
            liveness=None,
            transfer_latency=merged(self.transfer_latency),
            transfer_seconds_per_byte=merged(self.transfer_seconds_per_byte),
            launch_seconds=np.array([self.launch_seconds[device], self.launch_seconds[others].min()]),
            device_of=np.arange(2, dtype=np.int32),
        )

    @cached_property
    def order(self) -> IntArray:
        """The units in the order in which they run, ``int32[U]``.

        A unit runs where its last group does; one without inputs (a weight) just before its first reader.
        """
        position = np.zeros(len(self))
        np.maximum.at(position, self.unit_of, np.arange(len(self.unit_of)))
        first_reader = np.full(len(self), np.inf)
        producer = self.producer[rows_of(self.offsets)]
        np.minimum.at(first_reader, producer, position[self.consumers])
        has_no_input = np.bincount(self.consumers, minlength=len(self)) == 0
        position = np.where(has_no_input & np.isfinite(first_reader), first_reader - 0.5, position)
        return np.argsort(position, kind="stable").astype(np.int32)

    @cached_property
    def place(self) -> IntArray:
        """Of each unit in :attr:`order`, ``int32[U]``."""
        place = np.empty(len(self), dtype=np.int32)
        place[self.order] = np.arange(len(self), dtype=np.int32)
        return place

    def transfer_seconds(self, sender: IntArray | int, receiver: IntArray | int) -> FloatArray:
        """Seconds to move every tensor from one device to another, ``float64[T]``."""
        rate = self.transfer_seconds_per_byte[sender, receiver]
        return np.asarray(self.transfer_latency[sender, receiver] + rate * self.tensor_bytes)

    def relaxed_seconds(self, device: IntArray) -> float:
        """The relaxed objective of an assignment; ``inf`` when it breaks a support mask."""
        total = float(self.op_seconds[np.arange(len(self)), device].sum())
        sender = device[self.producer]
        received_on = np.repeat(sender, np.diff(self.offsets)) != device[self.consumers]
        if not received_on.any():
            return total
        tensor = rows_of(self.offsets)[received_on]
        pair = np.unique(tensor * self.num_devices + device[self.consumers][received_on])
        tensor, receiver = pair // self.num_devices, pair % self.num_devices
        sender = sender[tensor]
        rate = self.transfer_seconds_per_byte[sender, receiver]
        return total + float(
            (self.transfer_latency[sender, receiver] + rate * self.tensor_bytes[tensor]).sum()
        )

    def memory_of(self, device: IntArray) -> FloatArray:
        """The most bytes held on each device at once, ``float64[D]`` or ``float64[B, D]``.

        Every lane of a device has what all of them hold.

        Args:
            device: One assignment or several, ``int32[U]`` or ``int32[B, U]``.
        """
        D = self.num_devices
        device = self.device_of[device]
        rows = np.atleast_2d(device)
        B = len(rows)
        cell = rows + D * np.arange(B)[:, None]
        held = np.bincount(cell.ravel(), np.tile(self.memory_bytes, B), B * D).astype(np.float64)
        held = held.reshape(*device.shape[:-1], D)
        if self.liveness is not None:
            held = held + self.liveness.peak_bytes(device, D)
        return np.asarray(held[..., self.device_of])

    def fits(self, device: IntArray) -> bool:
        """Whether no device holds more than its capacity (sums are compared up to rounding)."""
        return bool(self.fits_each(device[None])[0])

    def fits_each(self, devices: IntArray) -> BoolArray:
        """Which of B assignments fit, see :meth:`fits`, ``bool[B]``.

        Args:
            devices: ``int32[B, U]``.
        """
        return self.overfull(devices) <= 0

    def overfull(self, devices: IntArray) -> FloatArray:
        """By how much B assignments exceed the devices' capacities, ``float64[B]``; 0 = it fits.

        The bytes of all devices together, as a share of what one holds that has everything.

        Args:
            devices: ``int32[B, U]``.
        """
        if not self.has_memory_limits:
            return np.zeros(len(devices))
        beyond = self.memory_of(devices) - self.memory_capacity * MEMORY_TOLERANCE
        each = self.device_of == np.arange(self.num_devices)  # lanes share what their device has
        return np.asarray(np.maximum(beyond, 0.0)[:, each].sum(axis=1) / self.most_bytes)
