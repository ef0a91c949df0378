"""Who solves what a policy learns from: exact where that is quick, else searches that can be repeated.

Thousands of problems are solved, so what counts is quality by time. Two devices under ``hetero`` are a
minimum cut, and more of them are left to ``portfolio``. Under ``overlap``, local search from the best two
list schedules took a fifth of ``portfolio``'s time and its answers were 0.2 % slower in the mean (24 random
problems); under memory limits, where ``portfolio`` solves programs until a clock stops it, descents by cuts
and local search from the best of them took a tenth of the time and were as good or better on nine of ten
problems of 20 to 150 groups.
"""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.policy.card import NO_POLICY
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve_problem
from ov_autoplace.solvers.cuts import expansion_proposals
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.list_schedulers import list_schedules
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.memory import filled
from ov_autoplace.solvers.pipelines import pipelines
from ov_autoplace.solvers.pooling import copies_of
from ov_autoplace.solvers.tasks import task_graphs

__all__ = ["canonical", "teach"]

_STARTS, _THOROUGH_STARTS = 2, 6  # of local search
_WORK = 300_000
_MOST_PRICED_DEVICES = 3  # under ``rate``: the search for mixtures asks for a cut per device and price
_MOST_DESCENTS = 1_200  # units times devices: a descent under memory limits is a dozen cuts a step


def teach(problem: Problem, thorough: bool = False) -> tuple[IntArray, float]:
    """Place a problem.

    Args:
        problem: What to place.
        thorough: To judge by: what ``portfolio`` finds where no clock ends it, and searches from more
            starts. Else what can be had in a moment.

    Returns:
        Device of each unit, ``int32[U]``, and seconds below which no placement is (0: nothing is proven).

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator, units = problem.evaluator, problem.units
    found: list[IntArray] = []
    bound = 0.0
    solver = _quick_solver(problem)
    if thorough and not units.has_memory_limits:
        solver = "portfolio"
    if solver is not None:
        # What a policy learns must not depend on the one that is there already.
        answer = solve_problem(problem, solver, SolverOptions(policy=NO_POLICY))
        bound = answer.lower_bound_seconds or 0.0
        found.append(units.from_groups(answer.assignment))
    if solver is None or thorough:
        found.append(_searched(problem, thorough))
    best = evaluator.best(found)
    return canonical(problem, best), min(bound, float(evaluator.latencies([best])[0]))


def _quick_solver(problem: Problem) -> str | None:
    """The solver that is exact or nearly so in a moment; ``None`` = there is none."""
    units = problem.units
    devices = len(units.usable_devices)
    if problem.objective == "overlap" or units.has_memory_limits:
        return None
    if problem.objective == "rate":
        return "portfolio" if devices <= _MOST_PRICED_DEVICES else None
    return "mincut" if devices == 2 else "portfolio"


def _searched(problem: Problem, thorough: bool) -> IntArray:
    """Where local search ends from the best of what can be had at once."""
    evaluator, units, options = problem.evaluator, problem.units, SolverOptions()
    blocks: list[IntArray] = []
    starts = list(evaluator.singles().values())
    if problem.objective == "overlap":
        graphs = list(task_graphs(problem))
        starts += list_schedules(problem, graphs, ("heft",), options)
        blocks = [members for tasks in graphs for members in tasks.units]
    elif problem.objective == "rate":
        starts += pipelines(units)
    elif thorough or len(units) * units.num_devices <= _MOST_DESCENTS:
        starts += expansion_proposals(problem, options).assignments
    if units.has_memory_limits:
        in_order = filled(units)
        starts += [] if in_order is None else [in_order]
    starts.append(greedy_assignment(problem.table, units))
    order = np.argsort(evaluator.latencies(starts), kind="stable")
    chosen = order[: _THOROUGH_STARTS if thorough else _STARTS]
    return evaluator.best([improve(evaluator, starts[i], options, work=_WORK, blocks=blocks) for i in chosen])


def canonical(problem: Problem, device: IntArray) -> IntArray:
    """The same placement with copies of a device in the order in which the units' order comes upon them.

    Which of several copies is which has no meaning, and a label should not depend on it.
    """
    units = problem.units
    renamed = np.arange(units.num_devices, dtype=np.int32)
    _, first = np.unique(device[units.order], return_index=True)
    in_order = device[units.order][np.sort(first)].tolist()
    for members in copies_of(units):
        used = [d for d in in_order if d in members]
        renamed[[*used, *(d for d in members if d not in used)]] = members
    return np.asarray(renamed[device], dtype=np.int32)
