"""Small batches for tests of the networks' parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.batch import GraphBatch, collate
from ov_autoplace.problem.problem import Problem
from random_tables import make_table, random_table


def random_graph(seed: int, groups: int, devices: int = 2) -> PolicyGraph:
    """A graph with a unit per group, some of which may not run on every device."""
    table = random_table(seed, groups, devices, constrained=False)
    random = np.random.default_rng(seed)
    op_seconds = np.where(random.random((groups, devices)) < 0.15, np.inf, table.op_seconds)
    op_seconds[np.isinf(op_seconds).all(axis=1), seed % devices] = 1.0
    return PolicyGraph.of(Problem.of(replace(table, op_seconds=frozen_array(op_seconds, np.float64))))


def random_batch(seeds: list[int], groups: int = 20, devices: int = 2) -> GraphBatch:
    """Graphs of ``groups``, ``groups + 3``, ... units."""
    return collate([random_graph(seed, groups + 3 * i, devices) for i, seed in enumerate(seeds)])


def batch_of_edges(
    num_nodes: int, edges: list[tuple[int, int]], allowed: list[str] | None = None
) -> GraphBatch:
    """One graph with these edges; ``allowed`` names per node the devices that it may run on, as in "01"."""
    seconds = np.ones((num_nodes, 2))
    for node, devices in enumerate(allowed or []):
        for device in (0, 1):
            if str(device) not in devices:
                seconds[node, device] = np.inf
    return collate([PolicyGraph.of(Problem.of(make_table(seconds, [(a, 1.0, [b]) for a, b in edges])))])
