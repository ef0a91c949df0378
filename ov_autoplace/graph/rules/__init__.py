"""Which ops stay together: each rule is a pure function from the graph to pairs of ops.

Rules in :data:`MUST_RULES` keep every placement of the groups legal and sane; those of
:mod:`~ov_autoplace.graph.rules.fused` and :mod:`~ov_autoplace.graph.rules.light_ops` only keep the
groups few, and yield to the user's pins.
"""

from ov_autoplace.graph.rules.boundaries import parameters_with_consumer, results_with_producer
from ov_autoplace.graph.rules.constants import constants_with_consumer
from ov_autoplace.graph.rules.uncuttable import uncuttable_tensors
from ov_autoplace.graph.rules.variables import variables_with_accesses
from ov_autoplace.graph.rules.view import GraphView, Rule

__all__ = ["MUST_RULES", "GraphView", "Rule"]

MUST_RULES: tuple[Rule, ...] = (
    constants_with_consumer,
    parameters_with_consumer,
    results_with_producer,
    variables_with_accesses,
    uncuttable_tensors,
)
