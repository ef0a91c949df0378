"""Timing compiled models in turns on a machine whose speed changes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.session import failing_on

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["FEWEST_RUNS", "MOST_RUNS", "SECONDS", "drift", "time_in_turns", "without_drift"]

_log = logging.getLogger("ov_autoplace")

SECONDS = 0.3
"""Time to spend on running each compiled model."""
FEWEST_RUNS, MOST_RUNS = 5, 300
"""The fewest and most inferences of one measurement."""

_LONG = 0.02  # an inference that is its own warm-up
# Models are timed in turns, so that a slow spell of the machine hits them all. On shared machines such spells
# last some tenths of a second: many short turns tell more than few long ones.
_FEWEST_ROUNDS, _MOST_ROUNDS = 5, 25


def time_in_turns(
    executables: Mapping[str, Executable], dispensable: Collection[str] = ()
) -> dict[str, list[FloatArray]]:
    """Latencies of each executable, by round; the machine is shared, so they take turns.

    Args:
        executables: What to run, by the name of its device.
        dispensable: Names of those that are left out of the result when they fail.

    Raises:
        ProfilingError: Another one fails.
    """
    running = dict(executables)
    parts: dict[str, list[FloatArray]] = {name: [] for name in executables}
    runs, warmup = {}, {}

    def run(name: str, count: int, cold: int) -> FloatArray | None:
        try:
            with failing_on(name):
                return np.asarray(executables[name].run(count, warmup=cold))
        except ProfilingError as cause:
            if name not in dispensable:
                raise
            _log.info("a placement that was to show the cost of crossings is left out: %s", cause)
            del running[name]
            return None

    for name in executables:
        first = run(name, 2, 1)
        if first is not None:
            once = float(first.min())
            runs[name] = int(np.clip(SECONDS / once, FEWEST_RUNS, MOST_RUNS))
            # Refilling the caches and waking the threads after another's turn is lost in a long inference.
            warmup[name] = int(once < _LONG)
    rounds = int(np.clip(min(runs.values(), default=0), _FEWEST_ROUNDS, _MOST_ROUNDS))
    for _ in range(rounds):
        for name in list(running):
            samples = run(name, -(-runs[name] // rounds), warmup[name])
            if samples is not None:
                parts[name].append(samples)
    return {name: parts[name] for name in running}


def drift(alone: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """How slow the machine was in each round, ``float64[rounds]``: 1 where as in the median of all rounds.

    The clock of a shared or a hot processor falls to half for seconds at a time. Single devices are timed in
    every round, so they tell (by their geometric mean) how much of a latency is the machine's mood.

    Args:
        alone: Latencies of each single device by round, at least one.
    """
    rounds = np.array([[np.median(part) for part in parts] for parts in alone])
    whole = np.array([[np.median(np.concatenate(parts))] for parts in alone])
    return np.asarray(np.exp(np.log(rounds / whole).mean(axis=0)), dtype=np.float64)


def without_drift(parts: Sequence[FloatArray], mood: FloatArray | None) -> float:
    """Median over rounds of the latency, each round as if the machine had been as in the median round.

    Args:
        parts: Latencies by round.
        mood: What :func:`drift` gave; ``None`` leaves every round as it is.
    """
    medians = np.array([np.median(part) for part in parts])
    return float(np.median(medians if mood is None else medians / mood))
