"""The tables and counts that the gate holds every machine to."""

from __future__ import annotations

from harness.methods import SINGLE, Comparison, Instance, Outcome
from harness.result import Result
from random_tables import make_table
from sections import gate


def test_quality_is_the_geometric_mean_over_the_best_single_device():
    table = make_table([[1.0]], [])
    outcomes = {SINGLE: [Outcome(2.0, bound_seconds=1.0), Outcome(2.0, bound_seconds=1.0)]}
    outcomes |= {name: [Outcome(1.0), Outcome(4.0)] for name in gate.SOLVERS}
    found = Comparison("two", [Instance(name, name, table) for name in "ab"], outcomes)
    # Ratios 1/2 and 2 have the geometric mean 1; the first equals the proven bound.
    assert {ratio.value for ratio in gate.quality(found)} == {1.0}
    row = next(row for row in found.table().rows if row[0] == "portfolio")
    assert (row[5], row[7]) == ("1", "1 / 1")
    result = Result("", cases=tuple(found.cases([SINGLE])))
    assert {case.what for case in result.winning} == {"portfolio on a"}
    assert {case.what for case in result.losing} == {"portfolio on b"}


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
