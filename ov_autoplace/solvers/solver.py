"""What a solver is, what it begins with, and how it is told to search."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem

__all__ = ["Proposals", "Proposer", "Solver", "SolverOptions"]


@dataclass(frozen=True)
class SolverOptions:
    """How to search.

    Attributes:
        deadline: ``time.monotonic()`` at which to stop searching, or ``None``: then a budget of
            evaluations that depends on the table alone ends the search, and answers can be repeated. Programs
            under memory limits are ended by the clock too, after ``program_seconds``.
        seed: Seed of everything random.
        enumerated: Where there are no more placements than these, all of them are tried.
        large: Units from which on a minimum cut takes so long that no further ones follow one whose placement
            is near the bound.
        program_seconds: See ``deadline``.
    """

    deadline: float | None = None
    seed: int = 0
    enumerated: int = 4096
    large: int = 10_000
    program_seconds: float = 20.0

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() >= self.deadline


Solver = Callable[[Problem, SolverOptions], Placement]


@dataclass(frozen=True, eq=False)
class Proposals:
    """Where a search begins.

    Attributes:
        assignments: Of units, each ``int32[U]``; all are allowed.
        bound: Seconds below which no placement is, 0 = nothing is proven.
        blocks: Units that are worth moving together, each ``int32[n]``.
    """

    assignments: list[IntArray]
    bound: float = 0.0
    blocks: Sequence[IntArray] = field(default_factory=list)

    def is_proven(self, evaluator: Evaluator) -> bool:
        """Whether one of them is as fast as the bound."""
        return bool(evaluator.latencies(self.assignments).min(initial=np.inf) <= self.bound * (1 + 1e-9))


Proposer = Callable[[Problem, SolverOptions], Proposals]
