"""What the placement benchmark makes of latencies, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.comparison import Comparison, cases_of, ratios_of, rows_of, table_of
from harness.methods import OURS, SINGLE, UNTRAINED, Outcome, immediate_methods, searches, try_it
from harness.result import Case, Result
from ov_autoplace.errors import PlacementError
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.solvers import SOLVERS
from problems.tables import Instance
from random_tables import make_table
from rivals import RivalOptions
from sections.placement import FROM_SCRATCH, rivals_on

TABLE = make_table([[1.0, 2.0]] * 3, [])
LATENCIES = {
    SINGLE: [4.0, 2.0, np.nan],
    "policy": [3.0, 2.5, 9.0],
    "portfolio": [2.0, 2.0, 5.0],
    "m-etf": [5.0, 1.0, 4.0],
    "random": [8.0, np.inf, 8.0],
}


def found(name: str, comparison: Comparison) -> list[Case]:
    return cases_of(name, comparison, rivals_on(name))


@pytest.fixture
def comparison() -> Comparison:
    """The default solver proves 2 s for the first problem, 1 s for the second and 3 s for the third."""
    instances = [Instance(f"p{i}", "family", TABLE, TABLE) for i in range(3)]
    outcomes = {method: [Outcome(s, 0.001) for s in row] for method, row in LATENCIES.items()}
    outcomes["portfolio"] = [
        replace(o, bound_seconds=b) for o, b in zip(outcomes["portfolio"], (2, 1, 3), strict=True)
    ]
    return Comparison(instances, outcomes, np.full(3, np.inf))


def test_whatever_is_fastest_is_the_best_known_and_it_is_proven_where_it_meets_the_bound(
    comparison: Comparison,
) -> None:
    assert comparison.best.tolist() == [2.0, 1.0, 4.0]
    assert comparison.is_proven.tolist() == [True, True, False]
    # Nothing runs alone in the last problem.
    assert comparison.is_worth_placing.tolist() == [True, True, True]


def test_a_row_has_the_gaps_and_counts_against_the_best_single_device(comparison: Comparison) -> None:
    rows = {row["method"]: row for row in rows_of("set", comparison, 0)}
    policy = rows["policy"]
    assert policy["mean"] == pytest.approx((0.5 + 1.5 + 1.25) / 3)
    assert policy["median"] == pytest.approx(1.25)
    assert policy["worst"] == pytest.approx(1.5)
    assert policy["low"] <= policy["mean"] <= policy["high"]
    assert (policy["faster_than_single"], policy["slower_than_single"]) == (1, 1)
    assert (rows["portfolio"]["optimal"], rows["m-etf"]["optimal"]) == (1, 1)
    assert (rows["random"]["answered"], rows["random"]["not_legal"]) == (2, 1)
    assert rows[SINGLE]["answered"] == 2


def test_losing_and_winning_cases_are_named_with_the_rival_the_worst_first(
    comparison: Comparison,
) -> None:
    result = Result("", cases=tuple(found("set", comparison)))
    assert [(c.what, c.rival, c.ratio) for c in result.losing] == [
        ("policy on p1", "m-etf", 2.5),
        ("policy on p2", "m-etf", 2.25),
        ("portfolio on p1", "m-etf", 2.0),
        ("portfolio on p2", "m-etf", 1.25),
    ]
    assert [(c.what, c.rival, c.ratio) for c in result.winning] == [
        ("portfolio on p0", SINGLE, 0.5),
        ("policy on p0", SINGLE, 0.75),
    ]
    assert result.winning[0].detail == "2000 ms against 4000 ms; set"


def test_ratios_are_geometric_means_over_the_proven_bound_of_our_methods_only(
    comparison: Comparison,
) -> None:
    everything = {
        m: comparison.outcomes.get(m, comparison.outcomes["portfolio"]) for m in (*OURS, *UNTRAINED)
    }
    full = Comparison(comparison.instances, everything, comparison.known)
    ratios = {ratio.name: ratio for ratio in ratios_of("set", full)}
    assert set(ratios) == {f"{method}: set" for method in OURS}
    assert (ratios["policy: set"].kind, ratios["portfolio: set"].kind) == ("decided", "exact")
    assert ratios["policy: set"].value == pytest.approx((3 / 2 * 2.5 / 1 * 9 / 3) ** (1 / 3))


def test_a_faster_placement_that_no_method_found_makes_all_gaps_larger(comparison: Comparison) -> None:
    known = Comparison(comparison.instances, comparison.outcomes, np.array([np.inf, np.inf, 3.0]))
    assert known.best.tolist() == [2.0, 1.0, 3.0]
    assert known.is_proven.all()


def test_a_refusal_is_an_outcome_and_not_an_error() -> None:
    def refuse(problem, options):
        raise PlacementError("no room")

    outcome = try_it(refuse, TABLE, RivalOptions())
    assert np.isnan(outcome.latency_seconds)
    assert outcome.refusal == "no room"


def test_every_solver_is_among_the_methods() -> None:
    # CP-SAT takes minutes to prove what is best, and places nothing at run time.
    assert {"single", *OURS} == set(SOLVERS) - {"oracle"}


def test_rivals_that_learn_are_compared_on_their_own_graphs_only(comparison: Comparison) -> None:
    trained = comparison.outcomes | {"giph": [Outcome(6.0, 1.0)] * 3}
    scratch = Comparison(comparison.instances, trained, comparison.known)
    assert {case.rival for case in found("set", comparison)} == {"m-etf", SINGLE}
    assert {case.rival for case in found(FROM_SCRATCH, scratch)} == {"giph"}


def test_a_table_has_as_many_cells_in_every_row_and_says_who_has_no_answer(comparison: Comparison) -> None:
    refused = [Outcome(np.nan, refusal="no room"), Outcome(np.inf), Outcome(np.inf)]
    outcomes = comparison.outcomes | {"milp": refused}
    rows = rows_of("zoo", Comparison(comparison.instances, outcomes, comparison.known), 0)
    table = table_of(rows)
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert table.rows[-1][0] == "milp (no answer, 2 not legal)"
    assert table.note == "Where there is no answer: milp: no room"
    assert table.title == "zoo: 3 problems, 2 with proven optimum; gaps in %"


@pytest.mark.torch
def test_every_method_places_a_small_problem_legally() -> None:
    table = make_table([[4.0, 1.0]] * 4 + [[1.0, 4.0]] * 2, [(g, 0.2, [g + 1]) for g in range(5)])
    methods = immediate_methods(PolicyRunner()) | searches()
    assert {*OURS, SINGLE, *UNTRAINED, "hsdag", "gdp", "giph"} <= set(methods)
    options = RivalOptions(evaluations=3)
    for name, outcome in ((name, try_it(method, table, options)) for name, method in methods.items()):
        assert np.isfinite(outcome.latency_seconds), (name, outcome.refusal)
        assert outcome.bound_seconds <= outcome.latency_seconds * (1 + 1e-9), name
