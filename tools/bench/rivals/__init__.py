"""Placement methods that others published, or that need no thought, to compare with.

They have the signature of the solvers and are none: nobody should place a model with them. Each is scored
on the same objective as everything else, whatever it was made for. A plain greedy placement is among the
solvers already.
"""

from __future__ import annotations

from importlib import import_module

from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from rivals.earliest_task_first import solve_earliest_task_first
from rivals.list_scheduling import solve_list_scheduling
from rivals.multilevel import solve_multilevel
from rivals.random_placement import solve_random
from rivals.rival import Rival, RivalOptions

__all__ = ["LEARNED_RIVALS", "RIVALS", "Rival", "RivalOptions"]


def _learned(module: str, search: str) -> Rival:
    """A rival whose module is imported when it is asked, because that imports torch."""

    def solve(problem: Problem, options: RivalOptions) -> Placement:
        answer: Placement = getattr(import_module(f"rivals.{module}"), search)(problem, options).answer()
        return answer

    return solve


LEARNED_RIVALS: dict[str, Rival] = {
    "placeto": _learned("placeto", "search_placeto"),
    "grouper-placer": _learned("hierarchical", "search_hierarchical"),
    "giph": _learned("local_moves", "search_local_moves"),
    "doppler": _learned("doppler", "search_doppler"),
}
"""Those that are trained on each table by trying placements; they need torch."""

RIVALS: dict[str, Rival] = {
    "random": solve_random,
    "list scheduling": solve_list_scheduling,
    "m-etf": solve_earliest_task_first,
    "multilevel": solve_multilevel,
    **LEARNED_RIVALS,
}
"""Rivals by name. Those that are not learned need no more than the options of the solvers."""
