"""Who wins, and the sentence that says why."""

from __future__ import annotations

import numpy as np
import pytest

from candidates import detail, kinds, numbers, on_groups
from ov_autoplace.decide.verdict import measured, predicted, proven
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.findings import Finding, Kind

NOISE = np.random.default_rng(0).lognormal(sigma=0.2, size=50)


def _candidate(name: str, devices: list[int], seconds: float, factor: float | None = None) -> Candidate:
    return on_groups(name, devices, seconds, [] if factor is None else factor * NOISE)


def test_a_mix_that_is_clearly_faster_wins_and_the_gain_is_told():
    single = _candidate("CPU", [1, 1], 1.0, factor=1.0)
    mix = _candidate("mincut", [0, 1], 0.9, factor=0.8)
    verdict = measured([single, mix], reference=single, fastest=mix)
    assert verdict.winner is mix
    assert numbers(verdict, Kind.FASTER)["gain"] == pytest.approx(20.0)


def test_a_device_that_won_without_a_profile_of_its_own_can_run_the_model():
    single = _candidate("CPU", [1, 1], 1.0, factor=1.0)
    verdict = measured([single], reference=None, fastest=single)
    assert verdict.winner is single
    assert kinds(verdict) == [Kind.NO_MIX_PREDICTED]


@pytest.mark.parametrize("factor", [0.99, 1.0])
def test_a_mix_within_the_noise_loses_to_the_single_device(factor):
    single = _candidate("CPU", [1, 1], 1.0, factor=1.0)
    mix = _candidate("mincut", [0, 1], 0.9, factor=factor)
    verdict = measured([single, mix], reference=single, fastest=mix)
    assert verdict.winner is single
    assert kinds(verdict) == [Kind.NOT_FASTER]


def test_a_gain_that_noise_could_explain_is_no_gain():
    random = np.random.default_rng(1)
    single = _candidate("CPU", [1, 1], 1.0, factor=1.0)
    mix = _candidate("mincut", [0, 1], 0.9)
    mix.times[Load.STEADY] = 0.97 * random.lognormal(sigma=0.5, size=12)
    assert measured([single, mix], reference=single, fastest=mix).winner is single


def test_a_handful_of_runs_proves_no_gain():
    single = _candidate("CPU", [1, 1], 1.0, factor=1.0)
    mix = _candidate("mincut", [0, 1], 0.5, factor=0.5)
    for candidate in (mix, single):
        candidate.times[Load.STEADY] = candidate.samples[:5]
    verdict = measured([single, mix], reference=single, fastest=mix)
    assert verdict.winner is single
    assert numbers(verdict, Kind.TOO_FEW_ROUNDS)["rounds"] == 5


def test_when_no_device_runs_the_model_alone_the_fastest_mix_wins():
    slow = _candidate("greedy", [1, 0], 2.0, factor=2.0)
    fast = _candidate("mincut", [0, 1], 1.0, factor=1.0)
    verdict = measured([slow, fast], None, fast, "the pins ask for GPU and CPU")
    assert verdict.winner is fast
    assert detail(verdict, Kind.WITHOUT_RIVAL) == "the pins ask for GPU and CPU"


def test_when_nothing_can_be_run_the_prediction_decides():
    verdict = measured(
        [_candidate("a", [0, 1], 2.0), _candidate("b", [1, 0], 1.0)], reference=None, fastest=None
    )
    assert verdict.winner.name == "b"
    assert detail(verdict, Kind.NOT_RUN) == "the time budget ended before"


def test_why_nothing_could_be_run_is_told():
    failed = _candidate("a", [0, 1], 1.0)
    failed.dropped = "cannot be run: out of memory"
    verdict = measured([failed], reference=None, fastest=None)
    assert detail(verdict, Kind.NOT_RUN) == "a cannot be run: out of memory"


def test_without_measurement_the_lowest_prediction_wins_and_says_so():
    single, mix = on_groups("GPU", [0, 0], 1.0), on_groups("mincut", [0, 1], 0.75)
    verdict = predicted([single, mix])
    assert verdict.winner.name == "mincut"
    assert kinds(verdict) == [Kind.PREDICTED, Kind.GAIN_PREDICTED, Kind.NOTHING_MEASURED]
    assert numbers(verdict, Kind.GAIN_PREDICTED)["gain"] == pytest.approx(25.0)


def test_the_gain_that_there_was_no_time_for_is_told_in_percent_of_the_device():
    single = _candidate("CPU", [1, 1], 2.0, factor=2.0)
    verdict = measured([single, _candidate("mincut", [0, 1], 1.5)], reference=single, fastest=single)
    assert verdict.winner is single
    assert numbers(verdict, Kind.PREDICTED_NOT_RUN)["gain"] == pytest.approx(25.0)


def test_a_device_that_is_proven_best_is_shown_with_what_was_measured_of_everybody():
    best, other = _candidate("CPU", [1, 1], 1.0), _candidate("XCPU", [0, 0], 2.0)
    verdict = proven([other, best], {"CPU": NOISE}, "CPU")
    assert verdict.winner is best
    assert [len(best.samples), len(other.samples)] == [len(NOISE), 0]
    assert not verdict.disturbed


def test_a_champion_that_failed_when_it_was_compiled_anew_does_not_win():
    reference, champion = on_groups("CPU", [0, 0], 1.0, np.full(9, 1.0)), on_groups("mix", [0, 1], 0.5)
    verdict = measured([reference, champion], reference, champion)
    assert verdict.winner is reference
    assert numbers(verdict, Kind.TOO_FEW_ROUNDS)["rounds"] == 0


def test_a_list_of_others_is_told_once():
    single = _candidate("CPU", [1, 1], 1.0, factor=1.0)
    verdict = measured([single], reference=single, fastest=single)
    for names in (("1 thread",), ("2 lanes", "1 thread")):
        verdict = verdict.noting(Finding.of(Kind.OTHERS_NOT_RUN, *names))
    assert kinds(verdict)[-2:] == [kinds(verdict)[0], Kind.OTHERS_NOT_RUN]
    assert verdict.findings[-1].names == ("1 thread", "2 lanes")
