"""The user's pins: which op was asked to run on which device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase, translate

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import ComputationGraph

__all__ = ["group_pins", "pinned_ops"]


def pinned_ops(graph: ComputationGraph, pins: Mapping[str, str]) -> IntArray:
    """Which pin decides over each op: position of the last pattern that matches, ``int32[N]``, -1 for none.

    Args:
        graph: The graph of N ops.
        pins: Device by pattern of friendly names (``fnmatch``, case sensitive).
    """
    pin_of = np.full(len(graph), -1, dtype=np.int32)
    for number, pattern in enumerate(pins):
        match = re.compile(translate(pattern)).match
        pin_of[[i for i, name in enumerate(graph.names) if match(name)]] = number
    return pin_of


def group_pins(
    graph: ComputationGraph, labels: IntArray, pin_of: IntArray, pins: Mapping[str, str]
) -> IntArray:
    """Pin of each group, ``int32[G]``: a number per device, -1 for none.

    An op that a pattern excepts from an earlier one, which matches it too, takes along what cannot be
    separated from it, as in ``{"*": "CPU", "conv1": "GPU"}`` the input that only ``conv1`` reads.

    Args:
        graph: The graph of N ops.
        labels: Group of each op, ``int32[N]``, for groups that cannot be taken apart.
        pin_of: Which pin decides over each op, ``int32[N]``.
        pins: Device by pattern.

    Raises:
        PlacementError: Two ops that cannot be separated are pinned to different devices.
    """
    patterns, devices = list(pins), list(pins.values())
    numbers = list(dict.fromkeys(devices))
    result = np.full(int(labels.max(initial=-1)) + 1, -1, dtype=np.int32)
    pinned = np.flatnonzero(pin_of >= 0)
    deciding: dict[int, list[int]] = {}  # the ops of a group over which the group's last pin decides
    for op in pinned[np.argsort(-pin_of[pinned], kind="stable")].tolist():
        ops, pin = deciding.setdefault(int(labels[op]), []), int(pin_of[op])
        other = ops[0] if ops else op
        device = devices[int(pin_of[other])]
        if pin == pin_of[other]:
            ops.append(op)
            result[labels[op]] = numbers.index(device)
        elif devices[pin] != device and not any(fnmatchcase(graph.names[o], patterns[pin]) for o in ops):
            first, second = sorted((op, other))
            raise PlacementError(
                f"{graph.names[first]!r} is pinned to {devices[int(pin_of[first])]} and "
                f"{graph.names[second]!r} to {devices[int(pin_of[second])]}, but the two cannot run on "
                "different devices; pin both to one device"
            )
    return result
