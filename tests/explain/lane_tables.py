"""Random tables of lanes and devices that work at once, and placements on them, for what shows schedules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.lanes import LaneExplanation
from random_tables import random_table

__all__ = ["on_lanes", "random_lanes"]


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
