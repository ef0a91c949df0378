"""The learned policy as a solver: its answer within memory limits, or a single device that is faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.memory import first_fit
from ov_autoplace.solvers.solver import SolverOptions

if TYPE_CHECKING:
    from ov_autoplace.policy.features import PolicyGraph

__all__ = ["policy_assignment", "solve_policy"]


def solve_policy(problem: Problem, options: SolverOptions) -> Placement:
    """Place every unit where the policy scores it highest, or as the fastest of a few draws does; no search.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        PlacementError: Nothing that fits into memory was found.
    """
    if problem.table.num_devices == 1:
        return problem.evaluator.answer(first_fit(problem.table, problem.units))  # the only one
    from ov_autoplace.policy.features import policy_graph
    from ov_autoplace.policy.runner import PolicyRunner

    graph = policy_graph(problem)
    return problem.evaluator.answer(policy_assignment(PolicyRunner(options.policy).scores(graph), graph))


def policy_assignment(scores: NDArray[np.floating], graph: PolicyGraph) -> IntArray:
    """The placement of N units that scores ask for, or a faster single device, ``int32[N]``.

    Where memory is too tight for what the scores prefer, it is first fit's.

    Args:
        scores: The policy's, ``[N, D]``.
        graph: N units.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    from ov_autoplace.policy.readout import fitting_or_single

    try:
        return fitting_or_single(scores, graph)
    except PlacementError:
        return first_fit(graph.problem.table, graph.problem.units)
