"""Devices one after the other: where many requests are in flight, each has its part of every one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import FloatArray, IntArray, rows_of
from ov_autoplace.problem.units import UnitGraph

__all__ = ["pipelines"]

# Sets of devices double with each; beyond, those count that take the least for everything.
_MOST_DEVICES = 8
_FEW_DEVICES = 4
_MOST_ENDS, _MOST_ENDS_OF_MANY = 256, 64  # of stages, up to so few devices and beyond

# By set and last device of pipelines to each end: where the stage before ends, and whose it is, ``int64[n]``.
_Before: TypeAlias = dict[tuple[frozenset[int], int], tuple[NDArray[np.int64], NDArray[np.int64]]]


def pipelines(units: UnitGraph) -> list[IntArray]:
    """Placements in which each of a few devices has one stretch of the units in the order in which they run.

    Every pair of devices with every end of the first stage, and for every larger set of devices the stages
    whose slowest is fastest. On more than four devices, and in large graphs, stages end at some units alone.
    """
    devices = units.usable_devices
    if len(devices) < 2:
        return []
    if len(devices) > _MOST_DEVICES:
        alone = _possible_seconds(units).sum(axis=0)[devices]
        devices = sorted(devices[i] for i in np.argsort(alone, kind="stable")[:_MOST_DEVICES])
    most = _MOST_ENDS if len(devices) <= _FEW_DEVICES else _MOST_ENDS_OF_MANY
    ends = np.unique(np.linspace(1, len(units) - 1, min(most, max(len(units) - 1, 0))).astype(np.int64))
    found = []
    for pair in permutations(devices, 2):
        found += [_in_stages(units, pair, [end]) for end in ends.tolist()]
    if len(devices) > 2:
        found += [_in_stages(units, *stages) for stages in _balanced(units, devices, ends)]
    return [device for device in found if not units.has_memory_limits or units.fits(device)]


def _in_stages(units: UnitGraph, devices: Sequence[int], ends: Sequence[int]) -> IntArray:
    """Each device's stage, the last one to the end; ``ends`` has one less than ``devices``."""
    device: IntArray = np.full(len(units), devices[-1], dtype=np.int32)
    for stage, first, end in zip(devices, [0, *ends], ends, strict=False):
        device[units.order[first:end]] = stage
    wrong = np.flatnonzero(np.isinf(units.op_seconds[np.arange(len(units)), device]))
    if len(wrong):
        # What cannot run there goes to the fastest of the other stages, or wherever it can.
        seconds = units.op_seconds[wrong]
        stages = np.array(devices)
        inside = stages[seconds[:, stages].argmin(axis=1)]
        can = np.isfinite(seconds[:, stages]).any(axis=1)
        device[wrong] = np.where(can, inside, seconds.argmin(axis=1))
    return device


def _balanced(
    units: UnitGraph, devices: list[int], ends: NDArray[np.int64]
) -> list[tuple[list[int], list[int]]]:
    """For every set of three and more devices, the order and the ends of stages whose slowest is fastest.

    Dynamic programming over sets of devices, the last of them, and where its stage ends. A stage takes its
    units' time, a launch, and the transfers across its beginning, as if all came from the stage before.
    """
    ends = np.append(ends, len(units))
    work, tensors, tensor_bytes = _until(units, ends)
    is_before = np.arange(len(ends)) < np.arange(len(ends))[:, None]
    # By set and last device, the slowest stage of all units to each end, ``float64[n]``.
    slowest = {(frozenset([d]), d): work[:, d] + units.launch_seconds[d] for d in devices}
    before: _Before = {}
    for size in range(1, len(devices)):
        for chosen, d in product(combinations(devices, size), devices):
            if d in chosen:
                continue
            own = work[:, d, None] - work[:, d] + units.launch_seconds[d]
            ways = []
            for e in chosen:
                rate = units.transfer_seconds_per_byte[e, d]
                received = units.transfer_latency[e, d] * tensors + rate * tensor_bytes
                until = np.maximum(slowest[frozenset(chosen), e], own + received)
                ways.append(np.where(is_before, until, np.inf))
            both = np.stack(ways, axis=2).reshape(len(ends), -1)
            best = both.argmin(axis=1)
            key = frozenset(chosen) | {d}, d
            slowest[key] = both[np.arange(len(ends)), best]
            before[key] = best // size, np.array(chosen)[best % size]
    found = []
    for size in range(3, len(devices) + 1):
        for every in map(frozenset, combinations(devices, size)):
            until_end = {d: float(slowest[every, d][-1]) for d in every}
            last = min(until_end, key=until_end.__getitem__)
            if np.isfinite(until_end[last]):
                found.append(_followed(before, every, last, ends))
    return found


def _followed(
    before: _Before, chosen: frozenset[int], last: int, ends: NDArray[np.int64]
) -> tuple[list[int], list[int]]:
    """The stages that lead to the last one's end at the end, first to last."""
    order, i = [last], len(ends) - 1
    cuts: list[int] = []
    while len(chosen) > 1:
        end, device = before[chosen, order[0]]
        chosen, i, first = chosen - {order[0]}, int(end[i]), int(device[i])
        order.insert(0, first)
        cuts.insert(0, int(ends[i]))
    return order, cuts


def _until(units: UnitGraph, ends: NDArray[np.int64]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Seconds of the units before each end, ``float64[n, D]``, and what crosses it: tensors, their bytes."""
    work = np.cumsum(_possible_seconds(units)[units.order], axis=0)[ends - 1]
    last_reader = np.zeros(len(units.producer), dtype=np.int64)
    np.maximum.at(last_reader, rows_of(units.offsets), units.place[units.consumers])
    # A tensor crosses the ends after its producer and not after its last reader.
    first = np.searchsorted(ends, units.place[units.producer] + 1)
    after = np.maximum(first, np.searchsorted(ends, last_reader, side="right"))

    def crossing(amount: FloatArray) -> FloatArray:
        change = np.bincount(first, amount, len(ends) + 1) - np.bincount(after, amount, len(ends) + 1)
        return np.cumsum(change)[:-1]

    return work, crossing(np.ones(len(first))), crossing(units.tensor_bytes)


def _possible_seconds(units: UnitGraph) -> FloatArray:
    """Seconds of each unit on each device, or on the fastest one that can run it, ``float64[U, D]``."""
    seconds = units.op_seconds
    return np.where(np.isfinite(seconds), seconds, seconds.min(axis=1, keepdims=True))
