"""Timing compiled models in turns on a machine whose speed changes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, frozen_array
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.model_file import failing_on

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["FEWEST_RUNS", "MOST_RUNS", "SECONDS", "Mood", "mood_of", "time_in_turns"]

_log = logging.getLogger("ov_autoplace")

SECONDS = 0.3
"""Time to spend on running each compiled model."""
FEWEST_RUNS, MOST_RUNS = 5, 300
"""The fewest and most inferences of one measurement."""

_LONG = 0.02  # an inference that is its own warm-up
# Models are timed in turns, so that a slow spell of the machine hits them all. A shared processor goes back
# and forth between two speeds, one half the other, in tens of milliseconds: the shorter a round, the more
# often all of it falls into the same one.
_FEWEST_ROUNDS, _MOST_ROUNDS = 5, 60
_RUNS_IN_TURN = 2  # at least, where there are enough of them
# The machine is undisturbed in rounds that are not slower by more than this than the fastest fifth.
_FASTEST, _SAME = 0.2, 1.1


@dataclass(frozen=True, eq=False)
class Mood:
    """How slow a machine was in each of a number of rounds.

    A processor that is shared with others slows one thread down by other factors than two, and one device
    by others than the next. So what is measured while it is slow cannot be scaled to what it would be
    otherwise: such rounds do not count. What remains between the others is scaled away.

    Attributes:
        counts: Rounds in which the machine was undisturbed, ``bool[rounds]``.
        slowness: Relative to what is usual in those, ``float64[rounds]``.
    """

    counts: BoolArray
    slowness: FloatArray

    def samples(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Latencies of the rounds that count, from those of each round."""
        kept = [part for part, counts in zip(parts, self.counts, strict=True) if counts]
        return frozen_array(np.concatenate(kept), np.float64)

    def seconds(self, parts: Sequence[FloatArray]) -> float:
        """Median over the rounds that count of what was measured in each, without the machine's mood."""
        medians = np.array([np.median(part) for part in parts])
        return float(np.median((medians / self.slowness)[self.counts]))


def mood_of(turns: Sequence[Sequence[FloatArray]]) -> Mood:
    """Tell the machine's mood from what was run in every round, by the geometric mean of their medians.

    Args:
        turns: Latencies by round of each of some executables, at least one of them.
    """
    medians = np.array([[np.median(part) for part in parts] for parts in turns])
    relative = np.exp(np.log(medians).mean(axis=0))
    counts = relative <= _SAME * np.quantile(relative, _FASTEST)
    usual = np.median(medians[:, counts], axis=1, keepdims=True)
    slowness = np.exp(np.log(medians / usual).mean(axis=0))
    return Mood(frozen_array(counts, np.bool_), frozen_array(slowness, np.float64))


def time_in_turns(
    executables: Mapping[str, Executable],
    dispensable: Collection[str] = (),
    seconds: float = SECONDS,
) -> dict[str, list[FloatArray]]:
    """Latencies of each executable, by round; the machine is shared, so they take turns.

    Args:
        executables: What to run, by the name of its device.
        dispensable: Names of those that are left out of the result when they fail.
        seconds: To spend on running each, as far as the fewest and most inferences allow.

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
            runs[name] = int(np.clip(seconds / once, FEWEST_RUNS, MOST_RUNS))
            # Refilling the caches and waking the threads after another's turn is lost in a long inference.
            warmup[name] = int(once < _LONG)
    fewest = min(runs.values(), default=0)
    rounds = int(np.clip(fewest // _RUNS_IN_TURN, _FEWEST_ROUNDS, _MOST_ROUNDS))
    for _ in range(rounds):
        for name in list(running):
            samples = run(name, -(-runs[name] // rounds), warmup[name])
            if samples is not None:
                parts[name].append(samples)
    return {name: parts[name] for name in running}
