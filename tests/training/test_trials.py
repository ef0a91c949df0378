"""Races of placements against a single device: what is run, what is not, and what counts as proof."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace.plan.decision import Load
from ov_autoplace.plan.findings import Kind
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.trials import ReferenceRaces, Trial
from training.chains import chain_seconds, chain_table, fast_and_slow
from training.scripted_devices import Clock, ScriptedSession, scripted_trial

TRUE = chain_table(fast_and_slow([0, 0, 0, 1, 1, 1], ratio=4.0))
SINGLES = ((0,) * 6, (1,) * 6)
MIX = (0, 0, 0, 1, 1, 1)
POOR = (0, 1, 0, 1, 0, 1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def trial(devices, source="policy") -> Trial:
    return scripted_trial(source, devices, chain_seconds(TRUE, devices))


def bench(session: ScriptedSession, clock: Clock, seconds: float = 1e6) -> ReferenceRaces:
    return ReferenceRaces(session, TRUE, TuningBudget(seconds, clock=clock.perf_counter), 12, 0)  # type: ignore[arg-type]


def test_the_first_race_finds_the_fastest_device_and_refers_all_to_it(clock):
    table = chain_table(fast_and_slow([1, 1, 1, 1, 0, 0], ratio=4.0))
    singles = [trial(devices) for devices in SINGLES]
    races = ReferenceRaces(ScriptedSession(table), table, TuningBudget(1e6, clock=clock.perf_counter), 12, 0)  # type: ignore
    assert races.race_singles(singles) == [singles[1], singles[0]]
    expected = chain_seconds(table, SINGLES[0]) / chain_seconds(table, SINGLES[1])
    assert singles[0].ratio.median == pytest.approx(expected, rel=0.02)
    assert singles[1].ratio.median == 1.0


def test_a_device_that_fails_is_no_reference(clock):
    singles = [trial(devices) for devices in SINGLES]
    ran = bench(ScriptedSession(TRUE, fails=(SINGLES[0],)), clock).race_singles(singles)
    assert ran == [singles[1], singles[0]]
    assert singles[0].dropped
    assert bench(ScriptedSession(TRUE, fails=SINGLES), clock).race_singles([trial(d) for d in SINGLES]) == []


def test_ratios_of_several_races_do_not_depend_on_how_fast_the_machine_was(clock):
    session = ScriptedSession(TRUE, noise=0.0)
    races, reference, mix = bench(session, clock), trial(SINGLES[0]), trial(MIX)
    for _ in range(3):
        assert races.race(reference, [mix]) == [mix]
    expected = chain_seconds(TRUE, MIX) / chain_seconds(TRUE, SINGLES[0])
    assert np.ptp(mix.samples) > 0.01 * mix.samples.mean()  # the scripted machine does drift
    assert mix.ratio.low == pytest.approx(expected)
    assert mix.ratio.high == pytest.approx(expected)
    assert mix.subgraphs == 2


def test_a_placement_that_does_not_compile_is_marked_and_the_others_race(clock):
    session = ScriptedSession(TRUE, fails=(POOR,))
    reference, poor, mix = trial(SINGLES[0]), trial(POOR), trial(MIX)
    ran = bench(session, clock).race(reference, [poor, mix])
    assert set(ran) == {poor, mix}
    assert "no such kernel" in poor.dropped
    assert len(mix.samples) == 12


def test_what_would_not_end_within_the_budget_is_not_compiled(clock):
    session = ScriptedSession(TRUE, clock=clock, compile_seconds=100.0)
    races = ReferenceRaces(
        session, TRUE, TuningBudget(600, clock=clock.perf_counter), 12, 0, compile_seconds=100.0
    )  # type: ignore
    reference, mix, poor = trial(SINGLES[0]), trial(MIX), trial(POOR)
    # After two compilations 400 s are left; the third one and six inferences of each would take 428 s.
    races.race(reference, [mix, poor])
    assert session.compiled == [SINGLES[0], MIX]
    assert clock.now - 100.0 <= 1.05 * 600
    assert poor.number == 0
    assert not len(poor.samples)


def test_a_hopeless_placement_is_run_twice_and_not_raced(clock):
    table = chain_table(fast_and_slow([0, 0, 0, 0, 0, 0], ratio=50.0))
    session = ScriptedSession(table, clock=clock)
    races = ReferenceRaces(session, table, TuningBudget(1e6, clock=clock.perf_counter), 12, 0)  # type: ignore[arg-type]
    reference, slow, fair = trial(SINGLES[0]), trial(SINGLES[1]), trial((0, 0, 0, 0, 0, 0))
    reference.times[Load.STEADY] = np.array([6.25])
    assert slow in races.race(reference, [slow, fair])
    assert len(slow.samples) == 1
    assert slow.ratio.median == pytest.approx(48, rel=0.05)
    assert SINGLES[1] not in session.raced[0]


def test_a_mix_is_proven_by_a_second_compilation(clock):
    session = ScriptedSession(TRUE)
    races, reference, mix = bench(session, clock), trial(SINGLES[0]), trial(MIX)
    races.race(reference, [mix])
    assert races.is_convincing(mix, reference)
    verdict = races.confirm(mix, reference, reference)
    assert verdict is not None
    assert verdict.winner.assignment is mix.assignment
    assert session.compilations_forgotten == 1
    assert session.compiled.count(MIX) == 2
    assert session.compiled[-2:] == [MIX, SINGLES[0]]  # in the opposite order


def test_luck_in_one_compilation_is_no_proof(clock):
    session = ScriptedSession(TRUE)
    session.luck[POOR] = 0.3
    races, reference, poor = bench(session, clock), trial(SINGLES[0]), trial(POOR)
    races.race(reference, [poor])
    assert races.is_convincing(poor, reference)
    verdict = races.confirm(poor, reference, reference)
    assert verdict is not None
    assert verdict.winner.assignment is reference.assignment


def test_a_mix_must_beat_the_best_mix_too(clock):
    session = ScriptedSession(TRUE)
    races, reference, mix = bench(session, clock), trial(SINGLES[0]), trial(MIX)
    second = trial((0, 0, 1, 1, 1, 1))
    verdict = races.confirm(second, reference, mix)
    assert verdict is not None
    assert verdict.winner.assignment is mix.assignment
    assert verdict.kind is Kind.NOT_FASTER


def test_nothing_is_confirmed_when_there_is_no_time_to_ask(clock):
    session = ScriptedSession(TRUE)
    races = bench(session, clock, seconds=1.0)
    assert races.confirm(trial(MIX), trial(SINGLES[0]), trial(SINGLES[0])) is None
    assert session.compiled == []


def test_ctrl_c_stops_a_race(clock):
    budget = TuningBudget(1e6, clock=clock.perf_counter)
    races = ReferenceRaces(ScriptedSession(TRUE), TRUE, budget, 12, 0)  # type: ignore[arg-type]
    budget.stop_requested = True
    with pytest.raises(KeyboardInterrupt):
        races.race(trial(SINGLES[0]), [trial(MIX)])
