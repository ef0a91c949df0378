"""Who solves a problem that a policy learns from: exact where that is quick, else searches that can be repeated.

Two devices under ``hetero`` are a minimum cut, and more of them are left to ``auto``, as the objectives
``overlap`` and ``rate`` are. Under memory limits ``auto`` solves programs until a clock stops it, which takes
ten seconds a problem and cannot be repeated; descents by cuts, of which the best few are searched on from,
took a tenth of that and were as good or better on nine of ten problems (random graphs of 20 to 150 groups).
"""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve_problem
from ov_autoplace.solvers.expansion import expansion_proposals
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.pooling import copies_of

__all__ = ["canonical", "teach"]

_STARTS = 4
_MOST_PRICED_DEVICES = 4  # under ``rate``: the search for mixtures asks for a cut per device and price
_SEEDS = (0, 1, 2)  # of the searches for a thorough answer


def teach(problem: Problem, thorough: bool = False) -> tuple[IntArray, float]:
    """Place a problem.

    Args:
        problem: What to place.
        thorough: As well as is known: also what ``auto`` finds, from several seeds. Else what can be had in
            about a second, and repeated.

    Returns:
        Device of each unit, ``int32[U]``, and seconds below which no placement is (0: nothing is proven).

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator, units = problem.evaluator, problem.units
    found: list[IntArray] = []
    bound = 0.0
    if units.has_memory_limits and problem.objective == "hetero":
        for seed in _SEEDS if thorough else _SEEDS[:1]:
            found += _searched(problem, SolverOptions(seed=seed))
        solvers = ["auto"] if thorough else []
    elif thorough:
        solvers = ["auto"]
    elif problem.objective == "hetero" and len(units.usable_devices) == 2:
        solvers = ["mincut"]
    elif problem.objective == "rate" and len(units.usable_devices) > _MOST_PRICED_DEVICES:
        solvers = ["local"]
    else:
        solvers = ["auto"]
    for solver in solvers:
        for seed in _SEEDS if thorough and not units.has_memory_limits else _SEEDS[:1]:
            answer = solve_problem(problem, solver, SolverOptions(seed=seed))
            bound = max(bound, answer.lower_bound_seconds or 0.0)
            found.append(units.from_groups(answer.assignment))
    best = evaluator.best(found)
    return canonical(problem, best), min(bound, float(evaluator.latencies([best])[0]))


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


def _searched(problem: Problem, options: SolverOptions) -> list[IntArray]:
    """Where local search ends from the best descents by cuts."""
    evaluator = problem.evaluator
    found = expansion_proposals(evaluator, options)
    order = np.argsort(evaluator.latencies(found), kind="stable")
    return [improve(evaluator, found[i], options) for i in order[:_STARTS]]
