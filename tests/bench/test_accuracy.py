"""How the benchmark of predictions measures placements: at the profile's speed, twice, and what that says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import numpy as np
import pytest

from sections import accuracy


class Alternating:
    """An executable on a machine that is slow in two turns of three."""

    def __init__(self, seconds: float, factor: float) -> None:
        self._seconds, self._factor = seconds, factor
        self._slow: Iterator[bool] = cycle([True, True, False])
        self._asked = 0

    def run(self, runs: int, warmup: int = 1) -> np.ndarray:
        self._asked += 1
        slow = self._asked > 1 and next(self._slow)
        return np.full(runs, self._seconds * (self._factor if slow else 1.0))


def test_rounds_at_the_speed_of_the_profile_count_and_no_others() -> None:
    """One thread loses more than two in the slow state, which no single factor takes back."""
    executables = [Alternating(1e-3, 1.8), Alternating(1.2e-3, 1.25), Alternating(2e-3, 1.4), None]
    seconds, drift = accuracy.in_turns(executables, np.array([1e-3, 1.2e-3]))  # type: ignore[arg-type]
    assert accuracy.FEWEST_ROUNDS <= len(drift) <= accuracy.ROUNDS
    np.testing.assert_allclose(drift, 1.0)
    np.testing.assert_allclose(seconds[:, :3], np.tile([1e-3, 1.2e-3, 2e-3], (len(drift), 1)))
    assert np.isnan(seconds[:, 3]).all()


def test_the_ceiling_is_what_two_measurements_agree_on_and_the_score_counts_their_mean() -> None:
    copies = [(1.0, 1.0), (1.1, 1.4), (1.3, 1.2), (1.6, 1.6)]
    trials = [accuracy.Trial(p, c, 1.0, 1.0, 2, 2) for p, c in zip((1, 2, 3, 4), copies, strict=True)]
    assert accuracy.ceiling(trials) == pytest.approx(0.8)
    assert trials[1].measured == pytest.approx(np.sqrt(1.1 * 1.4))
    assert accuracy.rank_correlation(trials) == pytest.approx(1.0)
    remark = accuracy.models_remark({"some": trials})
    assert "at least 0.85 on 100%; the measurements' own is on 0%" in remark
