"""An answer is timed by the same loads and judged by the same rule by which it was chosen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

from candidates import FOUND, on_groups, race_of
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.decide.comparison import Comparison
from ov_autoplace.decide.confirmation import confirm
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import ProfilingError
from ov_autoplace.plan.decision import Candidate, Decision, Load
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import ModelPlan, SplitPlan, WholePlan
from ov_autoplace.plan.planning import lane_plan
from random_tables import random_table
from scripted_session import NOISE, ScriptedSession

TABLE = replace(random_table(np.random.default_rng(5), 6, 1), wiring=None, memory_capacity=np.array([np.inf]))
LANES = with_lanes(TABLE, TABLE.devices[0], 2)
HALVES = np.arange(len(LANES), dtype=np.int32) % 2
PLAN = lane_plan(LANES, HALVES, [Lane.of(TABLE.devices[0], {})] * 2)


def model() -> ov.Model:
    x = opset.parameter([1, 4], np.float32, name="x")
    return ov.Model([opset.result(opset.relu(x, name="relu"), name="y")], [x], "small")


NAMES = [op.get_friendly_name() for op in model().get_ops()]


class ScriptedOutputs:
    """Some candidates compute wrong outputs."""

    def __init__(self, *wrong: str) -> None:
        self.wrong = wrong
        self.ways: dict[str, str] = {}

    def note(self, name: str, executable: SimpleNamespace, way: str) -> None:
        self.ways[name] = way

    def mark(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            candidate.is_wrong = self.is_wrong(candidate.name)

    def is_wrong(self, name: str) -> bool:
        return name in self.wrong

    def difference(self, name: str) -> None:
        return None


class Beside(ScriptedSession):
    """An answer takes what it is told of a device's time, back to back and after idle gaps."""

    def __init__(self, steady: float, paused: float = 1.0, rounds: int = len(NOISE)) -> None:
        super().__init__(
            {"answer": steady, "device": 1.0},
            paused={"answer": paused, "device": 1.0},
            name_of=lambda plan: "device" if plan.is_default else "answer",
        )
        self.makes = {"CPU": "a CPU", "XCPU": "a CPU"}
        self.model = model()
        self.runs: dict[str, Callable[..., np.ndarray]] = {}
        self.first_rounds = rounds

    def mended(self) -> None:
        return None

    def compile_whole(self, plan: ModelPlan) -> SimpleNamespace:
        compiled = super().compile_whole(plan)
        compiled.run = self.runs.get(compiled.name)
        return compiled

    def compare_outputs(self, *_: object) -> ScriptedOutputs:
        return ScriptedOutputs()

    def race(self, *asked: Any, **how: Any) -> SimpleNamespace:
        self.noise = NOISE[: len(NOISE) if self.races else self.first_rounds]
        result = super().race(*asked, **how)
        result.seconds = self.budgets[-1]
        return result


def load_of(session: ScriptedSession) -> list[dict[str, float]]:
    """How long samples were, and idle gaps before inferences, in each race."""
    return [
        {
            "min_sample_seconds": load.get("min_sample_seconds", 1e-3),
            "pause_seconds": load.get("pause_seconds", 0.0),
        }
        for load in session.loads
    ]


def told(
    monkeypatch: pytest.MonkeyPatch,
    session: Beside,
    devices: tuple[str, ...] = ("CPU",),
    options: Mapping[str, Any] | None = None,
    plan: ModelPlan | None = None,
) -> bool | None:
    """What a confirmation says; by default of the first device."""
    monkeypatch.setattr(Machine, "open", lambda *_: nullcontext(session))
    machine = Machine(ov.Core(), devices, PlacerOptions.from_arguments(options or {}))
    return confirm(machine, model(), plan or WholePlan(devices[0])).holds


MIX = SplitPlan.of(dict.fromkeys(NAMES[:-1], "XCPU") | {NAMES[-1]: "CPU"})
NARROW = WholePlan("CPU", Width(1))


@pytest.mark.parametrize(
    ("steady", "paused", "options", "holds"),
    [
        (0.6, 0.9, {}, True),
        (0.6, 1.1, {}, False),
        (0.6, 1.0, {}, False),
        (0.6, 1.1, {"arrivals": "STEADY"}, True),
        (0.99, 0.5, {}, False),
        (1.3, 1.3, {"executor": "OVERLAP"}, True),
    ],
)
def test_lanes_hold_that_would_win_again_also_after_idle_gaps(monkeypatch, steady, paused, options, holds):
    session = Beside(steady, paused)
    assert told(monkeypatch, session, options=options, plan=PLAN) is holds


@pytest.mark.parametrize(
    ("steady", "paused", "options", "holds"),
    [
        (1.0, 0.9, {}, True),
        (1.0, 0.97, {}, False),
        (1.0, 0.9, {"arrivals": "STEADY"}, False),
        (1.04, 0.5, {}, False),
    ],
)
def test_a_width_that_is_as_fast_holds_by_what_it_gains_after_pauses(
    monkeypatch, steady, paused, options, holds
):
    assert told(monkeypatch, Beside(steady, paused), options=options, plan=NARROW) is holds


@pytest.mark.parametrize(("ratio", "holds"), [(0.9, True), (0.99, False), (1.1, False)])
def test_what_had_to_win_has_to_win_again(monkeypatch, ratio, holds):
    assert told(monkeypatch, Beside(ratio), plan=NARROW) is holds
    assert told(monkeypatch, Beside(ratio), ("XCPU", "CPU"), plan=MIX) is holds


def test_a_device_holds_beside_one_that_is_as_fast(monkeypatch):
    told_threads = {"properties": {"DEVICE_PROPERTIES": {"CPU": {"INFERENCE_NUM_THREADS": 1}}}}
    assert told(monkeypatch, Beside(1.0), ("CPU", "XCPU"), told_threads) is True


@pytest.mark.parametrize(("ratio", "holds"), [(0.9, False), (0.99, True), (1.4, True)])
def test_a_device_holds_unless_it_wins_on_fewer_threads(monkeypatch, two_cores, ratio, holds):
    session = Beside(ratio)
    assert told(monkeypatch, session) is holds
    assert load_of(session) == [{"min_sample_seconds": 5e-3, "pause_seconds": 0.0}]


def test_a_device_is_not_run_again_where_nothing_else_is_allowed(monkeypatch, two_cores):
    session = Beside(0.5)
    assert told(monkeypatch, session, options={"properties": {"NUM_STREAMS": "1"}}) is True
    assert session.loads == []


@pytest.mark.parametrize("answer", ["width", "device"])
@pytest.mark.parametrize("quota", [None, Quota(1.0, 0.1)])
def test_under_a_quota_whole_periods_decide(monkeypatch, two_cores, answer, quota):
    """A device that is faster until it is stopped beside one thread of it that never is."""
    monkeypatch.setattr(Cores, "quota", quota)
    session, stopped = Beside(1.6), itertools.cycle([2.3e-3] * 21 + [53e-3])
    session.runs = {
        "device": lambda runs, warmup=1: np.array([next(stopped) for _ in range(runs)]),
        "answer": lambda runs, warmup=1: np.full(runs, 3.8e-3),
    }
    narrow_wins = quota is not None
    holds = narrow_wins if answer == "width" else not narrow_wins
    assert told(monkeypatch, session, plan=NARROW if answer == "width" else None) is holds


def test_bench_shows_whole_periods_of_a_quota(monkeypatch, two_cores):
    monkeypatch.setattr(Cores, "quota", Quota(1.0, 0.15))
    session = Beside(1.0)
    alone = Candidate("CPU", WholePlan("CPU"), 1e-4, times={Load.STEADY: 1e-4 * NOISE})
    decision = Decision("CPU", FOUND, "PROFILE", (alone,), {})
    placement = replace(Placement.from_dict(dict.fromkeys(NAMES, "CPU")), decision=decision)
    Comparison(Machine(ov.Core(), ("CPU",)), placement, session, placement.plan).run(1.0, lambda *_: None)
    periods = {load["min_sample_seconds"] / 0.15 for load in load_of(session)}
    assert len(periods) == 1
    assert periods == {round(*periods)}


def test_who_computes_wrong_is_no_rival(monkeypatch, two_cores):
    session = Beside(1.3)
    session.outputs = ScriptedOutputs("CPU")
    assert told(monkeypatch, session, ("XCPU", "CPU"), plan=MIX) is False  # of two, one is right
    session.outputs = ScriptedOutputs("XCPU", "CPU")
    assert told(monkeypatch, session, ("XCPU", "CPU"), plan=MIX) is True
    assert session.outputs.ways["CPU"] == session.outputs.ways["XCPU"] != session.outputs.ways["the answer"]
    session.outputs = ScriptedOutputs("the answer")
    assert told(monkeypatch, session, ("XCPU", "CPU"), plan=MIX) is False
    session = Beside(0.7)
    session.outputs = ScriptedOutputs("the answer", "CPU")
    assert told(monkeypatch, session, plan=NARROW) is True  # nobody is right


def test_an_answer_is_run_until_it_is_proven(monkeypatch):
    session = Beside(0.9, rounds=2)
    assert told(monkeypatch, session, plan=NARROW) is True
    assert session.budgets == [0.5, 6 / 2 * 0.5]


def test_an_answer_that_cannot_be_run_does_not_hold(monkeypatch):
    session = Beside(0.9)

    def fails(*_: object, **__: object) -> None:
        raise ProfilingError("the process was ended by SIGKILL")

    monkeypatch.setattr(session, "race", fails)
    assert told(monkeypatch, session, plan=NARROW) is False


@pytest.mark.parametrize("kind", ["width", "plan"])
def test_a_race_its_confirmation_and_bench_time_alike(monkeypatch, two_cores, kind):
    """With the loads that the race chose by: the samples' length, and the idle gaps."""
    everywhere = np.zeros(len(TABLE), dtype=np.int32)
    alone = on_groups("CPU", everywhere, 1e-4, 1e-4 * NOISE, ("CPU",))
    plan = NARROW if kind == "width" else PLAN
    answer = Candidate(plan.name, plan, 5e-5, assignment=everywhere)
    raced, checked, shown = (Beside(0.6, 0.9) for _ in range(3))
    verdict = race_of(raced, TABLE).challenge(Verdict(alone, FOUND, [alone]), [answer])
    assert verdict.winner is answer
    assert told(monkeypatch, checked, plan=plan) is True
    decision = Decision(answer.name, FOUND, "PROFILE", (alone, answer), {})
    placement = replace(Placement.from_dict(dict.fromkeys(NAMES, "CPU")), decision=decision, plan=plan)
    Comparison(Machine(ov.Core(), ("CPU",)), placement, shown, plan).run(1.0, lambda *_: None)

    def by_pause(session: ScriptedSession) -> dict[bool, set[tuple[float, float]]]:
        return {
            paused: {
                tuple(load.values()) for load in load_of(session) if (load["pause_seconds"] > 0) is paused
            }
            for paused in (False, True)
        }

    assert by_pause(checked) == by_pause(raced)
    assert by_pause(raced)[False] == by_pause(shown)[False]
    pauses = [{pause for _, pause in by_pause(session)[True]} for session in (raced, shown)]
    assert pauses[0] <= pauses[1]
