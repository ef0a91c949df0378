"""The user's pins: which op was asked to run on which device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate

import numpy as np

from ov_autoplace._arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import ComputationGraph

__all__ = ["group_pins", "pinned_ops"]


def pinned_ops(graph: ComputationGraph, pins: Mapping[str, str]) -> tuple[IntArray, tuple[str, ...]]:
    """Pin of each op.

    Args:
        graph: The graph of N ops.
        pins: Device by pattern of friendly names (``fnmatch``, case sensitive); the first pattern that
            matches an op decides.

    Returns:
        Index of the pinned device of each op, ``int32[N]``, -1 for none; and the devices.
    """
    devices = tuple(dict.fromkeys(pins.values()))
    pin_of = np.full(len(graph), -1, dtype=np.int32)
    patterns = [(re.compile(translate(pattern)), devices.index(device)) for pattern, device in pins.items()]
    if patterns:
        for i, name in enumerate(graph.names):
            pin_of[i] = next((device for pattern, device in patterns if pattern.match(name)), -1)
    return pin_of, devices


def group_pins(
    graph: ComputationGraph, labels: IntArray, pin_of: IntArray, devices: tuple[str, ...]
) -> IntArray:
    """Pin of each group, ``int32[G]``, -1 for none.

    Args:
        graph: The graph of N ops.
        labels: Group of each op, ``int32[N]``, for groups that cannot be taken apart.
        pin_of: Pin of each op, ``int32[N]``.
        devices: What ``pin_of`` indexes.

    Raises:
        PlacementError: Two ops that cannot be separated are pinned to different devices.
    """
    result = np.full(int(labels.max(initial=-1)) + 1, -1, dtype=np.int32)
    holder: dict[int, int] = {}
    for op in np.flatnonzero(pin_of >= 0).tolist():
        group, device = int(labels[op]), int(pin_of[op])
        if result[group] not in (-1, device):
            other = holder[group]
            raise PlacementError(
                f"{graph.names[other]!r} is pinned to {devices[result[group]]} and {graph.names[op]!r} to "
                f"{devices[device]}, but the two cannot run on different devices; pin both to one device"
            )
        result[group] = device
        holder.setdefault(group, op)
    return result
