"""The tables and counts that the gate holds every machine to."""

from __future__ import annotations

import suite_gate


def test_quality_is_the_geometric_mean_over_the_best_single_device():
    found = {
        name: {"single": 2.0, "bound": 1.0} | dict.fromkeys(suite_gate.SOLVERS, seconds)
        for name, seconds in (("a", 1.0), ("b", 4.0))
    }
    table, ratios, losing, winning = suite_gate._quality(found)
    # Ratios 1/2 and 2 have the geometric mean 1; the first equals the proven bound.
    assert {ratio.value for ratio in ratios} == {1.0}
    assert table.rows[0] == ("auto", "1.0000", "2.0000", "1", "1", "1")
    assert [case.what for case in winning] == ["auto on a", "policy on a"]
    assert [case.what for case in losing] == ["auto on b", "policy on b"]


def test_a_wrong_count_raises_the_ratio():
    _, (right,), _, _ = suite_gate._counts({"a": [[3, 3], [2, 2]]})
    _, (wrong,), _, _ = suite_gate._counts({"a": [[3, 3], [2, 4]]})
    assert (right.value, wrong.value) == (1.0, 1.5)
