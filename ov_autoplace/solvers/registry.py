"""All solvers by name, and the one function that calls them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from ov_autoplace._base.text import unknown_name
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError
from ov_autoplace.plan.mixture import Mixture
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import objective_of, simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.cuts import cut_proposals, expansion_proposals
from ov_autoplace.solvers.hetero import HETERO
from ov_autoplace.solvers.list_schedulers import LIST_SCHEDULERS
from ov_autoplace.solvers.milp import solve_milp
from ov_autoplace.solvers.oracle import oracle
from ov_autoplace.solvers.overlap import OVERLAP, chain_proposals, schedules_of
from ov_autoplace.solvers.rate import RATE, mixture_and_whole
from ov_autoplace.solvers.search import Search, best_of, greedy_proposals, solve_exact, solve_single
from ov_autoplace.solvers.solver import Solver, SolverOptions

__all__ = ["SOLVERS", "SOLVERS_OF", "solve", "solve_mixture", "solve_problem"]


def _solvers(search: Search, special: Mapping[str, Solver]) -> dict[str, Solver]:
    """The solvers of an objective: those that there are for every one, and its own."""
    return {
        "single": solve_single,
        "greedy": best_of(greedy_proposals),
        **special,
        "local": search.local,
        "exact": solve_exact,
        "portfolio": search.portfolio,
        "oracle": oracle(search.portfolio),
    }


_SEARCHES = {"hetero": HETERO, "overlap": OVERLAP, "rate": RATE}
_SPECIAL: dict[str, dict[str, Solver]] = {
    "hetero": {
        "mincut": best_of(cut_proposals),
        "expansion": best_of(expansion_proposals),
        "milp": solve_milp,
    },
    "overlap": {
        "chains": best_of(chain_proposals),
        **{name: OVERLAP.searching(schedules_of(name)) for name in LIST_SCHEDULERS},
    },
    "rate": {},
}
SOLVERS_OF = {name: _solvers(search, _SPECIAL[name]) for name, search in _SEARCHES.items()}
"""The solvers of each objective by name; what is put into one of them can be named wherever a solver is. Cuts
and programs know HETERO's costs alone; under ``rate``, cuts at prices look for mixtures."""

SOLVERS = SOLVERS_OF["hetero"]
"""Those of the objective ``hetero``."""


def solve(
    table: CostTable,
    solver: str = "portfolio",
    *,
    objective: str = "hetero",
    time_limit: float | None = None,
    seed: int = 0,
    memory_limits: Mapping[str, float] | None = None,
    pins: Mapping[str, str] | None = None,
) -> Placement:
    """Find a fast placement of a cost table's groups.

    Args:
        table: What everything costs.
        solver: A name of ``SOLVERS_OF[objective]``.
        objective: What to make short: ``hetero``, one request on HETERO, whose devices take turns;
            ``overlap``, one request on lanes and devices that work at once; or ``rate``, the time per request
            of many that run by one placement. :func:`solve_mixture` lets them
            run by several.
        time_limit: Seconds after which to stop searching; the search then goes on for longer than it
            would without one if the limit allows. ``None``: an effort that depends on the table alone, so
            that the answer can be repeated; where memory limits bind, the clock ends it after 20 seconds.
        seed: Seed of random choices.
        memory_limits: Bytes by device name, on top of the table's own capacities.
        pins: Device by name pattern (``fnmatch``) of groups or ops.

    Returns:
        A placement with ``latency_seconds`` (simulated; under ``rate`` the seconds per request),
        ``lower_bound_seconds`` (proven below every allowed placement, or ``None``) and ``solver``.

    Raises:
        OptionError: An argument has a bad value.
        PlacementError: No placement honours all constraints, or none was found.
    """
    objective_of(objective)
    if solver not in SOLVERS_OF[objective]:
        raise OptionError(unknown_name(f"solver of the objective {objective}", solver, SOLVERS_OF[objective]))
    options = _options(table, time_limit, seed)
    return solve_problem(Problem.of(table, memory_limits, pins, objective), solver, options)


def solve_mixture(
    table: CostTable,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    memory_limits: Mapping[str, float] | None = None,
    pins: Mapping[str, str] | None = None,
) -> Mixture:
    """The mixture of placements with the highest rate of requests, and how far it may be from the best one.

    Args:
        table: What everything costs. Lanes of a device are devices here.
        time_limit: Seconds after which to stop searching; ``None``: an effort that depends on the table
            alone.
        seed: Seed of random choices.
        memory_limits: Bytes by device name, on top of the table's own capacities; they hold for the weights
            of all placements of the mixture together.
        pins: Device by name pattern (``fnmatch``) of groups or ops.

    Raises:
        OptionError: An argument has a bad value.
        PlacementError: No placement honours all constraints, or none was found.
    """
    options = _options(table, time_limit, seed)
    return mixture_and_whole(Problem.of(table, memory_limits, pins, "rate"), options)[0]


def _options(table: CostTable, time_limit: float | None, seed: int) -> SolverOptions:
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"the time limit is {time_limit!r}; give a number of seconds above 0")
    if not len(table):
        raise OptionError("the cost table has no groups, so there is nothing to place")
    deadline = None if time_limit is None else time.monotonic() + time_limit
    return SolverOptions(deadline, seed)


def solve_problem(problem: Problem, solver: str, options: SolverOptions) -> Placement:
    """The answer of a solver of :data:`SOLVERS_OF` the problem's objective, simulated; see :func:`solve`."""
    answer = SOLVERS_OF[problem.objective][solver](problem, options)
    latency = simulate(problem.table, answer, problem.objective).seconds_per_request
    bound = answer.lower_bound_seconds
    # Sums in another order may differ in the last digits; a bound above an answer is no more than that.
    return replace(
        answer,
        solver=solver,
        latency_seconds=latency,
        lower_bound_seconds=None if bound is None else min(bound, latency),
    )
