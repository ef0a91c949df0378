"""The benchmark of the CPU's width: bands, geometric means and losing cases from samples that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from sections.width import OURS, PLAIN, _result, compare


def outcome(
    plain: float, ours: float, paused: float, width: str = "1", rounds: int = 40
) -> dict[str, object]:
    """Samples of both, ours in fixed ratios to plain CPU's."""
    noise = np.random.default_rng(1).lognormal(sigma=0.2, size=rounds)
    return {
        "width": width,
        "reason": "",
        "decision_seconds": 1.0,
        "back_to_back": {PLAIN: (plain * noise).tolist(), OURS: (ours * noise).tolist()},
        "after_pauses": {PLAIN: (plain * noise).tolist(), OURS: (paused * noise).tolist()},
    }


def test_bands_are_by_the_shorter_latency_and_means_are_geometric():
    found = {
        "a": outcome(50e-6, 25e-6, 50e-6),
        "b": outcome(80e-6, 10e-6, 80e-6),
        "c": outcome(90e-6, 89e-6, 90e-6),
        "d": outcome(0.5, 0.5, 0.5, width=""),
    }
    result = _result(found, 0, ["e: not measured: it failed"])
    means = {row[0]: row[1:] for row in result.tables[0].rows}
    assert means["below 60 us"] == ("2", "0.250", "1.000", "0.55")  # sqrt(1/2 x 1/8)
    assert means["60 to 200 us"][:2] == ("1", "0.989")
    assert means["above"][:2] == ("1", "1.000")
    assert "0.2 to 1 ms" not in means
    assert "geometric mean 60 to 200 us: 0.989, wanted at most 0.7: MISSED" in result.remarks
    assert result.remarks[0] == "e: not measured: it failed"
    assert [row[0] for row in result.tables[1].rows] == ["a", "b", "c", "d"]


def test_losses_after_pauses_are_told_apart_from_those_back_to_back():
    found = {"x": outcome(1e-3, 0.9e-3, 1.1e-3), "y": outcome(1e-3, 1.05e-3, 1e-3)}
    result = _result(found, 0, [])
    assert "slower than 1.02 back to back: y 1.050" in result.remarks
    assert "slower than 1.02 after pauses: x 1.100" in result.remarks
    assert {(case.what, case.detail.partition(",")[0]) for case in result.losing if case.ratio > 1.02} == {
        ("x", "after pauses"),
        ("y", "back to back"),
    }


@pytest.mark.filterwarnings("ignore")
def test_a_network_is_placed_and_raced(tmp_path):
    found = compare("tiny/table_classifier", str(tmp_path), 0)
    for how in ("back_to_back", "after_pauses"):
        assert set(found[how]) == {PLAIN, OURS}
        assert len(found[how][PLAIN]) == len(found[how][OURS]) > 0
        assert min(found[how][PLAIN] + found[how][OURS]) > 0
