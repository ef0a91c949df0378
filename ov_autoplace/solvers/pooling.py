"""Devices that are copies of one another: found, and taken together for bounds and for smaller searches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ov_autoplace._arrays import FloatArray, IntArray
from ov_autoplace.solvers.units import UnitGraph

__all__ = ["copies_of", "pooled"]


def copies_of(units: UnitGraph) -> list[list[int]]:
    """The usable devices in classes: exchanging two devices of a class changes no placement's cost."""
    classes: list[list[int]] = []
    for device in units.usable_devices:
        own = next((c for c in classes if _are_copies(units, c[0], device)), None)
        if own is None:
            classes.append([device])
        else:
            own.append(device)
    return classes


def _are_copies(units: UnitGraph, first: int, second: int) -> bool:
    swapped = np.arange(units.num_devices)
    swapped[[first, second]] = second, first
    ways = np.ix_(swapped, swapped)
    return (
        units.memory_capacity[first] == units.memory_capacity[second]
        and units.launch_seconds[first] == units.launch_seconds[second]
        and np.array_equal(units.op_seconds[:, first], units.op_seconds[:, second])
        and _equal_off_diagonal(units.transfer_latency, units.transfer_latency[ways])
        and _equal_off_diagonal(units.transfer_seconds_per_byte, units.transfer_seconds_per_byte[ways])
    )


def _equal_off_diagonal(first: FloatArray, second: FloatArray) -> bool:
    return bool(((first == second) | np.eye(len(first), dtype=np.bool_)).all())


def pooled(units: UnitGraph, pools: list[list[int]]) -> UnitGraph:
    """The units on pools of copies, each pool one device with the memory of all its members.

    Transfers inside a pool are free and a pool receives a tensor once, so the minimum over pools is a lower
    bound of the minimum over devices. A unit that is too large for one member is forbidden in the pool.
    Classes that are split into several pools must keep equal prices between these.
    """
    first = [pool[0] for pool in pools]
    op_seconds = units.op_seconds[:, first].copy()
    op_seconds[units.memory_bytes[:, None] > units.memory_capacity[first] * (1 + 1e-12)] = np.inf
    ways = np.ix_(first, first)
    sizes = np.array([len(pool) for pool in pools])
    return replace(
        units,
        op_seconds=op_seconds,
        memory_capacity=units.memory_capacity[first] * sizes,
        transfer_latency=units.transfer_latency[ways],
        transfer_seconds_per_byte=units.transfer_seconds_per_byte[ways],
        launch_seconds=units.launch_seconds[first],
        liveness=units.liveness if (sizes == 1).all() else None,
    )


def spread(units: UnitGraph, pools: list[list[int]], placed: IntArray) -> IntArray:
    """An assignment to devices from one to pools: each pool's members are filled one after the other.

    Units are taken in order; one that fits nowhere in its pool goes to the first member, overfull.
    """
    room = (units.memory_capacity * (1 + 1e-12)).tolist()
    device = np.empty(len(units), dtype=np.int32)
    filling = [0] * len(pools)
    for u, p in enumerate(placed.tolist()):
        size = float(units.packing_bytes[u])
        pool = pools[p]
        order = [*pool[filling[p] :], *pool[: filling[p]]]
        chosen = next((d for d in order if size <= room[d]), pool[0])
        filling[p] = max(filling[p], pool.index(chosen))
        room[chosen] -= size
        device[u] = chosen
    return device
