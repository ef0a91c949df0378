"""The way in which placements are searched for, whatever is made short.

Few enough placements are all tried. Else somebody proposes some, local search improves the best of them, and
improves changed copies of what it found, until nothing faster is found. What is special to an objective is in
its :class:`Search`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log, prod

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.local import improve, improve_again
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.pooling import without_copies
from ov_autoplace.solvers.regions import region_proposals
from ov_autoplace.solvers.solver import Proposals, Proposer, Solver, SolverOptions

__all__ = [
    "Search",
    "allowed_assignments",
    "best_of",
    "greedy_proposals",
    "solve_exact",
    "solve_single",
]

_TRIED_BY_EXACT = 1 << 18  # placements, some seconds
_STARTS = 4  # of local search: the fastest proposals, and the best single device besides


Refiner = Callable[[Evaluator, list[IntArray], float, SolverOptions], tuple[IntArray, float]]


@dataclass(frozen=True)
class Search:
    """How placements are searched for under one objective.

    Attributes:
        propose: Where the search begins.
        simple: Where the solver ``local`` does.
        most_stale: So many changed copies on end that bring nothing faster end the search.
        most_groups: Beyond, the search begins from one proposal, and ends where it leads.
        work: Nodes that the simulator visits in one search.
        kicked_work: Likewise from a changed copy.
        moves_regions: Whether it begins at the answer of ``solvers/regions.py`` too.
        idles_copies: Whether a copy of a device brings nothing but transfers where memory is not limited.
        refine: Goes on under memory limits, and raises the bound.
    """

    propose: Proposer
    simple: Proposer
    most_stale: int
    most_groups: float = 1_000
    work: int = 600_000
    kicked_work: int = 60_000
    moves_regions: bool = False
    idles_copies: bool = False
    refine: Refiner | None = None

    def portfolio(
        self, problem: Problem, options: SolverOptions, found: Proposals | None = None
    ) -> Placement:
        """The solver to use unless one knows better: never slower than the best single device.

        Args:
            problem: What to place.
            options: How to search.
            found: What :attr:`propose` finds, where that is known.

        Raises:
            PlacementError: Nothing that fits into memory was found.
        """
        if _choices(problem) <= log(options.enumerated) + 1e-9:
            return _enumerated(problem)
        if self.idles_copies and not problem.units.has_memory_limits:
            problem = without_copies(problem)
        return self.answer(problem, options, found or self.propose(problem, options))

    def local(self, problem: Problem, options: SolverOptions) -> Placement:
        """Local search from simple proposals."""
        return self.searching(self.simple)(problem, options)

    def searching(self, propose: Proposer) -> Solver:
        """The solver that searches from what is proposed, and neither moves regions nor solves programs."""
        plain = replace(self, moves_regions=False, refine=None)
        return lambda problem, options: plain.answer(problem, options, propose(problem, options))

    def answer(self, problem: Problem, options: SolverOptions, found: Proposals) -> Placement:
        """The best that is found from some proposals and the single devices.

        Args:
            problem: What to place.
            options: Seed and deadline. With a deadline, changed copies are searched around until it is over.
            found: Where to begin.

        Raises:
            PlacementError: There is no proposal, no single device fits, and nothing else was found.
        """
        evaluator, units, bound = problem.evaluator, problem.units, found.bound
        if found.is_proven(evaluator):
            return evaluator.answer(evaluator.best(found.assignments), bound)
        moved = region_proposals(problem, options) if self.moves_regions else []
        starts = self._starts(problem, [*found.assignments, *moved])
        improved = [improve(evaluator, start, options, bound, self.work, found.blocks) for start in starts]
        best = evaluator.best(improved)
        if self.refine is not None and units.has_memory_limits:
            best, bound = self.refine(evaluator, [*improved, *found.assignments], bound, options)
        best = improve_again(
            evaluator,
            best,
            options,
            found.blocks,
            self.most_stale if len(problem.table) <= self.most_groups else 0,
            bound,
            self.kicked_work,
            found.blocks,
        )
        return evaluator.answer(best, bound or None)

    def _starts(self, problem: Problem, proposals: Sequence[IntArray]) -> list[IntArray]:
        evaluator = problem.evaluator
        singles = list(evaluator.singles().values())
        starts = [*proposals, *singles] or [first_fit(problem.table, problem.units)]
        count = _STARTS if len(problem.table) <= self.most_groups else 1
        order = np.argsort(evaluator.latencies(starts), kind="stable")
        chosen = [starts[i] for i in order[:count]]
        if singles:
            # Proposals are often much alike; from one device the search takes another way.
            chosen.append(evaluator.best(singles))
        return list({device.tobytes(): device for device in chosen}.values())


def solve_single(problem: Problem, options: SolverOptions) -> Placement:
    """Everything on the one device that is fastest.

    Raises:
        PlacementError: No device may run everything; the sentence gives one reason per device.
    """
    singles = list(problem.evaluator.singles().values())
    if not singles:
        raise PlacementError(f"no single device can take every group: {_reasons(problem)}")
    return problem.evaluator.answer(problem.evaluator.best(singles))


def _reasons(problem: Problem) -> str:
    table, units = problem.table, problem.units
    reasons = []
    for d, device in enumerate(table.devices):
        forbidden = np.flatnonzero(np.isinf(units.op_seconds[:, d]))
        if len(forbidden):
            group = table.names[int(np.argmax(units.unit_of == forbidden[0]))]
            reasons.append(f"{device} may not run {group!r}")
        else:
            needed = f"{units.memory_bytes.sum():.0f} bytes"
            reasons.append(f"{device} may hold {units.memory_capacity[d]:.0f} of {needed}")
    return "; ".join(reasons)


def best_of(propose: Proposer) -> Solver:
    """The solver that answers with the best of what is proposed."""

    def solve(problem: Problem, options: SolverOptions) -> Placement:
        found, evaluator = propose(problem, options), problem.evaluator
        return evaluator.answer(evaluator.best(found.assignments), found.bound or None)

    return solve


def greedy_proposals(problem: Problem, options: SolverOptions) -> Proposals:
    """One unit after the other where it is done cheapest, given the producers placed so far."""
    return Proposals([greedy_assignment(problem.table, problem.units)])


def solve_exact(problem: Problem, options: SolverOptions) -> Placement:
    """The best of all allowed placements, which are few.

    Raises:
        PlacementError: There are too many, or none that fits into memory.
    """
    if _choices(problem) > log(_TRIED_BY_EXACT):
        raise PlacementError(
            f"the solver exact tries {_TRIED_BY_EXACT:,} placements at most, and {len(problem.units)} units "
            "have more; use the solver portfolio"
        )
    return _enumerated(problem)


def _enumerated(problem: Problem) -> Placement:
    evaluator = problem.evaluator
    best = evaluator.best(allowed_assignments(problem))
    return evaluator.answer(best, float(evaluator.latencies([best])[0]))


def _choices(problem: Problem) -> float:
    """The logarithm of the number of placements, memory limits aside."""
    return float(np.log(np.isfinite(problem.units.op_seconds).sum(axis=1)).sum())


def allowed_assignments(problem: Problem) -> IntArray:
    """Every allowed assignment of units, single devices first, ``int32[B, U]``: few enough to be listed.

    Raises:
        PlacementError: None fits into memory.
    """
    units = problem.units
    choices = [np.flatnonzero(np.isfinite(row)) for row in units.op_seconds]
    number = np.arange(prod(len(allowed) for allowed in choices))
    devices = np.empty((len(number), len(units)), dtype=np.int32)
    for u, allowed in enumerate(choices):
        devices[:, u] = allowed[number % len(allowed)]
        number //= len(allowed)
    devices = devices[units.fits_each(devices)]
    if not len(devices):
        first_fit(problem.table, units)  # which says what would fit
    return np.concatenate([*(s[None] for s in problem.evaluator.singles().values()), devices])
