"""CP-SAT beyond tiny problems, for which it is held to the contract of all solvers."""

from __future__ import annotations

import sys

import pytest

from ov_autoplace.errors import OptionError
from ov_autoplace.plan.simulator import OBJECTIVES
from ov_autoplace.solvers import solve
from random_tables import random_table


@pytest.mark.oracle
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_larger_problems_get_a_bound_and_nothing_slower_than_auto(objective: str) -> None:
    table = random_table(920_000, 30, 3, constrained=False)
    portfolio = solve(table, objective=objective)
    answer = solve(table, "oracle", objective=objective, time_limit=4.0)
    assert answer.latency_seconds <= portfolio.latency_seconds * (1 + 1e-9)
    assert (portfolio.lower_bound_seconds or 0.0) <= answer.lower_bound_seconds * (1 + 1e-9)
    assert answer.lower_bound_seconds <= answer.latency_seconds


def test_without_its_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    with pytest.raises(
        OptionError,
        match=r"needs the package 'ortools'; install it with: pip install 'ov-autoplace\[oracle\]'",
    ):
        solve(random_table(1, 5, 2), "oracle")


@pytest.mark.oracle
def test_a_graph_that_is_too_large_for_it_is_refused() -> None:
    with pytest.raises(OptionError, match="takes 400 units at most, not 500; use portfolio"):
        solve(random_table(1, 500, 2, constrained=False), "oracle")
