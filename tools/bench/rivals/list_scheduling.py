"""List scheduling: HEFT, as the solvers have it for lanes that work at once, on the devices of a table.

H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE TPDS 13(3), 2002 (``ov_autoplace/solvers/list_schedulers.py``). It
believes that devices run side by side, which HETERO's do not: what it gains by using a device because another
one is busy is a loss there, and it is scored on the problem's objective like everything else. A tensor that
changes the device brings a launch there besides its transfer.
"""

from __future__ import annotations

from collections.abc import Callable

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.list_schedulers import heft_assignment
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import TaskGraph, task_graphs


def solve_list_scheduling(problem: Problem, options: SolverOptions) -> Placement:
    """The devices of HEFT's schedule; see :func:`scheduled`."""
    return scheduled(problem, heft_assignment)


def scheduled(problem: Problem, scheduler: Callable[[Problem, TaskGraph], IntArray | None]) -> Placement:
    """The devices of a schedule; where it runs out of memory, the solvers' first fit.

    Args:
        problem: Of any objective.
        scheduler: Assigns units of a problem whose devices work at once; ``None`` where memory does not
            suffice.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    at_once = Problem.of(problem.table, problem.memory_limits, problem.pins, "overlap")
    placed = scheduler(at_once, next(task_graphs(at_once)))
    if placed is None:
        return problem.evaluator.answer(first_fit(problem.table, problem.units))
    return problem.evaluator.answer(problem.units.from_groups(at_once.units.to_groups(placed)))
