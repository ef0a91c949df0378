"""Problems that are too large for the policy, with units merged until they are not.

The network holds about 9 KB for each unit and device while it runs. What is merged are neighbours among the
groups that the policy's search moves: what belongs together more than it gains by parting.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace.policy.features import PolicyGraph, policy_graph
from ov_autoplace.problem.problem import Problem

__all__ = ["MOST_UNITS", "graph_within_reach"]

_log = logging.getLogger("ov_autoplace")

MOST_UNITS = 25_000
"""Units of the largest graph that the policy is asked about."""


def graph_within_reach(problem: Problem, most_units: int = MOST_UNITS) -> PolicyGraph:
    """What the policy sees of a problem: all of its units, or, with a warning, groups that share a device.

    Args:
        problem: The problem. Units of ``graph.problem`` lead from an answer to the table's groups.
        most_units: As many units are not merged.
    """
    graph = policy_graph(problem)
    if len(graph) <= most_units:
        return graph
    unit_of = _numbered(_merged(graph, most_units)[problem.units.unit_of])
    constraints = replace(problem.constraints, unit_of=frozen_array(unit_of, np.int32))
    seen = policy_graph(replace(problem, constraints=constraints))
    _log.warning(
        "the policy is asked about %d groups of the model's %d units, each of which goes to one device as a "
        "whole",
        *(len(seen), len(graph)),
    )
    return seen


def _merged(graph: PolicyGraph, most_units: int) -> NDArray[np.int64]:
    """Group of each unit, ``int64[N]``: neighbours in the order of the coarsest grouping that is too large.

    The next one may have far too few groups, and would leave nothing to decide.
    Units in a group may run on the same devices.
    """
    group = np.arange(len(graph))
    for coarser in graph.groupings:
        if int(coarser.max()) < most_units:
            break
        group = coarser
    mask = graph.allowed @ (1 << np.arange(graph.num_devices))
    in_a_row = -(-(int(group.max()) + 1) // most_units)
    while True:
        _, alike = np.unique(group // in_a_row * (int(mask.max()) + 1) + mask, return_inverse=True)
        if int(alike.max()) < most_units:
            return np.asarray(alike, dtype=np.int64)
        in_a_row *= 2
        if in_a_row > 2 * len(graph):
            return np.asarray(alike, dtype=np.int64)  # there are more kinds of units than that


def _numbered(label_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same labels as dense numbers by first appearance."""
    _, first, label = np.unique(label_of, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[label]
