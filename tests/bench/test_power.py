"""The benchmark of statistical power, against numbers that can be worked out."""

from __future__ import annotations

import numpy as np
import pytest

from sections.power import NOISES, Noise, deciders, race_once, runs_needed, share_right

QUIET = Noise(jitter=1e-6)


def test_noise_has_the_spread_and_memory_that_it_is_given():
    noise = Noise(jitter=1e-9, drift=0.1, memory=20.0)
    logs = np.log(noise.draw(200_000, np.random.default_rng(0)))
    assert logs.std() == pytest.approx(0.1, rel=0.05)
    later = np.corrcoef(logs[:-20], logs[20:])[0, 1]
    assert later == pytest.approx(np.exp(-1), abs=0.05)


def test_interruptions_only_ever_make_runs_longer():
    factors = Noise(jitter=1e-9, tail=0.25).draw(100_000, np.random.default_rng(0))
    assert factors.min() == pytest.approx(1.0, abs=1e-6)
    assert (factors > 1.0001).mean() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("name", deciders)
def test_everybody_sees_a_difference_without_noise(name):
    assert share_right(deciders[name], QUIET, 20, 0.02, trials=20, seed=0) == 1.0


@pytest.mark.parametrize("name", deciders)
def test_without_a_difference_everybody_guesses(name):
    share = share_right(deciders[name], Noise(jitter=0.02, drift=0.1), 40, 0.0, trials=400, seed=0)
    assert share == pytest.approx(0.5, abs=0.1)  # four standard deviations of 400 coins


def test_a_mean_over_one_block_uses_its_last_five_runs():
    class Scripted:
        """The first five runs of each block last long, those of A longest."""

        def draw(self, runs, random):
            first, second = np.ones(10), np.ones(10)
            first[:5] = 100.0
            second[:5] = 10.0
            return np.concatenate([first, second])

    assert deciders["sequential mean-of-5"](Scripted(), 20, 0.02, np.random.default_rng(0))
    assert not deciders["sequential mean-of-5"](Scripted(), 20, -0.02, np.random.default_rng(0))


def test_runs_needed_are_those_from_which_on_answers_stay_right():
    assert runs_needed({20: 1.0, 40: 0.9, 60: 0.96, 100: 1.0}) == 60
    assert runs_needed({20: 1.0, 40: 1.0}) == 20
    assert runs_needed({20: 1.0, 40: 0.9}) is None


def test_a_race_without_noise_ends_when_the_evidence_suffices():
    # Losing n rounds of n is evidence of 2^(n+1) (1 - 2^-(n+1)) / (n + 1); two ordered pairs, 99 % need 200,
    # which n = 10 misses (186) and n = 11 reaches (341). Both candidates run in every round.
    assert race_once(QUIET, 0.02, seed=0) == (22, "right")


def test_a_race_between_equals_stays_open():
    words = [race_once(Noise(jitter=0.02), 0.0, seed)[1] for seed in range(5)]
    assert words.count("open") >= 4


def test_drift_is_what_a_sequential_comparison_cannot_see_through():
    noise = NOISES["drifting speed"]
    paired = share_right(deciders["paired median"], noise, 100, 0.02, trials=100, seed=0)
    sequential = share_right(deciders["sequential median"], noise, 100, 0.02, trials=100, seed=0)
    assert paired > 0.95 > 0.8 > sequential
