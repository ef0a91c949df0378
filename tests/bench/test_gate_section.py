"""The tables and counts that the gate holds every machine to."""

from __future__ import annotations

from harness.result import Result
from sections import gate


def test_quality_is_the_geometric_mean_over_the_best_single_device():
    found = {
        name: {"single": 2.0, "bound": 1.0} | dict.fromkeys(gate.SOLVERS, seconds)
        for name, seconds in (("a", 1.0), ("b", 4.0))
    }
    table, ratios, cases = gate.quality(found)
    # Ratios 1/2 and 2 have the geometric mean 1; the first equals the proven bound.
    assert {ratio.value for ratio in ratios} == {1.0}
    assert table.rows[0] == ("portfolio", "1.0000", "2.0000", "1", "1", "1")
    result = Result("", cases=tuple(cases))
    assert [case.what for case in result.winning] == ["portfolio on a", "policy on a"]
    assert [case.what for case in result.losing] == ["portfolio on b", "policy on b"]


def test_a_wrong_count_raises_the_ratio():
    _, right = gate.counts({"a": [[3, 3], [2, 2]]})
    table, wrong = gate.counts({"a": [[3, 3], [2, 4], []]})
    assert (right.value, wrong.value) == (1.0, 1.5)
    assert table.rows == (("a", "2", "1", "3", "2 / 4"),)


def test_counts_of_random_placements_equal_those_of_hetero():
    found = gate.compare_counts(seed=0, models=["lstm_lm"], placements=3, random_models=1)
    pairs = [pair for of_model in found.values() for pair in of_model if pair]
    assert set(found) == {"lstm_lm", "random, 10 ops"}
    assert len(pairs) >= 3
    assert all(ours == real for ours, real in pairs)
