"""Races of placements against a single device: what is run, what is not, and what counts as proof."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace._base import budget as budget_module
from ov_autoplace._base.budget import Budget
from ov_autoplace.training.finetuning.budget import Interruption
from ov_autoplace.training.finetuning.measuring import Record, Workbench
from training.chains import chain_seconds, chain_table, fast_and_slow
from training.scripted_devices import Clock, ScriptedSession

TRUE = chain_table(fast_and_slow([0, 0, 0, 1, 1, 1], ratio=4.0))
SINGLES = ((0,) * 6, (1,) * 6)
MIX = (0, 0, 0, 1, 1, 1)
POOR = (0, 1, 0, 1, 0, 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(budget_module, "time", clock)
    return clock


def record(devices, source="policy") -> Record:
    return Record(np.array(devices, dtype=np.int32), source, chain_seconds(TRUE, devices))


def bench(session: ScriptedSession, seconds: float = 1e6) -> Workbench:
    return Workbench(session, TRUE, Budget(seconds), Interruption(), 12, 0)  # type: ignore[arg-type]


def test_the_first_race_finds_the_fastest_device_and_refers_all_to_it(clock):
    table = chain_table(fast_and_slow([1, 1, 1, 1, 0, 0], ratio=4.0))
    singles = [record(devices) for devices in SINGLES]
    workbench = Workbench(ScriptedSession(table), table, Budget(1e6), Interruption(), 12, 0)  # type: ignore
    assert workbench.race_singles(singles) == [singles[1], singles[0]]
    expected = chain_seconds(table, SINGLES[0]) / chain_seconds(table, SINGLES[1])
    assert singles[0].ratio.median == pytest.approx(expected, rel=0.02)
    assert singles[1].ratio.median == 1.0


def test_a_device_that_fails_is_no_reference(clock):
    singles = [record(devices) for devices in SINGLES]
    ran = bench(ScriptedSession(TRUE, fails=(SINGLES[0],))).race_singles(singles)
    assert ran == [singles[1], singles[0]]
    assert singles[0].failure
    assert bench(ScriptedSession(TRUE, fails=SINGLES)).race_singles([record(d) for d in SINGLES]) == []


def test_ratios_of_several_races_do_not_depend_on_how_fast_the_machine_was(clock):
    session = ScriptedSession(TRUE, noise=0.0)
    workbench, reference, mix = bench(session), record(SINGLES[0]), record(MIX)
    for _ in range(3):
        assert workbench.race(reference, [mix]) == [mix]
    expected = chain_seconds(TRUE, MIX) / chain_seconds(TRUE, SINGLES[0])
    assert np.ptp(mix.samples) > 0.01 * mix.samples.mean()  # the scripted machine does drift
    assert mix.ratio.low == pytest.approx(expected)
    assert mix.ratio.high == pytest.approx(expected)
    assert mix.subgraphs == 2


def test_a_placement_that_does_not_compile_is_marked_and_the_others_race(clock):
    session = ScriptedSession(TRUE, fails=(POOR,))
    reference, poor, mix = record(SINGLES[0]), record(POOR), record(MIX)
    ran = bench(session).race(reference, [poor, mix])
    assert set(ran) == {poor, mix}
    assert "no such kernel" in poor.failure
    assert len(mix.samples) == 12


def test_what_would_not_end_within_the_budget_is_not_compiled(clock):
    session = ScriptedSession(TRUE, clock=clock, compile_seconds=100.0)
    workbench = bench(session, seconds=600)
    workbench.note_compilation(100.0)
    reference, mix, poor = record(SINGLES[0]), record(MIX), record(POOR)
    # After two compilations 400 s are left; the third one and six inferences of each would take 428 s.
    workbench.race(reference, [mix, poor])
    assert session.compiled == [SINGLES[0], MIX]
    assert clock.now - 100.0 <= 1.05 * 600
    assert poor.number == 0
    assert not len(poor.samples)


def test_a_hopeless_placement_is_run_twice_and_not_raced(clock):
    table = chain_table(fast_and_slow([0, 0, 0, 0, 0, 0], ratio=50.0))
    session = ScriptedSession(table, clock=clock)
    workbench = Workbench(session, table, Budget(1e6), Interruption(), 12, 0)  # type: ignore[arg-type]
    reference, slow, fair = record(SINGLES[0]), record(SINGLES[1]), record((0, 0, 0, 0, 0, 0))
    reference.samples = np.array([6.25])
    assert slow in workbench.race(reference, [slow, fair])
    assert len(slow.samples) == 1
    assert slow.ratio.median == pytest.approx(48, rel=0.05)
    assert SINGLES[1] not in session.raced[0]


def test_a_mix_is_proven_by_a_second_compilation(clock):
    session = ScriptedSession(TRUE)
    workbench, reference, mix = bench(session), record(SINGLES[0]), record(MIX)
    workbench.race(reference, [mix])
    assert workbench.is_convincing(mix, reference)
    contest = workbench.confirm(mix, reference, reference)
    assert contest is not None
    assert contest.winner.proposal.assignment is mix.assignment
    assert session.compilations_forgotten == 1
    assert session.compiled.count(MIX) == 2
    assert session.compiled[-2:] == [MIX, SINGLES[0]]  # in the opposite order


def test_luck_in_one_compilation_is_no_proof(clock):
    session = ScriptedSession(TRUE)
    session.luck[POOR] = 0.3
    workbench, reference, poor = bench(session), record(SINGLES[0]), record(POOR)
    workbench.race(reference, [poor])
    assert workbench.is_convincing(poor, reference)
    contest = workbench.confirm(poor, reference, reference)
    assert contest is not None
    assert contest.winner.proposal.assignment is reference.assignment


def test_a_mix_must_beat_the_best_mix_too(clock):
    session = ScriptedSession(TRUE)
    workbench, reference, mix = bench(session), record(SINGLES[0]), record(MIX)
    second = record((0, 0, 1, 1, 1, 1))
    contest = workbench.confirm(second, reference, mix)
    assert contest is not None
    assert contest.winner.proposal.assignment is mix.assignment
    assert "best mix so far" in contest.reason


def test_nothing_is_confirmed_when_there_is_no_time_to_ask(clock):
    session = ScriptedSession(TRUE)
    workbench = bench(session, seconds=1.0)
    assert workbench.confirm(record(MIX), record(SINGLES[0]), record(SINGLES[0])) is None
    assert session.compiled == []


def test_ctrl_c_stops_a_race(clock):
    interruption = Interruption()
    workbench = Workbench(ScriptedSession(TRUE), TRUE, Budget(1e6), interruption, 12, 0)  # type: ignore[arg-type]
    interruption.requested = True
    with pytest.raises(KeyboardInterrupt):
        workbench.race(record(SINGLES[0]), [record(MIX)])
