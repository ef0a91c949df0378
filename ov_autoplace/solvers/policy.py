"""The learned policy as a solver: its greedy answer alone."""

from __future__ import annotations

import numpy as np

from ov_autoplace.placement.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["solve_policy"]


def solve_policy(problem: Problem, options: SolverOptions) -> Placement:
    """Place every unit where the policy scores it highest; nothing is repaired, searched or simulated.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        PlacementError: The policy's answer does not fit into memory, with full devices masked.
    """
    if problem.table.num_devices == 1:
        return problem.evaluator.answer(np.zeros(len(problem.units), dtype=np.int32))  # the only one
    from ov_autoplace.policy.features import policy_graph
    from ov_autoplace.policy.runner import PolicyRunner

    runner = PolicyRunner(options.policy)
    return problem.evaluator.answer(runner.greedy(policy_graph(problem)))
