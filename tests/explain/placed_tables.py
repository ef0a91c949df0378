"""Random placements of both kinds, on HETERO and on lanes, for what shows schedules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.lanes import LaneExplanation
from random_tables import random_table
from report_tables import layered_table

__all__ = ["KINDS", "on_devices", "on_lanes", "random_lanes"]


def random_lanes(seed: int, groups: int | None = None) -> CostTable:
    """Unequal devices, one of them divided into lanes, and everything else that a table may hold."""
    random = np.random.default_rng((seed, 4711))
    count = int(random.integers(2, 40)) if groups is None else groups
    table = random_table(seed + 70_000, count, int(random.integers(1, 3)), constrained=False)
    if random.random() < 0.3:
        kinds = np.where(random.random(count) < 0.15, "Parameter", "MatMul")
        table = replace(table, op_types=tuple(kinds.tolist()))
    lanes = with_lanes(table, table.devices[0], int(random.integers(1, 4)), hand_over_seconds=0.3)
    return replace(
        lanes,
        mix_seconds=float(random.choice([0.0, 0.5])),
        corun_factor=float(random.choice([1.0, 1.04, 1.25])),
    )


def on_lanes(seed: int, table: CostTable | None = None) -> Explanation:
    """A placement in runs of neighbouring groups, explained under ``overlap``."""
    table = random_lanes(seed) if table is None else table
    random = np.random.default_rng((seed, 4712))
    changes = random.random(len(table)) < random.choice([0.15, 0.5, 1.0])
    lanes = random.integers(table.num_devices, size=len(table))[np.cumsum(changes) - 1]
    return LaneExplanation(table, lanes.astype(np.int32))


def on_devices(seed: int) -> Explanation:
    """A placement of 60 groups anywhere on two devices, explained under HETERO."""
    table = replace(layered_table(60, seed=seed), mix_seconds=1e-5 * (seed % 2))
    return HeteroExplanation(table, np.random.default_rng(seed).integers(0, 2, 60).astype(np.int32))


KINDS = (on_devices, on_lanes)
"""A random placement of each kind, from a seed."""
