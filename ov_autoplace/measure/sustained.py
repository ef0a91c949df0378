"""Running models under a quota of processor time, in turns, each over whole periods of the quota.

The kernel lets threads run until the time of a period is used up, and then stops them until the next one. A
sample that is shorter than a period sees the threads either running or stopped, and its median sees none of
the stops. So each turn lasts for whole periods. One more before it is run and thrown away, in which the turn
before may have left no time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.devices.quota import Quota
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.model_file import reported_failure

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["Turn", "race_seconds", "run_over_periods", "turn_seconds"]

_TURNS, _LEAST_SECONDS = 3, 0.2
# Of all turns; where periods or inferences are so long that one turn of each model takes more, that is it.
_MOST_SECONDS = 4.0


@dataclass(frozen=True, eq=False)
class Turn:
    """What a model did in whole periods.

    Attributes:
        seconds: Per inference: the length of the turn over the inferences in it, which need not be whole.
        latencies: Of them, and of the last one as a whole, ``float64[n]`` in seconds.
    """

    seconds: float
    latencies: FloatArray


def race_seconds(quota: Quota, models: int, turns: int = _TURNS) -> float:
    """How long so many turns of so many models take, where an inference is shorter than a turn."""
    return models * turns * (turn_seconds(quota) + quota.period_seconds)


def run_over_periods(
    executables: Sequence[Executable], quota: Quota, budget_seconds: float
) -> list[list[Turn] | ProfilingError]:
    """Run models one after another without a gap, each in several turns.

    Args:
        executables: Compiled models.
        quota: That holds for the process which runs them.
        budget_seconds: The turns are fewer where this is too short for them; each model has one at least.

    Returns:
        Of each executable, what it took, or why it failed.
    """
    found: list[list[Turn] | ProfilingError] = [[] for _ in executables]
    limit, start = min(budget_seconds, _MOST_SECONDS), time.perf_counter()
    for turn in range(_TURNS):
        spent = time.perf_counter() - start
        if turn and spent * (turn + 1) / turn > limit:
            break
        # Nobody comes after the same one always.
        order = range(len(executables))
        for i in order if turn % 2 == 0 else reversed(order):
            parts = found[i]
            if isinstance(parts, ProfilingError):
                continue
            try:
                with reported_failure("it fails under the quota"):
                    _run_for(executables[i], quota.period_seconds)
                    parts.append(_run_for(executables[i], turn_seconds(quota)))
            except ProfilingError as cause:
                found[i] = cause
    return found


def turn_seconds(quota: Quota) -> float:
    """How long a turn is."""
    return quota.whole_periods(_LEAST_SECONDS)


def _run_for(executable: Executable, seconds: float) -> Turn:
    parts = [np.asarray(executable.run(1, warmup=0))]
    spent, count = float(parts[0].sum()), 1
    while spent < seconds:
        # What is left by the mean so far, which grows when the threads are stopped: by halves.
        runs = max(1, int(0.5 * (seconds - spent) * count / spent))
        parts.append(np.asarray(executable.run(runs, warmup=0)))
        spent, count = spent + float(parts[-1].sum()), count + runs
    latencies = np.concatenate(parts)
    ends = np.cumsum(latencies)
    last = min(int(np.searchsorted(ends, seconds)), len(ends) - 1)
    count_in_turn = last + 1 - (ends[last] - seconds) / latencies[last]
    return Turn(seconds / float(count_in_turn), frozen_array(latencies[: last + 1], np.float64))
