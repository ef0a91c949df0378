"""Solvers: pure functions from a cost table and constraints to a placement."""

from ov_autoplace.solvers.constraints import Constraints
from ov_autoplace.solvers.registry import SOLVERS, solve
from ov_autoplace.solvers.solver import Solver, SolverAnswer, SolverOptions

__all__ = ["SOLVERS", "Constraints", "Solver", "SolverAnswer", "SolverOptions", "solve"]
