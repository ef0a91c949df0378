"""The learned policy as a solver: its greedy answer alone."""

from __future__ import annotations

import numpy as np

from ov_autoplace.cost.table import CostTable
from ov_autoplace.problem.constraints import Constraints
from ov_autoplace.problem.evaluator import SolverAnswer
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["solve_policy"]


def solve_policy(table: CostTable, constraints: Constraints, options: SolverOptions) -> SolverAnswer:
    """Place every unit where the policy scores it highest; nothing is repaired, searched or simulated.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        PlacementError: The policy's answer does not fit into memory, with full devices masked.
    """
    if table.num_devices == 1:
        return SolverAnswer(np.zeros(len(table), dtype=np.int32))  # the only answer there is
    from ov_autoplace.policy.features import policy_graph
    from ov_autoplace.policy.runner import PolicyRunner

    runner = PolicyRunner(options.policy)
    graph = policy_graph(table, constraints)
    return SolverAnswer(runner.greedy(graph)[graph.unit_of])
