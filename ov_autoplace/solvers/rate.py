"""One placement for many requests: the busiest device shall have as little to do as can be.

A mixture of placements is never worse, so its bound is one here. The placements that it was searched with
divide the work between the devices in many ways; they, pipelines and single devices are where local search
begins.
"""

from __future__ import annotations

from ov_autoplace.plan.mixture import Mixture
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.columns import Columns
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.mixture import mixture_of, searched_columns
from ov_autoplace.solvers.pipelines import pipelines
from ov_autoplace.solvers.search import Search
from ov_autoplace.solvers.solver import Proposals, SolverOptions

__all__ = ["RATE", "mixture_and_whole"]


def _proposals(problem: Problem, options: SolverOptions) -> Proposals:
    return _of_columns(problem, searched_columns(problem, options))


def _of_columns(problem: Problem, columns: Columns) -> Proposals:
    """The placements of a search for mixtures, and pipelines."""
    found = [*columns.assignments, *pipelines(problem.units)]
    return Proposals(found, 1.0 / columns.bound)


def _simple(problem: Problem, options: SolverOptions) -> Proposals:
    return Proposals([*pipelines(problem.units), greedy_assignment(problem.table, problem.units)])


RATE = Search(
    _proposals,
    _simple,
    most_stale=16,
    moves_regions=True,
)


def mixture_and_whole(problem: Problem, options: SolverOptions) -> tuple[Mixture, Placement]:
    """The best mixture of placements for many requests, and the best placement that all of them share.

    Args:
        problem: Of the objective ``rate``.
        options: How to search.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    columns = searched_columns(problem, options)
    whole = RATE.portfolio(problem, options, _of_columns(problem, columns))
    # A placement that all requests share is a mixture too, and one that is far from every minimum cut may be
    # best.
    columns.add(problem.units.from_groups(whole.assignment))
    return mixture_of(problem, columns), whole
