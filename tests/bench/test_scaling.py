"""Growth exponents, on times whose law is known."""

from __future__ import annotations

import numpy as np
import pytest
from scaling import exponent, measure


def rows_of(law, sizes=(100, 1_000, 5_000, 20_000), repeats=3, noise=0.0):
    random = np.random.default_rng(0)
    return [
        {
            "ops": n,
            "seconds": {"part": [law(n) * np.exp(noise * random.standard_normal()) for _ in range(repeats)]},
        }
        for n in sizes
    ]


@pytest.mark.parametrize("slope", [0.5, 1.0, 1.7])
def test_the_exponent_of_a_power_law_is_its_power(slope):
    found = exponent(rows_of(lambda n: 1e-6 * n**slope), "part")
    assert found.median == pytest.approx(slope)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-6)


def test_what_every_model_costs_does_not_hide_the_growth():
    # A constant tenth of a second dominates below 1,000 ops, which are therefore left out.
    found = exponent(rows_of(lambda n: 0.1 * (n < 500) + 1e-6 * n), "part")
    assert found.median == pytest.approx(1.0)


def test_noise_widens_the_interval_around_the_true_exponent():
    found = exponent(rows_of(lambda n: 1e-6 * n**1.2, noise=0.2), "part")
    assert found.low < 1.2 < found.high
    assert found.high - found.low > 0.05


def test_a_part_that_was_measured_on_one_size_has_no_exponent():
    assert exponent(rows_of(lambda n: n, sizes=(5_000,)), "part") is None
    assert exponent(rows_of(lambda n: n), "another part") is None


def test_our_parts_are_measured_on_a_real_model():
    row = measure("transformer", 100, seed=0, parts=("simulate", "solve", "annotate"))
    assert set(row["seconds"]) == {"clone", "extract", "coarsen", "simulate", "solve", "annotate"}
    assert 50 < row["ops"] < 150
    assert all(len(samples) == 3 for samples in row["seconds"].values())
