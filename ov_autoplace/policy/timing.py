"""When units could run: what tells a lane's busy hours from its idle ones before anything is placed.

Under the objective ``overlap`` two units compete for a lane only if they could run at the same time. Every
unit has an earliest start and a longest way to the end of the model (the ranks of Topcuoglu et al., 2002, on
the fastest device and without transfers), and the time between them is cut into windows: the loads of a
window's lanes are what a placement has to balance. The other objectives have one window, the whole request.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.problem.units import UnitGraph

__all__ = ["UNIT_FEATURES", "WINDOWS", "Timing", "timing_of"]

UNIT_FEATURES = ("start", "way_to_the_end", "slack", "position_sin", "position_cos")
"""Columns of :attr:`Timing.features`; the first three by the longest way through the graph."""

WINDOWS = 16


@dataclass(frozen=True, eq=False)
class Timing:
    """Times of N units.

    Attributes:
        features: ``float32[N, len(UNIT_FEATURES)]``.
        window_of: Window of each unit, dense, in the order of time, ``int64[N]``.
        width: Work on the fastest devices by the longest way: how many lanes could be busy on average.
    """

    features: NDArray[np.float32]
    window_of: NDArray[np.int64]
    width: float


def timing_of(
    units: UnitGraph,
    seconds: NDArray[np.float64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    objective: str,
) -> Timing:
    """Times under an objective; where it is not ``overlap``, a unit's time is its place in the order.

    Args:
        units: N units.
        seconds: Of each unit on its fastest device, ``float64[N]``.
        source: Producer of each edge, ``int64[E]``.
        target: Its consumer, ``int64[E]``.
        objective: Of the problem.
    """
    position = units.place / max(len(units), 1)
    if objective == "overlap":
        start, tail = _ways(units, seconds, source, target)
    else:
        start, tail = position, 1.0 - position
    longest = max(float((start + tail).max(initial=0.0)), 1e-30)
    start, tail = start / longest, tail / longest
    columns = (start, tail, 1.0 - start - tail, np.sin(2 * np.pi * position), np.cos(2 * np.pi * position))
    window = np.zeros(len(units), dtype=np.int64)
    width = 1.0
    if objective == "overlap":
        # The middle between the earliest and the latest time at which the unit can be half done.
        half = seconds / longest / 2
        middle = 0.5 * ((start + half) + (1.0 - tail + half))
        _, window = np.unique(
            (np.clip(middle, 0.0, 1.0 - 1e-9) * WINDOWS).astype(np.int64), return_inverse=True
        )
        width = float(seconds.sum()) / longest
    return Timing(np.stack(columns, axis=1).astype(np.float32), window.astype(np.int64), max(width, 1.0))


def _ways(
    units: UnitGraph, seconds: NDArray[np.float64], source: NDArray[np.int64], target: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Earliest start of each unit, and the longest way to the end with itself, ``float64[N]`` each."""
    place = units.place
    # Units of several groups may depend on each other both ways; then the order in which they run decides.
    forward = place[source] < place[target]
    source, target = source[forward], target[forward]
    order = np.argsort(place[source], kind="stable")
    pairs = list(zip(source[order].tolist(), target[order].tolist(), strict=True))
    own = seconds.tolist()
    start, tail = [0.0] * len(own), list(own)
    for u, v in pairs:
        ready = start[u] + own[u]
        if ready > start[v]:
            start[v] = ready
    for u, v in reversed(pairs):
        way = own[u] + tail[v]
        if way > tail[u]:
            tail[u] = way
    return np.array(start), np.array(tail)
