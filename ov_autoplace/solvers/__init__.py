"""From a problem to a placement: one file per solver, and their register.

Imports ``measure`` and below.
"""

from ov_autoplace.problem.constraints import Constraints
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.registry import SOLVERS, SOLVERS_OF, solve, solve_mixture, solve_problem
from ov_autoplace.solvers.solver import Solver, SolverOptions

__all__ = [
    "SOLVERS",
    "SOLVERS_OF",
    "Constraints",
    "Problem",
    "Solver",
    "SolverOptions",
    "solve",
    "solve_mixture",
    "solve_problem",
]
