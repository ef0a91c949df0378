"""One request on HETERO, whose devices take turns: cuts propose, programs go on under memory limits."""

from __future__ import annotations

from contextlib import suppress

from ov_autoplace.errors import PlacementError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.cuts import cheapest
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.milp import refine, with_relaxation
from ov_autoplace.solvers.search import Search, greedy_proposals
from ov_autoplace.solvers.solver import Proposals, SolverOptions

__all__ = ["HETERO"]

# Up to so many devices, expansion moves are as good as the program. On more of them its relaxation proves
# much more than isolating cuts do.
_FEW_DEVICES = 4


def _proposals(problem: Problem, options: SolverOptions) -> Proposals:
    """Minimum cuts on two devices, descents by cuts on more, and the greedy placement."""
    cut = cheapest(problem, options)
    found, bound = cut.assignments, cut.bound
    if len(problem.units.usable_devices) > _FEW_DEVICES and not problem.units.has_memory_limits:
        found, bound = with_relaxation(problem.evaluator, found, bound, options)
    # Cuts do not see the cycles that HETERO takes apart, and where these are dear all their proposals may be
    # far off; walking along the graph happens to make fewer of them.
    with suppress(PlacementError):  # of which the proposals found a way around
        found = [*found, greedy_assignment(problem.table, problem.units)]
    return Proposals(found, bound)


HETERO = Search(
    _proposals,
    greedy_proposals,
    most_stale=8,
    idles_copies=True,
    refine=refine,
)
