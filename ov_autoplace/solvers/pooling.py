"""Devices that are copies of one another: found, and taken together for bounds and for smaller searches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph

__all__ = ["copies_of", "pooled", "segmented", "without_copies"]

_BORDER = 0.2  # of a segment, on each side


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
    lanes = np.bincount(units.device_of, minlength=units.num_devices)[units.device_of[[first, second]]]
    share_memory = units.device_of[first] == units.device_of[second]
    return (
        bool(share_memory or (lanes == 1).all())
        and units.memory_capacity[first] == units.memory_capacity[second]
        and units.launch_seconds[first] == units.launch_seconds[second]
        and np.array_equal(units.op_seconds[:, first], units.op_seconds[:, second])
        and _equal_off_diagonal(units.transfer_latency, units.transfer_latency[ways])
        and _equal_off_diagonal(units.transfer_seconds_per_byte, units.transfer_seconds_per_byte[ways])
    )


def _equal_off_diagonal(first: FloatArray, second: FloatArray) -> bool:
    return bool(((first == second) | np.eye(len(first), dtype=np.bool_)).all())


def without_copies(problem: Problem) -> Problem:
    """The same problem, forbidden on all but the first device of each class of copies.

    HETERO runs one subgraph at a time, so where memory is not limited a copy brings nothing but transfers.
    """
    units = problem.units
    first = [members[0] for members in copies_of(units)]
    if len(first) == len(units.usable_devices):
        return problem
    allowed = problem.constraints.allowed & np.isin(np.arange(units.num_devices), first)
    return replace(problem, constraints=replace(problem.constraints, allowed=allowed))


def pooled(units: UnitGraph, pools: list[list[int]]) -> UnitGraph:
    """The units on pools of copies, each pool one device with the memory of all its members.

    Transfers inside a pool are free and a pool receives a tensor once, so the minimum over pools is a lower
    bound of the minimum over devices. A unit that is too large for one member is forbidden in the pool.
    Classes that are split into several pools must keep equal prices between these.
    """
    first = [pool[0] for pool in pools]
    op_seconds = units.op_seconds[:, first].copy()
    op_seconds[units.memory_bytes[:, None] > units.memory_capacity[first] * MEMORY_TOLERANCE] = np.inf
    ways = np.ix_(first, first)
    sizes = np.array([len(pool) for pool in pools])
    return replace(
        units,
        op_seconds=op_seconds,
        memory_capacity=units.memory_capacity[first] * sizes,
        transfer_latency=units.transfer_latency[ways],
        transfer_seconds_per_byte=units.transfer_seconds_per_byte[ways],
        launch_seconds=units.launch_seconds[first],
        device_of=np.arange(len(pools), dtype=np.int32),
        liveness=units.liveness if (sizes == 1).all() else None,
    )


def segmented(units: UnitGraph, pools: list[list[int]], placed: IntArray) -> BoolArray:
    """A small set of placements around one on pools, ``bool[U, D]``.

    Each pool's units are cut, in order, into as many segments of equal bytes as it has members. A unit may
    be on its segment's device, on the next one's where it lies near the border, and wherever memory is
    not limited.
    """
    may_run = np.isfinite(units.op_seconds)
    allowed = np.zeros_like(may_run)
    allowed[:, ~units.may_overflow] = True
    for p, pool in enumerate(pools):
        held = np.cumsum(np.where(placed == p, units.packing_bytes, 0.0)[units.order])
        position = np.empty(len(units))
        position[units.order] = held / max(float(held[-1]), 1.0) * len(pool)
        for offset in (-_BORDER, 0.0, _BORDER):
            segment = np.clip(np.ceil(position + offset) - 1, 0, len(pool) - 1).astype(np.int32)
            allowed[np.arange(len(units)), np.array(pool)[segment]] = True
    allowed &= may_run
    alone = ~allowed.any(axis=1)
    allowed[alone] = may_run[alone]
    return allowed
