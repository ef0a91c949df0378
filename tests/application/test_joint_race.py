"""Who wins an application's race, where everybody does what a test says; nothing is compiled or timed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from played import application

from candidates import kinds
from ov_autoplace._base.budget import Budget
from ov_autoplace.application.candidates import Joint
from ov_autoplace.application.race import JointRace
from ov_autoplace.application.workload import Application
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.workload import Outcome, Span
from ov_autoplace.plan.decision import Load
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.joint import JointPlan, Part
from ov_autoplace.plan.plan import WholePlan
from scripted_session import NOISE

SPANS = (Span(0, 0, 0.0, 1e-3, 0),)
SHAKEN = np.tile([0.6, 1.5], 30)
"""Factors of somebody who is faster in one round and slower in the next."""


@dataclass
class Script:
    """What a plan does.

    Attributes:
        rate: Requests per second of each load, before the noise that all have.
        tail: Of its latencies all but one in a hundred are a millisecond; this is the longest, in seconds.
        noise: Other factors of its rates.
        fails: From which run on it fails: 0 = it cannot even be compiled.
    """

    rate: float | Sequence[float] = 100.0
    tail: float = 2e-3
    noise: np.ndarray = field(default_factory=lambda: NOISE)
    fails: int | None = None
    is_rival: bool = False
    is_reserved: bool = False


@dataclass
class ScriptedBench:
    """Compiles and runs whatever it has a script of."""

    application: Application
    scripts: Mapping[str, Script]
    compiled: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)

    def compile(self, plan: JointPlan, settings: object) -> ScriptedWorkload:
        if self.scripts[plan.name].fails == 0:
            raise ProfilingError("its core is not free")
        self.compiled.setdefault(plan.name, []).append(settings)
        return ScriptedWorkload(self, plan.name)

    def compile_seconds(self, settings: object) -> float:
        return 0.0

    def callers(self, plan: JointPlan, seconds: float, factor: float, seed: int) -> list[object]:
        return []


@dataclass
class ScriptedWorkload:
    bench: ScriptedBench
    name: str

    def run(self, callers: object, seconds: float, *, spans: bool = False) -> Outcome:
        script, loads = self.bench.scripts[self.name], len(self.bench.application.load)
        number = self.bench.runs[self.name] = self.bench.runs.get(self.name, 0) + 1
        if script.fails is not None and number >= script.fails:
            raise ProfilingError("an inference failed")
        rates = np.broadcast_to(np.asarray(script.rate, dtype=np.float64), loads)
        latencies = np.array([script.tail] + [1e-3] * 49)
        noise = script.noise[number % len(script.noise)]
        ones, shown = np.ones(loads), SPANS if spans else ()
        return Outcome(rates / noise, (latencies,) * loads, ones, ones, 1.0, shown)


def raced(given: Application | None = None, **scripts: Script) -> tuple[Verdict, JointRace]:
    """A race of plans by their names, the default first."""
    given = given or application()
    bench = ScriptedBench(given, scripts)
    field = [
        Joint(
            name,
            JointPlan(name, (Part("a", WholePlan("CPU"), callers=i + 1),)),
            settings=(),
            expected=(1e-3,),
            is_reserved=script.is_reserved,
            is_rival=script.is_rival,
        )
        for i, (name, script) in enumerate(scripts.items())
    ]
    race = JointRace(cast("Any", bench), Budget(20.0))
    return race.decide(field), race


def default(rate: float = 100.0, **more: Any) -> Script:
    return Script(rate, is_rival=True, **more)


rival = default


def finding(verdict: Verdict, of: str) -> Finding:
    """What was found of the winner beside another plan."""
    (found,) = (f for f in verdict.findings if f.kind is Kind.JOINT_RATE and of in str(f))
    return found


def dropped(verdict: Verdict) -> dict[str, str]:
    return {candidate.name: candidate.dropped for candidate in verdict.candidates}


def test_ours_wins_where_it_is_faster_than_the_best_of_theirs() -> None:
    verdict, race = raced(default=default(), theirs=rival(110), ours=Script(132))
    assert verdict.winner.name == "ours"
    assert kinds(verdict) == [Kind.JOINT_RATE] * 2
    assert finding(verdict, "default").numbers["rate"] == pytest.approx(1.32)
    assert finding(verdict, "theirs").numbers["rate"] == pytest.approx(1.2)
    assert verdict.winner.median(Load.APPLICATION) == pytest.approx(1 / 132, rel=0.1)
    assert race.results[cast("Joint", verdict.winner)].rate(0) == pytest.approx(132, rel=0.1)


@pytest.mark.parametrize(
    "ours",
    [Script(111), Script(130, noise=SHAKEN), Script(90)],
    ids=["hardly faster", "by chance", "slower"],
)
def test_the_best_of_theirs_is_kept_where_ours_is_not_proven_to_be_better(ours: Script) -> None:
    verdict, _ = raced(default=default(), theirs=rival(110), ours=ours)
    assert verdict.winner.name == "theirs"
    assert finding(verdict, "default").numbers["rate"] == pytest.approx(1.1)


def test_the_default_is_kept_where_nobody_is_better() -> None:
    verdict, _ = raced(default=default(), theirs=rival(99), ours=Script(100.5))
    assert verdict.winner.name == "default"
    assert kinds(verdict)[0] is Kind.JOINT_KEPT


def test_what_one_load_gains_has_to_be_more_than_what_another_loses() -> None:
    scripts = {"default": default(), "fair": Script((150, 100)), "unfair": Script((300, 40))}
    assert raced(**scripts)[0].winner.name == "fair"
    given = application(load=[{"start": "a", "priority": 9}, {"start": "b", "priority": 1}])
    scripts["unfair"] = Script((300, 45))  # 3^0.9 0.45^0.1 = 2.5
    assert raced(given, **scripts)[0].winner.name == "unfair"


@pytest.mark.parametrize(
    ("tail", "winner"),
    [(1.5e-3, "ours"), (1.9e-3, "theirs"), (3e-3, "theirs")],
    ids=["clearly", "hardly", "larger"],
)
@pytest.mark.parametrize("rate", [110.0, 109.9])
def test_among_equals_the_clearly_smaller_99th_percentile_wins(rate: float, tail: float, winner: str) -> None:
    verdict, _ = raced(default=default(), theirs=rival(110, tail=2e-3), ours=Script(rate, tail=tail))
    assert verdict.winner.name == winner


@pytest.mark.parametrize(("rate", "winner"), [(111.0, "shared"), (140.0, "apart")])
def test_cores_are_reserved_only_where_that_is_clearly_faster(rate: float, winner: str) -> None:
    """Where all are, OpenVINO compiles nothing more in the process."""
    apart = rival(rate, tail=1.1e-3, is_reserved=True)
    verdict, _ = raced(default=default(), shared=rival(110, tail=2e-3), apart=apart)
    assert verdict.winner.name == winner


def test_a_smaller_99th_percentile_makes_up_for_no_rate() -> None:
    verdict, _ = raced(default=default(), theirs=rival(110), ours=Script(104, tail=1.1e-3))
    assert verdict.winner.name == "theirs"


def test_who_is_much_slower_at_first_sight_is_not_raced_but_the_default_is() -> None:
    verdict, race = raced(default=default(20), theirs=rival(100), slow=Script(70), ours=Script(150))
    assert verdict.winner.name == "ours"
    assert finding(verdict, "default").numbers["rate"] == pytest.approx(7.5)
    said = dropped(verdict)
    assert said["slow"]
    assert not said["ours"]
    runs = cast("ScriptedBench", race.bench).runs
    assert runs["slow"] == 1
    assert runs["ours"] > runs["slow"]


@pytest.mark.parametrize("fails", [0, 1, 4], ids=["when compiled", "at first", "later"])
def test_a_plan_that_fails_is_dropped_with_its_reason_and_the_others_go_on(fails: int) -> None:
    scripts = {"default": default(), "theirs": rival(110), "ours": Script(120)}
    verdict, _ = raced(**scripts, broken=Script(150, fails=fails))
    assert verdict.winner.name == "ours"
    said = dropped(verdict)
    assert ("its core is not free" if fails == 0 else "an inference failed") in said["broken"]
    assert not said["ours"]
    assert [candidate.name for candidate in verdict.candidates] == [*scripts, "broken"]


def test_a_default_that_fails_is_no_reason_to_give_up() -> None:
    for fails in (0, 1, 4):
        verdict, _ = raced(default=default(fails=fails), theirs=rival(110), ours=Script(120))
        assert verdict.winner.name == "ours"


@pytest.mark.parametrize("fails", [0, 1, 4], ids=["when compiled", "at first", "later"])
def test_where_all_fail_there_is_one_error(fails: int) -> None:
    with pytest.raises(ProfilingError) as failure:
        raced(default=default(fails=fails), ours=Script(120, fails=fails))
    assert "\n" not in str(failure.value)


def test_inferences_are_kept_to_look_at_and_a_failure_there_spoils_nothing() -> None:
    verdict, race = raced(default=default(), ours=Script(120))
    own = cast("Joint", verdict.winner)
    race.watch([own])
    assert race.results[own].spans == SPANS
    cast("ScriptedBench", race.bench).scripts["ours"].fails = 1
    race.results[own].spans = ()
    race.watch([own])
    assert race.results[own].spans == ()


def test_who_reserves_cores_is_compiled_by_itself() -> None:
    """Without settings: those are compiled in the process that all others share."""
    _, race = raced(default=default(), ours=Script(is_reserved=True))
    compiled = cast("ScriptedBench", race.bench).compiled
    assert compiled["default"][0] == ()
    assert compiled["ours"][0] is None


def test_plans_that_are_close_are_compiled_anew_apart_and_the_others_are_not() -> None:
    """Luck in memory of one compilation decides nothing."""
    scripts = {"default": default(50), "theirs": rival(110), "ours": Script(115)}
    _, race = raced(**scripts)
    compiled = cast("ScriptedBench", race.bench).compiled
    assert {name: len(times) for name, times in compiled.items()} == {"default": 1, "theirs": 2, "ours": 2}
    assert compiled["ours"][1] is None


@dataclass
class Queue:
    """Keeps deadlines up to some factor on the rates; beyond that requests are twice too late."""

    keeps: float

    def run(self, callers: float, seconds: float, *, spans: bool = False) -> Outcome:
        latency = 5e-3 if callers <= self.keeps else 2e-2
        return Outcome(np.array([100.0]), (np.full(20, latency),), np.ones(1), np.ones(1), 1.0)


@dataclass
class QueueBench:
    """Compiles plans that keep deadlines up to their factors."""

    application: Application
    queues: Mapping[str, Queue]
    requests: list[float] = field(default_factory=list)

    def compile(self, plan: JointPlan, settings: object) -> Queue:
        return self.queues[plan.name]

    def callers(self, plan: JointPlan, seconds: float, factor: float, seed: int) -> float:
        self.requests.append(seconds * factor * self.application.load[0].rate)
        return factor


def joints_of(names: Iterable[str], likely: float) -> list[Joint]:
    """The first of them is the default, and all but ``ours`` are set by hand."""
    return [
        Joint(
            name,
            JointPlan(name, (Part("a", WholePlan("CPU", properties={"X": name})),)),
            is_rival=name != "ours",
            likely_headroom=likely,
            predicted_seconds=1 / likely,
        )
        for name in names
    ]


def headroom_decided(
    likely: float, *, rate: float = 100, budget: float = 30.0, **keeps: float
) -> tuple[Verdict, JointRace]:
    """A race of plans, the first of which is the default and all but ``ours`` set by hand."""
    given = application(("a",), load=[{"start": "a", "rate": rate, "deadline_ms": 10}])
    queues = {name: Queue(factor) for name, factor in keeps.items()}
    field = joints_of(queues, likely)
    race = JointRace(cast("Any", QueueBench(given, queues)), Budget(budget))
    return race.decide(field), race


@pytest.mark.parametrize("likely", [0.5, 8.0, 100.0])
def test_who_keeps_deadlines_at_the_highest_rates_wins(likely: float) -> None:
    verdict, race = headroom_decided(likely, default=2.0, theirs=5.0, ours=8.0)
    assert verdict.winner.name == "ours"
    assert kinds(verdict)[0] is Kind.HEADROOM
    found = verdict.findings[0].numbers["headroom"]
    assert 8.0 / 1.08 <= found <= 8.0  # the smallest step upwards was too much
    levels = {joint.name: result.headroom for joint, result in race.results.items()}
    assert 0 < levels["default"] <= 2.0
    assert levels["theirs"] <= 5.0


def test_theirs_is_kept_where_ours_keeps_no_higher_rate() -> None:
    verdict, _ = headroom_decided(4.0, default=3.0, theirs=5.0, ours=5.0)
    assert verdict.winner.name == "theirs"


def test_a_level_that_was_kept_by_luck_does_not_win() -> None:
    """Ours keeps 5.2 once; later it is late at what theirs keeps."""
    given = application(("a",), load=[{"start": "a", "rate": 100, "deadline_ms": 10}])
    queues = {name: Queue(factor) for name, factor in {"default": 1.0, "theirs": 5.0, "ours": 5.2}.items()}
    field = joints_of(queues, likely=4.0)
    race = JointRace(cast("Any", QueueBench(given, queues)), Budget(30.0))
    settled = race._closest

    def unlucky(*arguments: Any) -> dict[Joint, float]:
        queues["ours"].keeps = 4.0
        return settled(*arguments)

    race._closest = unlucky  # type: ignore[method-assign]
    assert race.decide(field).winner.name == "theirs"


@pytest.mark.parametrize(("budget", "requests"), [(60.0, 19.2), (4.0, 8.0)])
def test_low_rates_are_run_for_fewer_requests_where_time_is_short(budget: float, requests: float) -> None:
    """0.96 times 20 requests per second: as many as a second has, or eight."""
    verdict, race = headroom_decided(1.6, rate=20, budget=budget, default=1.0, theirs=1.0, ours=2.0)
    assert verdict.winner.name == "ours"
    looks = cast("Any", race.bench).requests[:3]
    assert looks == pytest.approx([requests] * 3)
