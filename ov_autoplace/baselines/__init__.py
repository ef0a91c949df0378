"""Placement methods that others published, or that need no thought, to compare with.

They have the signature of the solvers and are none: nobody should place a model with them. Each is scored
on the same objective as everything else, whatever it was made for. A plain greedy placement is among the
solvers already.

Imports ``training`` and below: some of them learn.
"""

from __future__ import annotations

from ov_autoplace.baselines.baseline import Baseline, BaselineOptions
from ov_autoplace.baselines.earliest_task_first import solve_earliest_task_first
from ov_autoplace.baselines.list_scheduling import solve_list_scheduling
from ov_autoplace.baselines.multilevel import solve_multilevel
from ov_autoplace.baselines.random_placement import solve_random
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem

__all__ = ["BASELINES", "LEARNED_BASELINES", "Baseline", "BaselineOptions"]


def _solve_placeto(problem: Problem, options: BaselineOptions) -> Placement:
    from ov_autoplace.baselines.placeto import search_placeto

    return search_placeto(problem, options).answer()


def _solve_hierarchical(problem: Problem, options: BaselineOptions) -> Placement:
    from ov_autoplace.baselines.hierarchical import search_hierarchical

    return search_hierarchical(problem, options).answer()


def _solve_local_moves(problem: Problem, options: BaselineOptions) -> Placement:
    from ov_autoplace.baselines.local_moves import search_local_moves

    return search_local_moves(problem, options).answer()


LEARNED_BASELINES: dict[str, Baseline] = {
    "placeto": _solve_placeto,
    "grouper-placer": _solve_hierarchical,
    "giph": _solve_local_moves,
}
"""Those that are trained on each table by trying placements; they need torch."""

BASELINES: dict[str, Baseline] = {
    "random": solve_random,
    "list scheduling": solve_list_scheduling,
    "m-etf": solve_earliest_task_first,
    "multilevel": solve_multilevel,
    **LEARNED_BASELINES,
}
"""Baselines by name. Those that are not learned need no more than the options of the solvers."""
