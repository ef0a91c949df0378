"""What a placement must honour: supported devices, pins, memory limits and groups that stay together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace._base.text import nearest_device
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError, PlacementError

__all__ = ["Constraints", "pinned_devices"]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Hard constraints on placing G groups on D devices.

    Attributes:
        allowed: Which group may run on which device, ``bool[G, D]``.
        memory_capacity: Bytes that may be placed on each device, ``float64[D]``; ``inf`` = not limited.
        unit_of: Groups with equal numbers share a device, ``int32[G]``, dense, numbered by first
            appearance: co-location classes and the two ends of every uncuttable tensor.
    """

    allowed: BoolArray
    memory_capacity: FloatArray
    unit_of: IntArray

    @classmethod
    def of(
        cls,
        table: CostTable,
        memory_limits: Mapping[str, float] | None = None,
        pins: Mapping[str, str] | None = None,
        piece_of: IntArray | None = None,
    ) -> Constraints:
        """Gather the constraints of a table and of its user.

        Args:
            table: The cost table.
            memory_limits: Bytes by device name; the smaller of this and the table's own capacity holds. The
                lanes of a device share what it has.
            pins: Device or lane by name pattern (``fnmatch``), matched against the names of groups and of
                ops; a later pattern overrides an earlier one.
            piece_of: Groups with equal numbers share a device too, ``int32[G]``.

        Raises:
            OptionError: A limit or a pin names an unknown device, a limit is not a size, or a pattern
                matches nothing.
            PlacementError: Some group is left without a device.
        """
        capacity = np.array(table.memory_capacity, dtype=np.float64)
        for device, limit in (memory_limits or {}).items():
            columns = _columns(table, device, "memory limit")
            if not limit >= 0:
                raise OptionError(f"the memory limit of {device} is {limit!r}; give a number of bytes")
            shared = np.isin(table.device_of, table.device_of[columns])
            capacity[shared] = np.minimum(capacity[shared], float(limit))
        allowed = table.supported
        unrunnable = np.flatnonzero(~allowed.any(axis=1))
        if len(unrunnable):
            raise PlacementError(
                f"group {table.names[unrunnable[0]]!r} can run on none of {', '.join(table.devices)}"
            )
        unit_of = _units(table, piece_of)
        if pins:
            allowed = pinned_devices(table, pins)
        _check_units(table, allowed, unit_of)
        return cls(
            allowed=frozen_array(allowed, np.bool_),
            memory_capacity=frozen_array(capacity, np.float64),
            unit_of=frozen_array(unit_of, np.int32),
        )


def _columns(table: CostTable, device: str, what: str) -> IntArray:
    """The column of a device or lane, or those of all lanes of a device, ``int32[n]``."""
    found = [
        d
        for d, (name, owner) in enumerate(zip(table.devices, table.owners, strict=True))
        if device in (name, owner)
    ]
    if not found:
        known = list(dict.fromkeys([*table.devices, *table.owners]))
        near = nearest_device(device, known)
        hint = f"; did you mean {near!r}?" if near else ""
        raise OptionError(f"a {what} names {device!r}, but the devices are {', '.join(known)}{hint}")
    return np.array(found, dtype=np.int32)


def pinned_devices(table: CostTable, pins: Mapping[str, str]) -> BoolArray:
    """Supported devices per group, ``bool[G, D]``, narrowed to the pinned ones where a pattern matches.

    Args:
        table: The groups.
        pins: Device or lane by name pattern.

    Raises:
        OptionError: A pattern that matches nothing, or a device that is not in the table.
        PlacementError: A group is pinned to what cannot run it.
    """
    pinned_to: list[str | None] = [None] * len(table)
    only = np.ones_like(table.supported)
    for pattern, device in pins.items():
        columns = _columns(table, device, "pin")
        match = re.compile(translate(pattern)).match
        hits = [
            g
            for g, name in enumerate(table.names)
            if match(name) or (table.members is not None and any(map(match, table.members[g])))
        ]
        if not hits:
            raise OptionError(f"the pin {pattern!r} matches no op; patterns are shell-style, like '*/conv*'")
        only[hits] = np.isin(np.arange(table.num_devices), columns)
        for g in hits:
            pinned_to[g] = device
    allowed: BoolArray = table.supported & only
    for g in np.flatnonzero(~allowed.any(axis=1))[:1]:
        raise PlacementError(f"group {table.names[g]!r} is pinned to {pinned_to[g]}, which cannot run it")
    return allowed


def _units(table: CostTable, piece_of: IntArray | None) -> IntArray:
    """Number of the indivisible unit of each group."""
    G = len(table)
    lengths = np.diff(table.tensor_offsets)
    glued = np.repeat(table.tensor_uncuttable, lengths)
    heads = [table.tensor_consumers[glued]]
    tails = [np.repeat(table.tensor_producer, lengths)[glued]]
    for label_of in (table.colocation, piece_of):
        if label_of is None:
            continue
        in_class = np.flatnonzero(label_of >= 0)
        _, first, label = np.unique(label_of[in_class], return_index=True, return_inverse=True)
        heads.append(in_class.astype(np.int32))
        tails.append(in_class[first[label]].astype(np.int32))
    head, tail = np.concatenate(heads), np.concatenate(tails)
    if not len(head):
        return np.arange(G, dtype=np.int32)
    pairs = np.stack((tail, head), axis=1).astype(np.int32)
    component = _core.connected_labels(G, np.ascontiguousarray(pairs))
    _, first, label = np.unique(component, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[label]


def _check_units(table: CostTable, allowed: BoolArray, unit_of: IntArray) -> None:
    """Refuse groups that must share a device and have none in common."""
    together = np.ones((int(unit_of.max(initial=-1)) + 1, table.num_devices), dtype=np.bool_)
    np.logical_and.at(together, unit_of, allowed)
    for unit in np.flatnonzero(~together.any(axis=1))[:1]:
        groups = np.flatnonzero(unit_of == unit)
        names = ", ".join(repr(table.names[g]) for g in groups[:3]) + (", ..." if len(groups) > 3 else "")
        raise PlacementError(f"groups {names} must share a device, but no device may run all of them")
