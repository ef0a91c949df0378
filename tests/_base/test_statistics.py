from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace._base.statistics import median_interval, paired_ratio


@pytest.mark.parametrize(("n", "low", "high"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (50, 18, 33)])
def test_the_ranks_are_those_of_published_tables(n, low, high):
    # Ranks of the 95 % interval of a median from the binomial distribution, as tabulated in textbooks.
    interval = median_interval(np.arange(1, n + 1, dtype=float))
    assert (interval.low, interval.high) == (low, high)


def test_with_too_few_samples_the_interval_is_the_range():
    assert median_interval(np.array([3.0, 1.0, 2.0])) == (2.0, 1.0, 3.0)
    assert median_interval(np.array([5.0])) == (5.0, 5.0, 5.0)


@pytest.mark.parametrize("n", [25, 2000])
def test_the_interval_covers_the_median_as_often_as_it_says(n):
    random = np.random.default_rng(7)
    trials = 400
    covered = sum(
        low <= 0 <= high for _, low, high in (median_interval(random.normal(size=n)) for _ in range(trials))
    )
    assert 0.92 <= covered / trials <= 1.0


def test_pairing_removes_noise_that_both_share():
    random = np.random.default_rng(3)
    noise = random.lognormal(sigma=0.5, size=40)
    ratio = paired_ratio(0.9 * noise, noise)
    assert ratio.median == pytest.approx(0.9)
    assert ratio.high < 1


def test_rounds_that_only_one_took_part_in_are_left_out():
    assert paired_ratio(np.array([1.0, 2.0]), np.array([2.0, 4.0, 100.0])).median == pytest.approx(0.5)
