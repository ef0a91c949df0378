from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from candidates import detail, numbers, on_groups
from ov_autoplace._base.budget import Budget
from ov_autoplace.decide.context import Context
from ov_autoplace.decide.costs import Measured
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.proposals import ProposalSource
from ov_autoplace.decide.stages.singles import Singles
from ov_autoplace.decide.stages.splits import Splits
from ov_autoplace.decide.verdict import Verdict, measured, predicted
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.counting import CountedDevices
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.findings import Kind
from ov_autoplace.plan.plan import ModelPlan
from ov_autoplace.problem.problem import Problem
from reference_hetero import random_table
from scripted_session import ScriptedSession

NOISE = np.random.default_rng(0).lognormal(sigma=0.2, size=50)


def _candidate(name: str, devices: list[int], seconds: float, factor: float | None = None) -> Candidate:
    return on_groups(name, devices, seconds, [] if factor is None else factor * NOISE)


def _session(
    *compilations: dict[str, float], seconds: float = 1.0, compile_seconds: float = 0.0
) -> ScriptedSession:
    """Devices by their names, and a mix by both."""
    found = ScriptedSession(
        *compilations,
        seconds=seconds,
        compile_seconds=compile_seconds,
        name_of=lambda plan: "+".join(sorted(plan.devices)),
    )
    found.noise = NOISE
    return found


def _raced(
    session: ScriptedSession,
    mode: str = "PROFILE",
    seconds: float = 1e6,
    solvers: tuple[str, ...] = (),
    predicted_seconds: float = 0.8,
    memory: Sequence[float] = (np.inf, np.inf),
    **alone: np.ndarray,
) -> Verdict:
    table = replace(
        random_table(np.random.default_rng(0), 4, 2),
        op_seconds=np.ones((4, 2)),
        memory_bytes=np.ones(4),
        memory_capacity=np.array(memory),
        wiring=None,
    )
    alone = alone or {"D1": NOISE}
    proposals = [
        on_groups(name, [["D0", "D1"].index(name)] * 4, 1.0)
        for name, samples in alone.items()
        if len(samples)
    ]
    proposals.append(on_groups("portfolio", [0, 0, 1, 1], predicted_seconds))
    for proposal in proposals:
        if proposal.name in alone:
            proposal.times[Load.STEADY] = alone[proposal.name]
    machine = Machine(None, table.devices, PlacerOptions(mode=mode))
    context = Context(machine, None, Budget(seconds), ProposalSource(solvers), lambda _: nullcontext())
    context.open(session)
    context.known = SimpleNamespace(counted=SimpleNamespace(was_disturbed=False))
    context.problem = Problem.of(table)
    return Splits().decide(context, proposals)


def _alone(session: ScriptedSession, seconds: float = 1e6, **profile: float) -> tuple[Verdict, Context]:
    """The verdict about devices that took so long when their nodes were counted."""
    machine = Machine(None, tuple(profile), PlacerOptions(time_budget_ms=1e3 * seconds))
    context = Context(machine, None, Budget(seconds), ProposalSource(()), lambda _: nullcontext())
    context.open(session)
    samples = {device: factor * NOISE for device, factor in profile.items()}
    counted = CountedDevices((), samples, 0.02 * len(profile), 1.0, np.full(len(profile), np.inf))
    context.known = Measured(session, counted)
    context.problem = Problem.of(replace(random_table(np.random.default_rng(0), 4, 2), wiring=None))
    singles = Singles()
    singles._is_counted = True
    alone = [_candidate(device, [d], *(2 * [profile[device]])) for d, device in enumerate(profile)]
    verdict = singles.decide(context, alone)
    assert verdict is not None
    return verdict, context


def test_a_device_that_only_looked_slow_when_its_turn_came_is_found_in_a_race():
    session = _session({"D0": 1.0, "D1": 1.6})
    verdict, context = _alone(session, D0=2.0, D1=1.6)  # at half the clock
    assert session.races == [["D1", "D0"]]
    assert verdict.winner.name == "D0"
    counted = context.known.counted
    assert np.median(counted.samples["D0"]) < np.median(counted.samples["D1"])
    assert counted.was_disturbed  # so that no bound rests on it
    assert counted.disturbance == pytest.approx(2.0, rel=0.3)


def test_devices_that_a_profile_cannot_have_exchanged_are_not_raced():
    session = _session({"D0": 1.0, "D1": 9.0})
    assert _alone(session, D0=1.0, D1=9.0)[0].winner.name == "D0"
    assert not session.races


def test_devices_are_not_raced_without_time_to_compile_them():
    session = _session({"D0": 1.0, "D1": 1.6})
    verdict, context = _alone(session, seconds=0.03, D0=2.0, D1=1.6)
    assert not session.races
    assert verdict.winner.name == "D1"
    assert not context.known.counted.was_disturbed


def test_a_race_that_agrees_with_the_profile_leaves_it_undisturbed():
    verdict, context = _alone(_session({"D0": 1.0, "D1": 1.6}), D0=1.0, D1=1.3)
    assert verdict.winner.name == "D0"
    assert not context.known.counted.was_disturbed


def test_a_mix_has_to_win_again_when_both_are_compiled_anew():
    assert _raced(_session({"D1": 1.0, "D0+D1": 0.9}, {"D1": 1.0, "D0+D1": 0.9})).winner.name == "portfolio"
    lucky = _session({"D1": 1.0, "D0+D1": 0.9}, {"D1": 1.0, "D0+D1": 1.05})
    assert _raced(lucky).winner.name == "D1"
    assert lucky.races == [["D1", "D0+D1"], ["D0+D1", "D1"]]


@pytest.mark.parametrize(("predicted", "winner"), [(1, "portfolio"), (2, "D1")])
def test_where_rules_are_not_known_a_mix_has_to_be_cut_as_predicted(
    predicted: int, winner: str, unknown_rules: None
):
    session = _session({"D1": 1.0, "D0+D1": 0.5})
    session.predicted = predicted
    verdict = _raced(session)
    assert verdict.winner.name == winner
    mix = next(c for c in verdict.candidates if c.name == "portfolio")
    assert bool(mix.dropped) == (winner != "portfolio")


def test_where_rules_are_not_known_no_mix_is_taken_unrun(unknown_rules: None):
    mix, single = _candidate("portfolio", [0, 1], 0.5), _candidate("D1", [1, 1], 1.0)
    assert predicted([mix, single]).winner is single
    assert predicted([mix]).winner is mix  # pins leave nothing else
    assert measured([mix, single], None, None).winner is single


class _Wrong:
    """Plays a comparison of outputs that finds some candidates wrong."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def note(self, name: str, executable: object, way: object) -> None:
        pass

    def mark(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            candidate.is_wrong = candidate.name in self.names
            candidate.dropped = "wrong" if candidate.is_wrong else candidate.dropped


@pytest.mark.parametrize(
    ("wrong", "winner"),
    [
        ((), "portfolio"),
        (("portfolio",), "D1"),
        (("D1",), "portfolio"),
        (("D1", "portfolio"), "D1"),  # nobody is right
    ],
)
def test_who_computes_wrong_is_not_taken_while_somebody_is_right(wrong, winner, monkeypatch):
    fast = {"D0": 2.0, "D1": 1.0, "D0+D1": 0.5}
    monkeypatch.setattr(ScriptedSession, "outputs", _Wrong(*wrong))
    slow = 2.0 if "D1" in wrong else 0.8  # too slow to be raced with a device that is right
    verdict = _raced(_session(fast, fast, fast), predicted_seconds=slow)
    assert verdict.winner.name == winner
    for candidate in verdict.candidates:
        assert candidate.is_wrong is (candidate.name in wrong)


def test_what_was_measured_before_does_not_count_for_whom_is_not_run_anew(monkeypatch):
    """It chose the mix; what cannot be compiled a second time has proven nothing."""
    session = _session({"D1": 1.0, "D0+D1": 0.5})
    compiled = []
    first = session.compile_whole

    def compile_once(plan: ModelPlan) -> SimpleNamespace:
        executable = first(plan)
        if executable.name in compiled and executable.name == "D0+D1":
            raise ProfilingError("no memory is left")
        compiled.append(executable.name)
        return executable

    monkeypatch.setattr(session, "compile_whole", compile_once)
    verdict = _raced(session)
    assert verdict.winner.name == "D1"
    (mix,) = [c for c in verdict.candidates if c.name == "portfolio"]
    assert not len(mix.samples)
    assert "no memory is left" in mix.dropped


def test_devices_that_cannot_be_run_anew_are_judged_by_what_was_measured_before(monkeypatch):
    """The slow device is far behind and takes no part in the race that confirms."""
    session = _session({"D0": 3.0, "D1": 1.0, "D0+D1": 0.5}, {})

    def fail(plan: ModelPlan) -> SimpleNamespace:
        raise ProfilingError("no memory is left")

    first = session.compile_whole
    monkeypatch.setattr(
        session, "compile_whole", lambda plan: (first if session.compilations[0] else fail)(plan)
    )
    verdict = _raced(session, D0=3 * NOISE, D1=NOISE)
    assert verdict.winner.name == "D1"
    assert len(verdict.winner.samples)
    assert "no memory is left" in detail(verdict, Kind.UNCONFIRMED)


@pytest.mark.parametrize(("asked", "again"), [((), ()), (("local", "portfolio"), ("local",))])
def test_tuning_asks_only_the_first_solver_that_was_asked(asked, again, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "ov_autoplace.decide.stages.splits.propose", lambda _, source: seen.append(source) or []
    )
    _raced(_session(*[{"D1": 1.0, "D0+D1": 1.1}] * 4), mode="TUNE", solvers=asked)
    assert {source.solvers for source in seen} == {again}


@pytest.mark.parametrize("seconds", [1.0, 1e-3])
def test_a_mix_that_is_so_much_faster_that_races_end_early_wins(seconds):
    races = [{"D1": 4.0, "D0+D1": 1.0}] * 4
    verdict = _raced(_session(*races, seconds=seconds), D1=4 * seconds * NOISE)
    assert verdict.winner.name == "portfolio"
    assert numbers(verdict, Kind.FASTER)["gain"] == pytest.approx(75.0)


@pytest.mark.parametrize("seconds", [1.0, 1e-3])
def test_a_single_device_that_wins_needs_no_second_race(seconds):
    session = _session({"D1": 1.0, "D0+D1": 1.1}, seconds=seconds)
    assert _raced(session, D1=seconds * NOISE).winner.name == "D1"
    assert len(session.races) == 1


@pytest.mark.parametrize(("predicted_seconds", "worth"), [(1.1, True), (1.2, False)])
def test_a_mix_that_is_predicted_to_be_much_slower_is_not_compiled(predicted_seconds, worth):
    session = _session({"D1": 1.0, "D0+D1": 1.1})
    _raced(session, predicted_seconds=predicted_seconds)
    assert bool(session.races) == worth


def test_a_candidate_is_left_out_when_too_little_of_the_budget_remains_to_race_it():
    """Six rounds of three candidates of a second each; the race has half of the budget."""
    devices = {"D0": 1.0, "D1": 1.05, "D0+D1": 1.1}
    for seconds, raced in ((30.0, ["D0", "D0+D1"]), (100.0, ["D0", "D0+D1", "D1"])):
        session = _session(devices)
        _raced(session, seconds=seconds, D0=NOISE, D1=1.05 * NOISE)
        assert session.races[0] == raced


def test_a_race_leaves_time_to_confirm_what_it_finds():
    session = _session({"D1": 1.0, "D0+D1": 1.1})
    _raced(session, seconds=100.0)
    assert 0 < session.budgets[0] <= 50


@pytest.mark.parametrize(("memory", "raced"), [(6.0, [["D1", "D0+D1"]]), (5.9, [])])
def test_only_what_devices_can_hold_at_the_same_time_is_raced(memory, raced):
    """The single device holds four bytes on D1, and the mix two."""
    session = _session({"D1": 1.0, "D0+D1": 1.1})
    _raced(session, memory=(np.inf, memory))
    assert session.races == raced


def test_a_mix_wins_where_no_device_can_run_the_model_alone():
    verdict = _raced(_session({"D0+D1": 1.1}), D1=np.empty(0))
    assert verdict.winner.name == "portfolio"
    assert detail(verdict, Kind.WITHOUT_RIVAL) == "no single device could be run"


def test_a_mix_of_a_short_model_has_to_win_over_three_compilations_together():
    first, good, bad = {"D1": 1.0, "D0+D1": 0.8}, {"D1": 1.0, "D0+D1": 0.9}, {"D1": 1.0, "D0+D1": 1.2}
    scripts = (first, good, good, bad), (first, good, bad, bad)
    sessions = [_session(*script, seconds=1e-3) for script in scripts]
    alone = {"D1": 1e-3 * NOISE}
    assert [_raced(session, **alone).winner.name for session in sessions] == ["portfolio", "D1"]
    order = ["D0+D1", "D1"]
    assert sessions[0].races[1:] == [order, order[::-1], order]


@pytest.mark.parametrize(
    ("anew", "winner", "races"),
    [
        ([1.01, 0.8, 0.8], "D1", 2),  # slower as soon as it is compiled again
        ([0.7, 1.0, 1.0], "portfolio", 2),  # by more than where it lies in memory explains
        ([0.93, 0.94, 0.92], "portfolio", 4),
    ],
)
def test_a_mix_is_compiled_anew_until_it_is_clear_whether_it_is_faster(anew, winner, races):
    found = _session(*({"D1": 1.0, "D0+D1": factor} for factor in (0.9, *anew)), seconds=1e-3)
    assert _raced(found, D1=1e-3 * NOISE).winner.name == winner
    assert len(found.races) == races


def test_between_devices_of_which_one_copy_was_lucky_three_compilations_decide():
    lucky, usual = {"D0": 1.0, "D1": 1.05, "D0+D1": 2.0}, {"D0": 1.05, "D1": 1.0, "D0+D1": 2.0}
    alone = {"D0": 1e-3 * NOISE, "D1": 1.05e-3 * NOISE}
    short = _session(lucky, usual, lucky, usual, seconds=1e-3)
    assert _raced(short, **alone).winner.name == "D1"
    assert len(short.races) == 4
    long = _session(lucky, usual, lucky, usual)
    assert _raced(long, D0=NOISE, D1=1.05 * NOISE).winner.name == "D0"
    assert len(long.races) == 1


def test_a_short_model_that_takes_long_to_compile_is_compiled_anew_only_to_confirm_a_mix():
    mix = {"D1": 1.0, "D0+D1": 0.8}
    session = _session(mix, mix, mix, mix, seconds=1e-3, compile_seconds=1.0)
    assert _raced(session, seconds=3.0, D1=1e-3 * NOISE).winner.name == "portfolio"
    assert len(session.races) == 2
    devices = {"D0": 1.0, "D1": 1.05, "D0+D1": 2.0}
    session = _session(devices, devices, seconds=1e-3, compile_seconds=1.0)
    assert _raced(session, seconds=1.0, D0=1e-3 * NOISE, D1=1.05e-3 * NOISE).winner.name == "D0"
    assert len(session.races) == 1


def test_a_device_whose_profile_was_disturbed_is_raced_all_the_same():
    """Most of its inferences were long, but one was shorter than any of the other device's."""
    disturbed = np.where(np.arange(50) % 10 == 0, 0.5, 3.0)
    session = _session({"D0": 1.0, "D1": 0.6, "D0+D1": 2.0})
    assert _raced(session, D0=np.ones(50), D1=disturbed).winner.name == "D1"
    hopeless = _session({"D0": 1.0, "D1": 0.6, "D0+D1": 2.0})
    assert _raced(hopeless, D0=np.ones(50), D1=np.full(50, 3.0)).winner.name == "D0"


def test_a_mix_that_there_is_no_time_to_confirm_is_not_taken():
    mix = {"D1": 1.0, "D0+D1": 0.8}
    session = _session(mix, mix, compile_seconds=1.0)
    verdict = _raced(session, seconds=1.0)
    assert verdict.winner.name == "D1"
    assert verdict.kind is Kind.UNCONFIRMED
    assert len(session.races) == 1


def test_without_time_nothing_is_compiled_and_what_was_not_run_is_told():
    session = _session({"D1": 1.0, "D0+D1": 0.8})
    verdict = _raced(session, seconds=0.0)
    assert verdict.winner.name == "D1"
    assert numbers(verdict, Kind.PREDICTED_NOT_RUN)["gain"] == pytest.approx(20.0)
    assert session.races == []


def test_samples_of_which_a_few_are_far_too_long_mark_the_verdict():
    assert not _raced(_session({"D1": 1.0, "D0+D1": 1.1})).disturbed
    session = _session({"D1": 1.0, "D0+D1": 1.1})
    session.noise = np.where(np.arange(len(NOISE)) == 0, 30.0, 1.0) * NOISE
    assert _raced(session).disturbed


def test_tuning_ends_within_its_budget_and_keeps_the_best():
    session = _session({"D1": 1.0, "D0+D1": 0.9}, {"D1": 1.0, "D0+D1": 0.9})
    verdict = _raced(session, mode="TUNE")
    assert not verdict.winner.is_single
    assert all(e.name.startswith(("D1", "portfolio", "tuned")) for e in verdict.candidates)


def test_the_answer_of_tuning_is_the_fastest_mix_that_it_found(monkeypatch):
    better, worse = on_groups("min-cut", [0, 1, 1, 1], 0.7), on_groups("min-cut", [0, 0, 0, 1], 0.6)
    monkeypatch.setattr("ov_autoplace.decide.stages.splits.propose", lambda *_: [better, worse])
    factors = {"D1": 1.0, "D0 D0 D1 D1": 0.9, "D0 D1 D1 D1": 0.7, "D0 D0 D0 D1": 0.95}
    session = _session(*[factors] * 5)
    session.name_of = lambda plan: " ".join(getattr(plan, "device_of", {"": plan.name}).values())
    verdict = _raced(session, mode="TUNE", solvers=("portfolio",))
    assert verdict.winner.assignment.tolist() == [0, 1, 1, 1]
    assert verdict.winner.name.startswith("tuned")
    assert numbers(verdict, Kind.FASTER)["gain"] == pytest.approx(30.0)
