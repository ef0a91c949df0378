"""Candidate placements of a cost table: single devices, default HETERO, answers of solvers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.decide.options import DEFAULT_SOLVERS
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.plan import plan_of_groups
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve_problem

__all__ = ["ProposalSource", "propose"]

_log = logging.getLogger("ov_autoplace")

HETERO_NAME = "HETERO"


@dataclass(frozen=True)
class ProposalSource:
    """Who proposes placements.

    Attributes:
        solvers: Names of the solvers to ask, in order.
        seed: Of the solvers.
    """

    solvers: Sequence[str] = DEFAULT_SOLVERS
    seed: int = 0


def propose(problem: Problem, source: ProposalSource) -> list[Candidate]:
    """All candidates in the order in which they are thought of; equal placements are kept once.

    Raises:
        PlacementError: No placement honours the constraints.
    """
    table = problem.table
    found: dict[bytes, Candidate] = {}
    failures: list[PlacementError] = []
    for name, assignment, bound in _assignments(problem, source, failures):
        key = assignment.tobytes()
        known = found.get(key)
        if known is None:
            schedule = simulate(table, assignment)
            found[key] = Candidate(
                name,
                plan_of_groups(table.devices, table.names, assignment, table.members),
                schedule.latency_seconds,
                schedule.subgraphs,
                assignment=assignment,
                lower_bound_seconds=bound,
            )
        else:
            # A solver may prove something about a placement that was known.
            known.lower_bound_seconds = known.lower_bound_seconds if bound is None else bound
            known.also = (*known.also, name)
    # HETERO would cut what must stay together in the others, whatever the groups say, or refuses them.
    candidates = [c for c in found.values() if np.isfinite(c.expected_seconds)]
    if not candidates:
        raise PlacementError(
            f"no placement on {', '.join(table.devices)} was found that honours the pins and memory limits "
            "and that HETERO can run; loosen the pins or the limits"
            + "".join(f" ({cause})" for cause in failures[:1])
        )
    return candidates


def _assignments(
    problem: Problem, source: ProposalSource, failures: list[PlacementError]
) -> Iterator[tuple[str, IntArray, float | None]]:
    """Answers with their names and bounds; why a solver has none is added to ``failures``."""
    table, units = problem.table, problem.units
    for d, everywhere in problem.evaluator.singles().items():
        yield table.devices[d], units.to_groups(everywhere), None
    by_priority = problem.constraints.allowed.argmax(axis=1).astype(np.int32)
    hetero = units.from_groups(by_priority)
    if (units.to_groups(hetero) == by_priority).all() and units.fits(hetero):
        yield HETERO_NAME, by_priority, None
    for name in dict.fromkeys(source.solvers):
        try:
            placement = solve_problem(problem, name, SolverOptions(seed=source.seed))
        except PlacementError as cause:
            # A simple solver may find no way where another does; who named it wants to know.
            level = logging.DEBUG if name in DEFAULT_SOLVERS else logging.WARNING
            _log.log(level, "the solver %s proposes nothing: %s", name, cause)
            failures.append(cause)
            continue
        yield placement.solver, placement.assignment, placement.lower_bound_seconds
