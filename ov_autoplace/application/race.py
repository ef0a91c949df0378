"""The race of an application: plans run all of it in turns, and who wins.

Where any load has a rate, the *headroom* decides: the largest factor on all rates with which every deadline
is kept. Otherwise the rates of the closed loops decide, as their weighted geometric mean; of plans that are
about as fast, the one with the lowest 99th percentile of latencies wins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import CONVINCING_ROUNDS, MINIMAL_GAIN
from ov_autoplace.application.bench import Bench
from ov_autoplace.application.candidates import Joint, fairness
from ov_autoplace.application.workload import Application, Demand
from ov_autoplace.decide.verdict import Verdict, is_faster, paired, were_disturbed
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.measure.loads import workloads_in_turns
from ov_autoplace.measure.workload import Outcome, Span, Workload
from ov_autoplace.plan.decision import Load
from ov_autoplace.plan.findings import Finding, Kind

__all__ = ["JointRace", "Result"]

_log = logging.getLogger("ov_autoplace")

_FEWEST_FINALISTS, _MOST_FINALISTS = 4, 7
_RACE_SECONDS, _MOST_ROUNDS = 3.0, 30
_SAMPLE_SECONDS, _LONGEST_SECONDS, _REQUESTS = 0.06, 1.0, 2
_MUCH_WORSE = 1.3  # than the best in a first look
_HOPELESS = 2.0  # times what the best is predicted to take: not even looked at
_CLOSE, _MOST_CLOSE = 1.1, 3  # than the best, and how many of those are compiled anew
_ALIKE = MINIMAL_GAIN / 2  # in rate, so that the 99th percentile decides
_RESERVED_GAIN = 0.05  # least gain in rate that reserved cores are worth
_CLEARLY = 0.9  # of a 99th percentile, that it decides between plans of one rate
_TAIL = 99.0
_OPEN_REQUESTS, _FEWEST_REQUESTS, _SHORTEST_OPEN = 25, 8, 0.15
_OPEN_RUNS = 24  # of a decision: first looks, and levels with their second tries
_WATCHED, _SHORTEST_WATCHED, _LONGEST_WATCHED = 6, 0.01, 0.2  # inferences of the slowest; seconds
_PERIODS = 10  # of a rate without a deadline: what begins has to end within so many
_MUCH_TIGHTER = 3.0  # than the best, beyond which nobody is raced
_LOST = 1e6  # of their time, where requests did not even begin
_FIRST, _STEPS = 0.6, (1.5, 1.2, 1.08)  # of the predicted headroom, and how much more is tried next
_FEWEST_LEVELS, _MOST_LEVELS = 6, 16
_LEVELS_APART, _DUELS = 1.2, 3  # plans whose levels are closer than this run so often more at the highest one


@dataclass(eq=False)
class Result:
    """What a plan did with the whole application.

    Attributes:
        outcomes: Of each time that it ran under the load as it is asked for.
        headroom: The largest factor on all rates with which deadlines were kept; 0 = not known.
        spans: Of one short time, to look at.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    headroom: float = 0.0
    spans: tuple[Span, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether anything is."""
        return bool(self.outcomes) or self.headroom > 0

    def rate(self, load: int) -> float:
        """Requests per second of a load, by its number."""
        return float(np.median([outcome.rates[load] for outcome in self.outcomes]))

    def latencies(self, load: int) -> FloatArray:
        """Seconds of all requests of a load, ``float64[n]``."""
        parts = [outcome.latencies[load] for outcome in self.outcomes]
        return frozen_array(np.concatenate(parts), np.float64)

    def percentile(self, load: int, percentile: float = _TAIL) -> float:
        """Of the latencies of a load, in seconds."""
        return float(np.quantile(self.latencies(load), percentile / 100, method="higher"))

    def late(self, load: int, deadline: float) -> float:
        """Share of the requests of a load that took longer than a deadline."""
        return float(np.mean(self.latencies(load) > deadline))

    @property
    def cores(self) -> float:
        """How many were busy."""
        return float(np.median([outcome.cores for outcome in self.outcomes]))


class JointRace:
    """Runs plans of an application in turns.

    Args:
        bench: Compiles them.
        budget: The time that all may take.
        seed: Of the order in each round and of arrivals at random.

    Attributes:
        results: What each plan did that was run.
    """

    def __init__(self, bench: Bench, budget: Budget, seed: int = 0) -> None:
        self.bench, self.budget, self.seed = bench, budget, seed
        self.results: dict[Joint, Result] = {}
        self._workloads: dict[Joint, Workload] = {}
        self._failures: dict[Joint, str] = {}
        self._longest = _LONGEST_SECONDS  # that rates are run, but for the fewest requests

    @property
    def application(self) -> Application:
        """What is run."""
        return self.bench.application

    def rounds(self, joints: Sequence[Joint], count: int, seconds: float) -> None:
        """Run plans in turns so many times, whoever is slower, and keep what they did."""
        for joint in joints:
            self._require(joint)
            self.results[joint] = Result()
        for turn in range(count):
            for joint in joints if turn % 2 == 0 else reversed(joints):
                self.results[joint].outcomes.append(self.run(joint, seconds))

    def watch(self, joints: Sequence[Joint]) -> None:
        """Run plans once more for a short time, and keep every inference, to look at.

        There are none where a model fails: everything is decided by then.
        """
        for joint in joints:
            if joint in self._workloads and joint not in self._failures:
                seconds = min(max(_WATCHED * max(joint.expected), _SHORTEST_WATCHED), _LONGEST_WATCHED)
                with suppress(ProfilingError):
                    self.results[joint].spans = self.run(joint, seconds, spans=True).spans

    def headrooms(self, joints: Sequence[Joint]) -> dict[Joint, float]:
        """The largest factor on all rates that each of some plans keeps, each for itself.

        Raises:
            ProfilingError: One of them cannot be run.
        """
        found: dict[Joint, float] = {}
        for joint in joints:
            self._require(joint)
            found |= self._levels([joint], _FIRST * joint.likely_headroom)
        return found

    def decide(self, field: Sequence[Joint]) -> Verdict:
        """Race plans, the best of OpenVINO's own settings among them.

        Raises:
            ProfilingError: None of them can be run.
        """
        ready = [joint for joint in self._promising(field) if self._compiled(joint)]
        if not ready:
            raise ProfilingError(f"no plan can be run: {field[0].dropped}")
        return self._by_headroom(ready, field) if self.application.is_open else self._by_rate(ready, field)

    def _promising(self, field: Sequence[Joint]) -> list[Joint]:
        """The default, and whoever is not predicted to be hopeless."""
        least = min(joint.expected_seconds for joint in field)
        found = []
        for joint in field:
            if joint is field[0] or not joint.expected_seconds > _HOPELESS * least:
                found.append(joint)
            else:
                joint.dropped = "predicted to be much slower"
        return found

    def _require(self, joint: Joint) -> None:
        """Compile a plan where that was not done yet; one that cannot be is an error."""
        if joint not in self._workloads and not self._compiled(joint):
            raise ProfilingError(f"{joint.name}: {joint.dropped}")

    def _compiled(self, joint: Joint) -> bool:
        try:
            settings = None if joint.is_reserved else joint.settings
            self._workloads[joint] = self.bench.compile(joint.joint_plan, settings)
        except (ProfilingError, PlacementError) as cause:
            joint.dropped = f"cannot be run: {cause}"
            return False
        return True

    def run(self, joint: Joint, seconds: float, factor: float = 1.0, *, spans: bool = False) -> Outcome:
        """Run the whole application once.

        Raises:
            ProfilingError: A model fails.
        """
        self.seed += 1
        callers = self.bench.callers(joint.joint_plan, seconds, factor, self.seed)
        return self._workloads[joint].run(callers, seconds, spans=spans)

    def _sample(self, joint: Joint, seconds: float) -> float:
        """What counts of closed loops, not a number where a model fails."""
        try:
            outcome = self.run(joint, seconds)
        except ProfilingError as cause:
            self._failures[joint] = str(cause)
            return float("nan")
        self.results.setdefault(joint, Result()).outcomes.append(outcome)
        return fairness(self.application, _rates(self.application, outcome))

    def _by_rate(self, ready: Sequence[Joint], field: Sequence[Joint]) -> Verdict:
        seconds = self._closed_seconds(ready)
        looks = {joint: self._sample(joint, seconds) for joint in ready}
        finalists = _finalists(looks, _MUCH_WORSE, self._affordable(CONVINCING_ROUNDS * seconds))
        if not finalists:
            raise ProfilingError(f"no plan can be run: {next(iter(self._failures.values()))}")
        self.results.update({joint: Result() for joint in finalists})
        samples = self._race(finalists, seconds)
        again = self._compiled_anew(samples, seconds)
        if len(again) > 1:
            more = self._race(again, seconds)
            rounds, later = (min(len(own[joint]) for joint in again) for own in (samples, more))
            for joint in again:
                samples[joint] = np.concatenate([samples[joint][:rounds], more[joint][:later]])
        for joint, look in looks.items():
            if joint in samples:
                joint.remember(Load.APPLICATION, frozen_array(samples[joint], np.float64))
            else:
                joint.dropped = self._failures.get(joint, "") or "slower at first sight"
                joint.remember(Load.APPLICATION, frozen_array([look], np.float64))
        return self._fastest([j for j in finalists if not j.dropped.startswith("failed")], field)

    def _race(self, joints: Sequence[Joint], seconds: float) -> dict[Joint, FloatArray]:
        """What plans take in turns, in rounds enough to prove something; those that fail or lose say so."""
        once = len(joints) * seconds
        turns = workloads_in_turns(
            [partial(self._sample, joint, seconds) for joint in joints],
            max(self.budget.free, CONVINCING_ROUNDS * once),
            min_rounds=CONVINCING_ROUNDS,
            max_rounds=max(CONVINCING_ROUNDS, min(int(_RACE_SECONDS / once), _MOST_ROUNDS)),
            margin=_ALIKE,  # whose tail may decide
            seed=self.seed,
            names=[joint.name for joint in joints],
        )
        for joint, timing in zip(joints, turns.timings, strict=True):
            joint.dropped = f"failed: {self._failures[joint]}" if joint in self._failures else timing.dropped
        return {joint: timing.samples for joint, timing in zip(joints, turns.timings, strict=True)}

    def _compiled_anew(self, samples: Mapping[Joint, FloatArray], seconds: float) -> list[Joint]:
        """The best plans, where several are close, compiled once more in processes of their own.

        Where models happen to lie in memory makes a plan faster or slower by some percent for as long as they
        are compiled, which no number of rounds shows.
        """
        # Who was dropped as slower may have had bad luck.
        able = {joint: own for joint, own in samples.items() if joint not in self._failures}
        medians = {joint: float(np.median(own)) for joint, own in able.items()}
        limit = _CLOSE * min(medians.values(), default=0.0)
        close = sorted((j for j in medians if medians[j] <= limit), key=medians.__getitem__)[:_MOST_CLOSE]
        compiling = sum(self.bench.compile_seconds(joint.settings) for joint in close)
        if not self.budget.allows(compiling + CONVINCING_ROUNDS * len(close) * seconds):
            return []
        found = []
        for joint in close if len(close) > 1 else ():
            before = self._workloads[joint]
            try:
                self._workloads[joint] = self.bench.compile(joint.joint_plan, None)
                self.run(joint, seconds)
            except (ProfilingError, PlacementError) as cause:
                _log.info("%s is not compiled anew: %s", joint.name, cause)
                self._workloads[joint] = before
            else:
                found.append(joint)
        return found

    def _affordable(self, seconds: float) -> int:
        """How many plans there is time for, where each takes so long."""
        return min(max(int(self.budget.free / seconds), _FEWEST_FINALISTS), _MOST_FINALISTS)

    def _closed_seconds(self, ready: Sequence[Joint]) -> float:
        """How long a sample is: some requests of the slowest load, and whole periods of a quota."""
        slowest = max(max(joint.expected, default=0.0) for joint in ready)
        seconds = min(max(_SAMPLE_SECONDS, _REQUESTS * slowest), _LONGEST_SECONDS)
        quota = Cores.of_this_process().quota
        return seconds if quota is None else quota.whole_periods(seconds)

    def _fastest(self, ran: Sequence[Joint], field: Sequence[Joint]) -> Verdict:
        """Who wins by rate, then by 99th percentile, then by cores."""
        best = min(ran, key=lambda joint: joint.median(Load.APPLICATION))
        rival = min(
            (joint for joint in ran if joint.is_rival), key=lambda j: j.median(Load.APPLICATION), default=None
        )
        if rival is not None and best is not rival:
            ratio = paired(best.on(Load.APPLICATION), rival.on(Load.APPLICATION))
            if ratio is None or not is_faster(ratio):
                best = rival
        if best.is_reserved:
            best = self._without_reservation(best, ran)
        alike = [joint for joint in ran if joint is best or self._is_as_fast(joint, best)]
        winner = min(alike, key=self._tail)
        if self._tail(winner) > _CLEARLY * self._tail(best):
            winner = best
        default = field[0]
        disturbed = were_disturbed(joint.on(Load.APPLICATION) for joint in (winner, default))
        return Verdict(winner, self._findings(winner, default, rival), list(field), disturbed)

    def _without_reservation(self, best: Joint, ran: Sequence[Joint]) -> Joint:
        """The best plan that reserves no cores, unless the one that does is clearly faster.

        Where all cores are reserved, OpenVINO refuses every model that the process compiles later.
        """
        others = [joint for joint in ran if not joint.is_reserved]
        other = min(others, key=lambda joint: joint.median(Load.APPLICATION), default=best)
        ratio = paired(best.on(Load.APPLICATION), other.on(Load.APPLICATION))
        return best if ratio is not None and is_faster(ratio, _RESERVED_GAIN) else other

    def _is_as_fast(self, joint: Joint, best: Joint) -> bool:
        ratio = paired(joint.on(Load.APPLICATION), best.on(Load.APPLICATION))
        alike = ratio is not None and ratio.median <= 1 + _ALIKE and not joint.dropped
        return alike and (best.is_reserved or not joint.is_reserved)

    def _tail(self, joint: Joint) -> float:
        """Geometric mean over the loads of the 99th percentiles."""
        result = self.results[joint]
        tails = [result.percentile(load) for load in range(len(self.application.load))]
        return float(np.exp(np.mean(np.log(tails))))

    def _findings(self, winner: Joint, default: Joint, rival: Joint | None) -> tuple[Finding, ...]:
        found = []
        for other in dict.fromkeys((default, rival)):
            if other is None or other is winner or other not in self.results:
                continue
            ratio = paired(other.on(Load.APPLICATION), winner.on(Load.APPLICATION))
            if ratio is None:
                continue
            numbers = {"rate": ratio.median, "low": ratio.low, "high": ratio.high}
            tail = self._tail(winner) / self._tail(other)
            found.append(Finding.of(Kind.JOINT_RATE, winner.name, other.name, tail=tail, **numbers))
        if winner is default or not found:
            found.insert(0, Finding.of(Kind.JOINT_KEPT, winner.name))
        return tuple(found)

    def _by_headroom(self, ready: Sequence[Joint], field: Sequence[Joint]) -> Verdict:
        first = _FIRST * max(joint.likely_headroom for joint in ready)
        self._longest = self.budget.free / _OPEN_RUNS
        looks = {joint: self._tightness(joint, first) for joint in ready}
        each = len(_STEPS) * self._open_seconds(first)
        finalists = _finalists(looks, _MUCH_TIGHTER, self._affordable(each))
        if not finalists:
            raise ProfilingError(f"no plan can be run: {next(iter(self._failures.values()))}")
        for joint in ready:
            self.results[joint] = Result()
            if joint not in finalists:
                joint.dropped = self._failures.get(joint, "") or "later than others at first sight"
        levels = self._levels(finalists, first, [joint for joint in finalists if looks[joint] <= 1])
        if levels.get(field[0]) == 0:  # what the default keeps is always said
            levels |= self._levels([field[0]], first / _STEPS[0])
        for joint, level in levels.items():
            self.results[joint].headroom = level
        return self._roomiest(levels, field)

    def _levels(
        self, finalists: Sequence[Joint], factor: float, passed: list[Joint] | None = None
    ) -> dict[Joint, float]:
        """The largest factor on the rates that each plan keeps, as far as it decides who keeps most.

        All go up together, in smaller and smaller steps; who does not keep a level that somebody keeps is
        left behind.

        Args:
            finalists: The plans.
            factor: To begin with.
            passed: Who keeps that, where it is known.
        """
        levels = dict.fromkeys(finalists, 0.0)
        alive, kept, step = list(finalists), 0.0, 0
        for level in range(_MOST_LEVELS):
            if level or passed is None:
                passed = [joint for joint in alive if self._keeps(joint, factor)]
            levels.update(dict.fromkeys(passed, factor))
            alive = [joint for joint in alive if joint not in self._failures]
            if passed:
                alive, kept = passed, factor
            elif kept:
                step += 1
            elif not alive:
                break
            needed = len(alive) * self._open_seconds(factor)
            if step == len(_STEPS) or (level >= _FEWEST_LEVELS and not self.budget.allows(needed)):
                break
            factor = kept * _STEPS[step] if kept else factor / _STEPS[0] ** 2
        return levels

    def _tightness(self, joint: Joint, factor: float) -> float:
        """How much of their time requests take at a factor on the rates, infinite where a model fails."""
        try:
            outcome = self.run(joint, self._open_seconds(factor), factor)
        except ProfilingError as cause:
            self._failures[joint] = joint.dropped = f"failed: {cause}"
            return float("inf")
        found = tightness(self.application.load, outcome, factor)
        return min(found, _LOST)

    def _keeps(self, joint: Joint, factor: float) -> bool:
        """Whether a plan keeps all deadlines, in one of two tries: other work may have spoilt the first."""
        return self._tightness(joint, factor) <= 1 or self._tightness(joint, factor) <= 1

    def _open_seconds(self, factor: float) -> float:
        """How long rates are run: some requests of the slowest, and whole periods of a quota."""
        slowest = factor * min(demand.rate for demand in self.application.load if demand.is_open)
        wanted = max(min(_OPEN_REQUESTS / slowest, self._longest), _FEWEST_REQUESTS / slowest)
        seconds = min(max(wanted, _SHORTEST_OPEN), _LONGEST_SECONDS)
        quota = Cores.of_this_process().quota
        return seconds if quota is None else quota.whole_periods(seconds)

    def _roomiest(self, levels: dict[Joint, float], field: Sequence[Joint]) -> Verdict:
        """Who wins by headroom, with what it and its rivals do at the rates that are asked for."""
        ran = [joint for joint in levels if joint not in self._failures]
        if not ran:
            raise ProfilingError(f"no plan can be run: {next(iter(self._failures.values()))}")
        default, close = field[0], self._closest(levels, ran)

        def rank(joint: Joint) -> tuple[float, float]:
            return close.get(joint, float("inf")), -levels[joint]

        rival = min((joint for joint in ran if joint.is_rival), key=rank, default=None)
        best = min(ran, key=rank)
        if rival in close and close[best] >= (1 - MINIMAL_GAIN) * close[rival]:
            best = rival
        shown = [joint for joint in dict.fromkeys((best, rival, default)) if joint in ran]
        for joint in shown:
            if joint is not None:
                with suppress(ProfilingError):  # it ran at other rates, so the plan stands
                    self.results[joint].outcomes.append(self.run(joint, self._open_seconds(1.0)))
        found = [Finding.of(Kind.HEADROOM, best.name, headroom=levels[best])]
        for other in shown[1:]:
            if other is not None and levels[other]:
                numbers = {"headroom": levels[other], "rate": levels[best] / levels[other]}
                found.append(Finding.of(Kind.HEADROOM_BESIDE, other.name, **numbers))
        return Verdict(best, tuple(found), list(field))

    def _closest(self, levels: Mapping[Joint, float], ran: Sequence[Joint]) -> dict[Joint, float]:
        """How tight it is for the plans whose levels are close to the highest, there and in turns.

        A single late request decides a level; the median of some runs tells more.
        """
        most = max(levels[joint] for joint in ran)
        close = sorted((j for j in ran if _LEVELS_APART * levels[j] >= most > 0), key=lambda j: -levels[j])
        firsts = [next((joint for joint in close if joint.is_rival == kind), None) for kind in (True, False)]
        kept = [joint for joint in dict.fromkeys([*firsts, *close]) if joint is not None][:_MOST_CLOSE]
        self._longest = _LONGEST_SECONDS
        found: dict[Joint, list[float]] = {joint: [] for joint in kept}
        for turn in range(_DUELS if len(kept) > 1 else 0):
            for joint in kept if turn % 2 == 0 else reversed(kept):
                found[joint].append(self._tightness(joint, most))
        return {joint: float(np.median(tries)) if tries else 0.0 for joint, tries in found.items()}


def tightness(load: Sequence[Demand], outcome: Outcome, factor: float = 1.0) -> float:
    """How much of their time requests take, 1 where they are just finished in it, the worst of the loads.

    A load with a deadline has that; one with a rate alone has to be finished within some of its periods.
    """
    found = [0.0]
    for demand, latencies in zip(load, outcome.latencies, strict=True):
        deadline = demand.deadline_seconds
        if deadline is None and demand.is_open:
            deadline = _PERIODS / (factor * demand.rate)
        if deadline is not None:
            share = demand.percentile / 100
            found.append(float(np.quantile(latencies, share, method="higher")) / deadline)
    return max(found)


def _rates(application: Application, outcome: Outcome) -> dict[str, float]:
    return {d.start: rate for d, rate in zip(application.load, outcome.rates.tolist(), strict=True)}


def _finalists(looks: dict[Joint, float], much_worse: float, most: int) -> list[Joint]:
    """The best of ours and of what people set by hand, the default, and as many more as there is time for.

    Args:
        looks: What each took once; infinite or not a number where it failed.
        much_worse: Than the best, beyond which nobody is raced but those three.
        most: How many may be raced.
    """
    able = {joint: look for joint, look in looks.items() if np.isfinite(look)}
    order = sorted(able, key=able.__getitem__)
    firsts = [next((joint for joint in order if joint.is_rival == kind), None) for kind in (True, False)]
    kept = [joint for joint in (*firsts, next(iter(able), None)) if joint is not None]
    near = [joint for joint in order if able[joint] <= much_worse * able[order[0]]]
    kept = list(dict.fromkeys([*kept, *near]))[: max(most, len(set(kept)))]
    return [joint for joint in able if joint in kept]
