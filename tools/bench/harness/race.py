"""Plans of one model, run in turns: whatever times models against models in the suite does it here.

The package's measuring session compiles and races, so that a benchmark measures as a decision does. Every
plan is compiled apart, even where AUTOPLACE's answer is a device that takes part by itself: so none is equal
to another by definition. The same model compiled again for the same device may be 15 % faster or slower,
because its weights and buffers lie elsewhere in memory, so short models are compiled several times. A sample
of a round is the mean over a plan's copies: what a user gets is one compilation with luck of its own, and the
mean is what he may expect.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

import ov_autoplace
import zoo
from harness.environment import PAIRS, core_of
from ov_autoplace._base.statistics import Interval, paired_ratio
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.measure.isolation.interface import members_of
from ov_autoplace.measure.loads import Timing, run_in_turns
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Load
from ov_autoplace.plan.plan import Plan, PoolPlan

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Compiled


_ROUNDS = 500  # at most
_FEWEST_ROUNDS = 15  # fewer say little, so slow models get them in up to so many seconds
_LONGEST = 30.0
_BELOW = ((1e-3, 5), (5e-3, 3))  # seconds of an inference, and copies of a model that takes less
_LARGE_BYTES = 100e6  # of constants: every copy holds its own
# Compiling more copies may take so many times the seconds of the race, so that a run's time is bounded.
_COMPILING = 5.0


@dataclass(frozen=True, eq=False)
class Race:
    """What was measured of one model.

    Attributes:
        samples: By load and plan, seconds per request in the same rounds, means over its copies,
            ``float64[R]``.
        copies: Median seconds of each copy of a plan under the first load.
        failures: Why a plan is missing.
    """

    samples: Mapping[Load, Mapping[str, np.ndarray]]
    copies: Mapping[str, Sequence[float]]
    failures: Mapping[str, str]

    def ratio(self, who: str, rival: str, load: Load) -> Interval:
        """Median of the paired ratios of seconds, with its 95 % interval."""
        return paired_ratio(self.samples[load][who], self.samples[load][rival])

    def best(self, among: Sequence[str], load: Load) -> str:
        """Of some plans, the one with the lowest median under a load; empty where none was measured."""
        ran = {who: samples for who, samples in self.samples[load].items() if who in among}
        return min(ran, key=lambda who: float(np.median(ran[who])), default="")

    @property
    def runs(self) -> str:
        """Rounds, and how often plans were compiled and run in each, as a cell."""
        counts = sorted({len(medians) for medians in self.copies.values()})
        rounds = max(len(samples) for samples in next(iter(self.samples.values())).values())
        return f"{rounds} x {'-'.join(map(str, dict.fromkeys((counts[0], counts[-1]))))}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON; six digits are more than any clock here is good for, and a third of the file."""

        def short(seconds: Sequence[float] | np.ndarray) -> list[float]:
            return [float(f"{value:.6g}") for value in seconds]

        return {
            "samples": {
                load.value: {who: short(samples) for who, samples in by_plan.items()}
                for load, by_plan in self.samples.items()
            },
            "copies": {who: short(medians) for who, medians in self.copies.items()},
            "failures": dict(self.failures),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Race:
        """The opposite of :meth:`to_dict`."""
        samples = {
            Load(load): {who: np.array(values) for who, values in by_plan.items()}
            for load, by_plan in fields["samples"].items()
        }
        return cls(samples, fields["copies"], fields["failures"])


@dataclass(frozen=True, eq=False)
class _Copy:
    """A compiled plan: what its callers get, and what a queue runs on."""

    called: Compiled
    queued: Compiled

    @classmethod
    def of(cls, session: ProfilingSession, plan: Plan) -> _Copy:
        called = plan.compile(session)
        if not isinstance(plan, PoolPlan) or not plan.members:
            return cls(called, called)
        return cls(called, session.compile_pool(PoolPlan(plan.title, plan.base)))

    def seconds(self) -> float:
        """What an inference takes, about."""
        model, *_ = members_of(self.called)
        return float(np.median(model.run(3, warmup=2)))


def session_of(core: ov.Core, model: ov.Model, devices: Sequence[str], seed: int) -> ProfilingSession:
    """A session in this process, one of the suite's children: what several compiled cannot be raced."""
    return ProfilingSession(core, model, devices, seed=seed, isolation=False)


def race(
    session: ProfilingSession,
    plans: Mapping[str, Plan],
    seconds: float,
    seed: int,
    given: Sequence[Load] = (Load.STEADY,),
    copies: int | None = None,
) -> Race:
    """Compile plans of a session's model, and run all copies of all of them in turns.

    Args:
        session: See :func:`session_of`.
        plans: By name.
        seconds: For each load; it becomes longer where so few rounds fit that medians say little.
        seed: Of the order of compiling, and of that in each round.
        given: How requests arrive, one after the other.
        copies: How often everybody is compiled; ``None`` = as often as suits a model as short as this one.
    """
    failures: dict[str, str] = {}
    compiled = _compiled(session, plans, seconds, seed, copies, failures)
    measured = {load: _in_turns(session, compiled, load, seconds, seed, failures) for load in given}
    samples = {
        load: {who: rounds.mean(axis=0) for who, rounds in by_plan.items()}
        for load, by_plan in measured.items()
    }
    medians = {who: np.median(rounds, axis=1).tolist() for who, rounds in measured[given[0]].items()}
    return Race(samples, medians, failures)


def _compiled(
    session: ProfilingSession,
    plans: Mapping[str, Plan],
    seconds: float,
    seed: int,
    copies: int | None,
    failures: dict[str, str],
) -> dict[str, list[_Copy]]:
    """Everybody once, and again as often as suits a model that is as short as the first copies are."""
    random = np.random.default_rng((seed, len(session.model.get_ops())))  # not the same order in every model
    found: dict[str, list[_Copy]] = {who: [] for who in plans}
    compiling: dict[str, float] = {}
    inference: dict[str, float] = {}
    # Where a copy lies in memory depends on those before it, so nobody is always the first.
    wanted = dict.fromkeys(plans, copies or 1)
    for number in range(copies or _BELOW[0][1]):
        chosen = [who for who in found if wanted[who] > number]
        for who in random.permutation(chosen).tolist():
            start = time.perf_counter()
            try:
                copy = _Copy.of(session, plans[who])
                inference[who] = copy.seconds()
            except (AutoplaceError, RuntimeError) as cause:
                failures[who] = str(cause)
                del found[who]
                continue
            found[who].append(copy)
            compiling.setdefault(who, time.perf_counter() - start)
            session.forget()
        if not number and not copies and found:
            allowed = _COMPILING * seconds / len(found)
            usual = _usual_copies(session.model, min(inference[who] for who in found))
            # Means over few copies are no worse than those over many, only less certain.
            wanted = {who: min(usual, 1 + int(allowed / max(compiling[who], 1e-9))) for who in found}
    return found


def _usual_copies(model: ov.Model, seconds: float) -> int:
    constants = [op for op in model.get_ops() if op.get_type_name() == "Constant"]
    if sum(op.output(0).get_tensor().size for op in constants) > _LARGE_BYTES:
        return 1
    return next((copies for below, copies in _BELOW if seconds < below), 1)


def _in_turns(
    session: ProfilingSession,
    compiled: Mapping[str, Sequence[_Copy]],
    load: Load,
    seconds: float,
    seed: int,
    failures: dict[str, str],
) -> dict[str, np.ndarray]:
    """Seconds by plan, ``float64[copies, R]``: the fewest rounds, then as many as the time allows."""
    running = [(who, copy) for who, copies in compiled.items() for copy in copies if who not in failures]
    parts: dict[tuple[str, _Copy], list[np.ndarray]] = {entrant: [] for entrant in running}
    for budget, rounds in ((_LONGEST, _FEWEST_ROUNDS), (seconds, _ROUNDS)):
        # Nobody leaves for being slow before the last round: the tables show everybody.
        options = {"seed": seed, "min_rounds": rounds, "max_rounds": rounds, "divided": load is Load.STEADY}
        copies = [copy.queued if load is Load.QUEUED else copy.called for _, copy in running]
        turns = run_in_turns(session, copies, load, budget, **options)
        for entrant, timing in zip(running, turns.timings, strict=True):
            parts[entrant].append(timing.samples)
            if len(timing.samples) < turns.rounds:
                failures[entrant[0]] = timing.dropped
        running = [entrant for entrant in running if entrant[0] not in failures]
    return {
        who: np.array([np.concatenate(parts[entrant]) for entrant in running if entrant[0] == who])
        for who in dict(running)
    }


def sustained(session: ProfilingSession, plans: Mapping[str, Plan], times: int) -> dict[str, Timing]:
    """Compile everybody once, and run all in turns over whole periods of this process's quota, repeatedly."""
    compiled = [plan.compile(session) for plan in plans.values()]
    races = [run_in_turns(session, compiled, Load.SUSTAINED, _LONGEST).timings for _ in range(times)]
    return {
        who: Timing(
            np.concatenate([timing.samples for timing in timings]),
            latencies=tuple(turn for timing in timings for turn in timing.latencies),
        )
        for who, *timings in zip(plans, *races, strict=True)
    }


def know_transfers(pair: str) -> None:
    """Measure what crossing between the devices of a pair costs; it is kept, so that no model pays for it."""
    ov_autoplace.place(zoo.build("inception_v3"), PAIRS[pair], "TUNE", core_of(pair), time_budget_ms=20_000)
