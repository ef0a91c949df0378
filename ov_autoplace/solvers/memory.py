"""Memory limits: a first placement that fits or the limits that would do, and cuts that respect a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.problem.device_memory import DeviceMemory
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.milp_model import solve_model
from ov_autoplace.solvers.moves import Move, Moved

__all__ = ["fill_in_order", "filled", "first_fit", "limited_move"]

_PACKING_NODES = 200
_PRICE_STEPS = 12
# Of the program that finds the smallest limits.
_LIMIT_NODES, _LIMIT_SECONDS = 500, 5.0
_SIZES = ("bytes", "KiB", "MiB", "GiB")


def limited_move(units: UnitGraph, device: IntArray, move: Move) -> Moved:
    """The best found outcome of a move that fits into memory.

    When the move overfills a device, memory there gets a price (Lagrangian relaxation). The price at which
    the last placement that fits and the last one that does not are equally good is tried next: that
    is the cutting-plane method (Handler and Zang, "A Dual Algorithm for the Constrained Shortest Path
    Problem", 1980), which ends at the best bound in a few cuts.

    Args:
        units: The units, with their memory limits.
        device: The present assignment, which fits.
        move: The move to try.

    Returns:
        Assignments that fit (``device`` itself when there is nothing else) and the best bound proven.
    """
    moved = move(units, device)
    fitting = [a for a in moved.assignments if units.fits(a)]
    if fitting:
        return Moved(tuple(fitting), moved.lower_bound)
    over = moved.assignments[0]
    full = int(np.argmax(units.memory_of(over) - units.memory_capacity))
    capacity = units.memory_capacity[full]
    bound = moved.lower_bound
    # Both ends of the search: (relaxed seconds, bytes on the full device).
    low = (units.relaxed_seconds(over), float(units.memory_of(over)[full]))
    high = (units.relaxed_seconds(device), float(units.memory_of(device)[full]))
    for _ in range(_PRICE_STEPS):
        if low[1] <= high[1]:
            break
        price = (high[0] - low[0]) / (low[1] - high[1])
        if price <= 0:
            break
        moved = move(units.with_memory_price(full, price), device)
        bound = max(bound, moved.lower_bound - price * capacity)
        fitting += [a for a in moved.assignments if units.fits(a)]
        fitting += [a for a in (repair(units, b) for b in moved.assignments) if a is not None]
        chosen = min(moved.assignments, key=lambda a: float(units.memory_of(a)[full]))
        point = (units.relaxed_seconds(chosen), float(units.memory_of(chosen)[full]))
        # No better than the line through both ends: this price gives the best bound.
        if point[0] + price * point[1] >= (low[0] + price * low[1]) * (1 - 1e-9):
            break
        if point[1] > capacity:
            low = point
        else:
            high = point
    if not fitting:
        repaired = repair(units, over)
        fitting = [device if repaired is None else repaired]
    fitting.sort(key=units.relaxed_seconds)
    return Moved(tuple(fitting[:4]), bound)


def repair(units: UnitGraph, device: IntArray) -> IntArray | None:
    """Move units off overfull devices, those first that lose least time per byte; ``None`` = it failed."""
    device = np.array(device)
    room = units.memory_capacity - np.bincount(device, units.packing_bytes, units.num_devices)
    for _ in range(units.num_devices):
        full = int(np.argmin(room))
        if room[full] >= -1e-12 * units.memory_capacity[full]:
            break
        movable = np.flatnonzero((device == full) & (units.packing_bytes > 0))
        others = units.op_seconds.copy()
        others[:, full] = np.inf
        loss = (others[movable].min(axis=1) - units.op_seconds[movable, full]) / units.packing_bytes[movable]
        for u in movable[np.argsort(loss, kind="stable")]:
            if room[full] >= 0 or not np.isfinite(others[u]).any():
                break
            takes = np.isfinite(others[u]) & (room >= units.packing_bytes[u])
            if takes.any():
                to = int(np.argmin(np.where(takes, others[u], np.inf)))
                room[[full, to]] += units.packing_bytes[u] * np.array([1, -1])
                device[u] = to
    return device if units.fits(device) else None


def filled(units: UnitGraph) -> IntArray | None:
    """The fastest of some placements that fill one device after the other, by the relaxed objective.

    Which device comes first decides what fits at all, so each does once, followed by the others from the
    fastest to the slowest, and by the others from the roomiest to the one with the least room.
    """
    allowed = np.isfinite(units.op_seconds)
    seconds = np.where(allowed, units.op_seconds, units.op_seconds.max(where=allowed, initial=0.0))
    by_speed = np.argsort(seconds.sum(axis=0), kind="stable").tolist()
    by_room = np.argsort(-units.memory_capacity, kind="stable").tolist()
    orders = {
        tuple(sorted(order, key=lambda d: d != first)): None
        for order in (by_speed, by_room)
        for first in order
    }
    found = [device for order in orders if (device := fill_in_order(units, order)) is not None]
    return min(found, key=units.relaxed_seconds, default=None)


def fill_in_order(units: UnitGraph, devices: Sequence[int]) -> IntArray | None:
    """Fill one device with units in topological order, then the next: few tensors are cut.

    Args:
        units: The units, with their memory limits.
        devices: All of them, in the order in which they are filled.

    Returns:
        ``int32[U]``, or ``None`` when a unit fits nowhere any more.
    """
    allowed = np.isfinite(units.op_seconds)
    room = DeviceMemory(units)
    device = np.empty(len(units), dtype=np.int32)
    filling = 0  # position in ``devices``: those before it are full
    for u in units.order.tolist():
        fits = room.takes(u) & allowed[u]
        takes = [i for i, d in enumerate(devices) if fits[d]]
        if not takes:
            return None
        chosen = next((i for i in takes if i >= filling), takes[0])
        filling = max(filling, chosen if allowed[u, devices[filling]] else filling)
        device[u] = devices[chosen]
        room.put(u, devices[chosen])
    return device if units.fits(device) else None


def first_fit(table: CostTable, units: UnitGraph) -> IntArray:
    """An assignment of units that fits into memory.

    Raises:
        PlacementError: None was found; the sentence says whether none exists, and which limits would do.
    """
    fastest: IntArray = np.argmin(units.op_seconds, axis=1).astype(np.int32)
    if units.fits(fastest):
        return fastest
    if len(np.unique(units.device_of)) < units.num_devices:
        # Lanes of one device share its memory: which device holds a unit is what counts.
        device = first_fit(table, _without_lanes(units))
        own = units.device_of[None, :] == device[:, None]
        lane: IntArray = np.argmin(np.where(own, units.op_seconds, np.inf), axis=1).astype(np.int32)
        return lane
    for found in (repair(units, fastest), filled(units)):
        if found is not None and units.fits(found):
            return found
    packed = solve_model(_without_prices(units), np.isfinite(units.op_seconds), node_limit=_PACKING_NODES)
    if packed.assignment is not None:
        return packed.assignment
    needs = _smallest_limits(table.devices, units)
    limits = ", ".join(
        f"{limit:.0f} bytes on {device}"
        for device, limit in zip(table.devices, units.memory_capacity, strict=True)
        if np.isfinite(limit)
    )
    verb = "does not fit" if np.isinf(packed.bound) else "was not found to fit"
    raise PlacementError(f"the model {verb} into {limits}; {needs}")


def _without_lanes(units: UnitGraph) -> UnitGraph:
    """The same units, all lanes of a device being its first, which can run what any of them can."""
    op_seconds = np.full_like(units.op_seconds, np.inf)
    np.minimum.at(op_seconds.T, units.device_of, units.op_seconds.T)
    return replace(units, op_seconds=op_seconds, device_of=np.arange(units.num_devices, dtype=np.int32))


def _without_prices(units: UnitGraph) -> UnitGraph:
    """The same units, all placements equally fast."""
    return replace(
        units,
        op_seconds=np.where(np.isfinite(units.op_seconds), 0.0, np.inf),
        transfer_latency=np.zeros_like(units.transfer_latency),
        transfer_seconds_per_byte=np.zeros_like(units.transfer_seconds_per_byte),
    )


def _smallest_limits(names: tuple[str, ...], units: UnitGraph) -> str:
    """The smallest limit of each device alone, and of all limited devices together, in one clause."""
    limited = [d for d in units.usable_devices if units.may_overflow[d]]
    choices: list[tuple[tuple[int, ...], str]] = [((d,), f"on {names[d]}") for d in limited]
    if len(limited) > 1:
        choices.append((tuple(limited), "each on " + ", ".join(names[d] for d in limited)))
    clauses = []
    for devices, where in choices:
        solved = solve_model(
            units,
            np.isfinite(units.op_seconds),
            node_limit=_LIMIT_NODES,
            time_limit=_LIMIT_SECONDS,
            shrinking=devices,
        )
        if solved.assignment is not None:
            needed = math.ceil(units.memory_of(solved.assignment)[list(devices)].max())
            clauses.append(f"{_size(needed)} {where}")
    if not clauses:
        return "no larger limit of one device alone is enough"
    return "it needs at least " + " or ".join(clauses)


def _size(number: int) -> str:
    """A number of bytes, exact and, where it is large, readable."""
    size, unit = float(number), 0
    while size >= 1024 and unit + 1 < len(_SIZES):
        size, unit = size / 1024, unit + 1
    exact = f"{number} bytes"
    return exact if unit == 0 else f"{exact} ({size:.1f} {_SIZES[unit]})"
