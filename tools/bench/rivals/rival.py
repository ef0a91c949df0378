"""What a rival is: the options that all of them take, and their signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ov_autoplace.errors import OptionError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.solver import SolverOptions


@dataclass(frozen=True)
class RivalOptions(SolverOptions):
    """How to search.

    Attributes:
        evaluations: How many placements a rival that learns may simulate; 2,000 is HSDAG's budget. Those
            that learn nothing simulate none.

    Raises:
        OptionError: On construction, when nothing may be simulated.
    """

    evaluations: int = 2000

    def __post_init__(self) -> None:
        if self.evaluations < 1:
            raise OptionError(f"the budget is {self.evaluations} evaluations; give 1 or more")


Rival = Callable[[Problem, RivalOptions], Placement]
"""Problem and options to an assignment of the table's groups."""
