"""Timing compiled models in turns, as programs call them: the only code that times any against another.

A latency is of one inference at a time, back to back, after idle gaps, or over whole periods of a quota. A
rate is of closed loops: so many requests, each of which begins anew as soon as it has finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.isolation.interface import Compiled, Executable, Pool
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.model_file import reported_failure
from ov_autoplace.measure.sustained import run_over_periods
from ov_autoplace.plan.decision import Load

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import RaceResult
    from ov_autoplace.measure.session import ProfilingSession

__all__ = ["PAUSE_SECONDS", "Timing", "Turns", "run_in_turns", "sample_seconds", "workloads_in_turns"]

PAUSE_SECONDS = 3e-3
"""How long the machine idles before each inference where models are timed with pauses."""

# Threads that others' samples let fall asleep wake up within the first of several inferences, so where one
# runs on a part of a CPU's threads or on lanes, samples of all are longer.
_DIVIDED_SECONDS = 5e-3
_TAIL = 99
_RATE_SECONDS = 0.015  # how long a closed loop runs in each round


@dataclass(frozen=True, eq=False)
class Timing:
    """What one of those that were timed took.

    Attributes:
        samples: Seconds per inference or request, one of each round, ``float64[n]``.
        dropped: Why it left, or an empty string; begins with ``failed`` where it was not for being slower.
        latencies: Of all inferences where a sample is the mean over whole periods of a quota, by turn.
    """

    samples: FloatArray
    dropped: str = ""
    latencies: tuple[FloatArray, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether it left for another reason than being slower."""
        return self.dropped.startswith("failed")

    @property
    def tail_seconds(self) -> float:
        """The 99th percentile of the latencies."""
        return float(np.percentile(np.concatenate(self.latencies), _TAIL))


@dataclass(frozen=True, eq=False)
class Turns:
    """What all took, in the same rounds.

    Attributes:
        timings: Of each, in their order.
        rounds: How many.
        seconds: Of all.
        best: Index of the fastest that stayed.
    """

    timings: tuple[Timing, ...]
    rounds: int
    seconds: float
    best: int


def workloads_in_turns(
    samplers: Sequence[Callable[[], float]], budget_seconds: float, **options: Any
) -> Turns:
    """Run workloads in turns, as :func:`run_in_turns` does with compiled models.

    Args:
        samplers: Run one each for a while, and say what counts, in seconds; one that cannot be run any more
            says it is not a number.
        budget_seconds: When to stop.
        **options: Further keyword arguments of ``_core.race_samplers``.

    Raises:
        ProfilingError: None of them can be run.
    """
    with reported_failure("no candidate can be run"):
        return _turns(_core.race_samplers(list(samplers), budget_seconds, **options))


def run_in_turns(
    session: ProfilingSession,
    compiled: Sequence[Compiled],
    load: Load,
    budget_seconds: float,
    *,
    divided: bool = False,
    **options: Any,
) -> Turns:
    """Run compiled models in turns under a load, until one is left or the budget ends.

    Args:
        session: Has compiled them.
        compiled: What to compare; pools under the loads of many requests, and nothing else there.
        load: How they are called.
        budget_seconds: When to stop.
        divided: One of them runs on a part of a CPU's threads or on several parts at once.
        **options: Further keyword arguments of ``_core.Profiler.race`` or ``_core.race_loads``.

    Raises:
        ProfilingError: None of them can be run.
    """
    if load in (Load.WAITING, Load.QUEUED):
        options.setdefault("sample_seconds", sample_seconds())
        profiler = session.profiler
        race: Any = profiler.race_loads if isinstance(profiler, IsolatedProfiler) else _core.race_loads
        pools = [one for one in compiled if isinstance(one, Pool)]
        with reported_failure("no candidate can be run"):
            return _turns(race([_loop(pool, load) for pool in pools], budget_seconds, **options))
    models = [one for one in compiled if not isinstance(one, Pool)]
    if load is Load.SUSTAINED:
        return _sustained(models, budget_seconds)
    if divided:
        options.setdefault("min_sample_seconds", _DIVIDED_SECONDS)
    if load is Load.PAUSED:
        options["pause_seconds"] = PAUSE_SECONDS
    return _turns(session.race(models, budget_seconds, **options))


def sample_seconds() -> float:
    """How long a closed loop runs in each round: whole periods of a quota, which stops it within each."""
    quota = Cores.of_this_process().quota
    return _RATE_SECONDS if quota is None else quota.whole_periods(_RATE_SECONDS)


def _loop(pool: Pool, load: Load) -> tuple[list[Executable], int, bool]:
    """What ``_core.race_loads`` runs."""
    return [pool.members[turn] for turn in pool.turns], pool.requests, load is Load.QUEUED


def _turns(result: RaceResult) -> Turns:
    timings = tuple(Timing(entry.samples, entry.dropped) for entry in result.entries)
    return Turns(timings, result.rounds, result.seconds, result.best)


def _sustained(models: Sequence[Executable], budget_seconds: float) -> Turns:
    """What all took over whole periods of the quota of this process."""
    quota, start = Cores.of_this_process().quota, time.perf_counter()
    if quota is None:
        raise ProfilingError("this process runs under no quota of processor time")
    timings = []
    for outcome in run_over_periods(models, quota, budget_seconds):
        if isinstance(outcome, ProfilingError):
            timings.append(Timing(np.empty(0), f"failed: {outcome}"))
        else:
            means = frozen_array([turn.seconds for turn in outcome], np.float64)
            timings.append(Timing(means, latencies=tuple(turn.latencies for turn in outcome)))
    seconds = [float(np.median(t.samples)) if len(t.samples) else np.inf for t in timings]
    return Turns(
        tuple(timings),
        max((len(t.samples) for t in timings), default=0),
        time.perf_counter() - start,
        int(np.argmin(seconds)),
    )
