"""Placement methods that others published, or that need no thought, to compare with.

They have the signature of the solvers and are none: nobody should place a model with them. Each is scored
on the same objective as everything else, whatever it was made for.
"""

from __future__ import annotations

from ov_autoplace.baselines.list_scheduling import solve_list_scheduling
from ov_autoplace.baselines.random_placement import solve_random
from ov_autoplace.solvers.solver import Solver

__all__ = ["BASELINES"]

BASELINES: dict[str, Solver] = {
    "random": solve_random,
    "list scheduling": solve_list_scheduling,
}
"""Baselines by name."""
