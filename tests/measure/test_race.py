"""The race's statistics, on made-up samplers: what is dropped, what is kept, and that it can be repeated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from ov_autoplace import _core

AMPLE = 3600.0  # seconds; no test here waits for a budget


def noisy(mean: float, spread: float, seed: int) -> Callable[[], float]:
    """A sampler with log-normal noise, which is skewed like that of a real machine."""
    random = np.random.default_rng(seed)
    return lambda: mean * float(np.exp(spread * random.standard_normal()))


def test_five_percent_slower_under_three_percent_noise_is_dropped() -> None:
    for seed in range(50):
        samplers = [noisy(1.00e-3, 0.03, 2 * seed), noisy(1.05e-3, 0.03, 2 * seed + 1)]
        result = _core.race_samplers(samplers, AMPLE, max_rounds=400, seed=seed)
        assert result.best == 0, f"seed {seed}"
        assert result.entries[1].dropped.startswith("slower than candidate 0 by"), f"seed {seed}"
        assert result.entries[0].dropped == ""
        assert result.stopped == "one left"
        assert len(result.entries[1].samples) == result.rounds < 400


def test_equal_candidates_are_dropped_no_more_often_than_the_confidence_allows() -> None:
    races, wrongly = 200, 0
    for seed in range(races):
        samplers = [noisy(1e-3, 0.1, 1000 * seed + i) for i in range(4)]
        result = _core.race_samplers(samplers, AMPLE, max_rounds=200, confidence=0.95, seed=seed)
        wrongly += any(entry.dropped for entry in result.entries)
    # At most 5 % of 200 races; Ville's inequality holds for any number of looks and is not tight.
    assert wrongly <= 10


def test_a_machine_that_slows_down_during_the_race_does_not_decide_it() -> None:
    for seed in range(20):
        clock = iter(range(10**9))
        random = np.random.default_rng(seed)

        def drifting(clock=clock, random=random) -> float:  # type: ignore[no-untyped-def]
            return 1e-3 * (1 + 0.01 * next(clock)) * (1 + 0.02 * random.random())

        result = _core.race_samplers([drifting, drifting, drifting], AMPLE, max_rounds=150, seed=seed)
        assert not any(entry.dropped for entry in result.entries), f"seed {seed}"


def test_far_slower_candidates_leave_after_the_least_number_of_rounds() -> None:
    result = _core.race_samplers(
        [noisy(1e-3, 0.02, 1), noisy(3e-3, 0.02, 2), noisy(1e-3, 0.02, 3)], AMPLE, min_rounds=6, max_rounds=30
    )
    assert len(result.entries[1].samples) == 6
    assert re.search(r"by (19|20)\d\.\d % after 6 rounds", result.entries[1].dropped)
    assert [len(result.entries[i].samples) for i in (0, 2)] == [30, 30]
    assert result.stopped == "max rounds"


def test_a_margin_keeps_candidates_that_are_hardly_slower() -> None:
    samplers = [lambda: 1.00e-3, lambda: 1.01e-3, lambda: 1.10e-3]
    assert [bool(e.dropped) for e in _core.race_samplers(samplers, AMPLE, max_rounds=100).entries] == [
        0,
        1,
        1,
    ]
    kept = _core.race_samplers(samplers, AMPLE, max_rounds=100, margin=0.02)
    assert [bool(e.dropped) for e in kept.entries] == [False, False, True]


def test_same_samples_and_seed_give_the_same_race() -> None:
    def race(seed: int) -> tuple[list[list[float]], list[str]]:
        shared = np.random.default_rng(5)  # one stream, so that the order of the candidates shows
        samplers = [lambda mean=mean: mean + shared.random() for mean in (1.0, 1.2, 1.0)]
        entries = _core.race_samplers(samplers, AMPLE, max_rounds=40, seed=seed).entries
        return [entry.samples.tolist() for entry in entries], [entry.dropped for entry in entries]

    assert race(7) == race(7)
    assert race(7) != race(8)


def test_the_budget_ends_a_race_after_a_complete_round() -> None:
    result = _core.race_samplers([lambda: 1.0, lambda: 1.0, lambda: 1.0], 0.0)
    assert result.stopped == "budget"
    assert result.rounds == 1
    assert [len(entry.samples) for entry in result.entries] == [1, 1, 1]


def test_what_a_sampler_raises_reaches_the_caller() -> None:
    def interrupted() -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.race_samplers([lambda: 1.0, interrupted], AMPLE)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"min_rounds": 0}, "min_rounds"),
        ({"min_rounds": 5, "max_rounds": 4}, "max_rounds"),
        ({"margin": -0.1}, "margin"),
        ({"budget_seconds": float("nan")}, "budget"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _core.race_samplers([lambda: 1.0], **{"budget_seconds": 1.0, **options})
    with pytest.raises(ValueError, match="at least one candidate"):
        _core.race_samplers([], 1.0)


def test_evidence_is_the_mixture_likelihood_ratio() -> None:
    """Against exact integration of 2 p^losses (1 - p)^wins over (1/2, 1) in rational arithmetic."""

    def exact(losses: int, wins: int) -> Fraction:
        total = Fraction(0)
        for k in range(wins + 1):  # expand (1 - p)^wins
            power = losses + k + 1
            integral = (1 - Fraction(1, 2) ** power) / power
            total += (-1) ** k * math.comb(wins, k) * integral
        return total * 2 ** (losses + wins + 1)

    for losses, wins in [(0, 0), (1, 0), (0, 1), (5, 5), (12, 0), (30, 7), (40, 60)]:
        assert _core.log_evidence_slower(losses, wins) == pytest.approx(
            math.log(exact(losses, wins)), abs=1e-9
        ), (losses, wins)
