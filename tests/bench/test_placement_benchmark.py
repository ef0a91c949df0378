"""What the placement benchmark makes of latencies, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from placement_methods import OURS, RIVALS, SINGLE, Outcome, try_it
from placement_report import FROM_SCRATCH, Comparison, cases, ratios_of, rows_of
from policy_problems import Problem

from baselines.baseline_tables import table_of
from ov_autoplace.baselines import BaselineOptions
from ov_autoplace.errors import PlacementError
from ov_autoplace.solvers import SOLVERS

TABLE = table_of([[1.0, 2.0]] * 3, [])
LATENCIES = {
    SINGLE: [4.0, 2.0, np.nan],
    "policy": [3.0, 2.5, 9.0],
    "auto": [2.0, 2.0, 5.0],
    "m-etf": [5.0, 1.0, 4.0],
    "random": [8.0, np.inf, 8.0],
}


@pytest.fixture
def comparison() -> Comparison:
    """The default solver proves 2 s for the first problem, 1 s for the second and 3 s for the third."""
    problems = [Problem(f"p{i}", "family", TABLE, TABLE) for i in range(3)]
    outcomes = {method: [Outcome(s, 0.001) for s in row] for method, row in LATENCIES.items()}
    outcomes["auto"] = [replace(o, bound_seconds=b) for o, b in zip(outcomes["auto"], (2, 1, 3), strict=True)]
    return Comparison(problems, outcomes, np.full(3, np.inf))


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
    assert (rows["auto"]["optimal"], rows["m-etf"]["optimal"]) == (1, 1)
    assert (rows["random"]["answered"], rows["random"]["not_legal"]) == (2, 1)
    assert rows[SINGLE]["answered"] == 2


def test_losing_and_winning_cases_are_named_with_the_rival_the_worst_first(
    comparison: Comparison,
) -> None:
    losing, winning = cases({"set": comparison})
    assert [(c["problem"], c["method"], c["rival"], c["ratio"]) for c in losing] == [
        ("p1", "policy", "m-etf", 2.5),
        ("p2", "policy", "m-etf", 2.25),
        ("p1", "auto", "m-etf", 2.0),
        ("p2", "auto", "m-etf", 1.25),
    ]
    assert [(c["problem"], c["method"], c["rival"], c["ratio"]) for c in winning] == [
        ("p0", "auto", SINGLE, 0.5),
        ("p0", "policy", SINGLE, 0.75),
    ]


def test_ratios_are_geometric_means_over_the_proven_bound_of_our_methods_only(
    comparison: Comparison,
) -> None:
    everything = {m: comparison.outcomes.get(m, comparison.outcomes["auto"]) for m in (*OURS, *RIVALS)}
    full = Comparison(comparison.problems, everything, comparison.known)
    ratios = ratios_of({"set": full, FROM_SCRATCH: full})
    assert set(ratios) == {f"{method}: set" for method in OURS}
    assert ratios["policy: set"] == pytest.approx((3 / 2 * 2.5 / 1 * 9 / 3) ** (1 / 3))


def test_a_faster_placement_that_no_method_found_makes_all_gaps_larger(comparison: Comparison) -> None:
    known = Comparison(comparison.problems, comparison.outcomes, np.array([np.inf, np.inf, 3.0]))
    assert known.best.tolist() == [2.0, 1.0, 3.0]
    assert known.is_proven.all()


def test_a_refusal_is_an_outcome_and_not_an_error() -> None:
    def refuse(table, options):
        raise PlacementError("no room")

    outcome = try_it(refuse, TABLE, BaselineOptions())
    assert np.isnan(outcome.latency_seconds)
    assert outcome.refusal == "no room"


def test_every_solver_is_among_the_methods() -> None:
    assert {"single", *OURS} == set(SOLVERS)


def test_rivals_that_learn_are_compared_on_their_own_graphs_only(comparison: Comparison) -> None:
    trained = comparison.outcomes | {"giph": [Outcome(6.0, 1.0)] * 3}
    both = {"set": comparison, FROM_SCRATCH: Comparison(comparison.problems, trained, comparison.known)}
    losing, winning = cases(both)
    rivals = {(c["set"], c["rival"]) for c in (*losing, *winning)}
    assert rivals == {("set", "m-etf"), ("set", SINGLE), (FROM_SCRATCH, "giph")}
