"""How the benchmark of predictions measures placements: in the profile's mood, twice, and what that says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import accuracy
import numpy as np
import pytest


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


def test_rounds_in_the_mood_of_the_profile_count_and_no_others() -> None:
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


def test_a_network_is_built_once_where_a_folder_keeps_it(monkeypatch, tmp_path) -> None:
    built: list[str] = []
    build = accuracy.zoo.build

    def build_and_tell(name: str, size: str) -> object:
        built.append(name)
        return build(name, size)

    monkeypatch.setattr(accuracy.zoo, "build", build_and_tell)
    monkeypatch.setenv(accuracy.CACHE_VARIABLE, str(tmp_path))
    names = [
        [op.get_friendly_name() for op in accuracy.build("unet", "small").get_ordered_ops()] for _ in "ab"
    ]
    assert built == ["unet"]
    assert sorted(names[0]) == sorted(names[1])
