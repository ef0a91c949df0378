"""Which columns of a random machine are copies or lanes of one device, and how much its devices hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.problem.problem import Problem

__all__ = ["Layout", "drawn_limits", "random_layout"]

_LIMITED = 0.7  # of the devices, where there are limits
_HAND_OVER = (-2.0, 0.7)  # decades of the mean op time
_SHARED_CPU = 0.6  # share of lanes that stand alone


@dataclass(frozen=True)
class Layout:
    """How the columns of a table with D devices come from K kinds of devices.

    Attributes:
        kind_of: Kind of each column without lanes, rising; columns of one kind are copies.
        lanes: How many columns the first kind becomes; 1 = it has no lanes.
        between_copies: Of what crossing between kinds takes on average, what it takes between two copies.
        hand_over: Of the mean op time, what it takes from lane to lane.
        corun_factor: As in :class:`~ov_autoplace.cost.table.CostTable`.
    """

    kind_of: tuple[int, ...]
    lanes: int = 1
    between_copies: float = 1.0
    hand_over: float = 0.0
    corun_factor: float = 1.0

    @property
    def kinds(self) -> int:
        """Number of kinds, K."""
        return self.kind_of[-1] + 1

    def laid_out(self, table: CostTable) -> CostTable:
        """The table of K kinds with a column per copy and lane."""
        if len(self.kind_of) > self.kinds:
            table = self._copied(table)
        if self.lanes > 1:
            seconds = table.op_seconds[:, 0]
            if not np.isfinite(seconds).any():
                seconds = table.op_seconds  # whatever lanes cannot run at all, the others can
            mean = float(seconds[np.isfinite(seconds)].mean())
            table = with_lanes(table, table.devices[0], self.lanes, hand_over_seconds=self.hand_over * mean)
        return replace(table, corun_factor=self.corun_factor)

    def _copied(self, table: CostTable) -> CostTable:
        kind = np.array(self.kind_of)
        is_between = (kind[:, None] == kind) & ~np.eye(len(kind), dtype=np.bool_)

        def crossing(matrix: FloatArray) -> NDArray[np.float64]:
            mean = float(matrix.mean())
            return np.where(is_between, self.between_copies * mean, matrix[np.ix_(kind, kind)])

        return replace(
            table,
            devices=tuple(f"DEVICE{d}" for d in range(len(kind))),
            op_seconds=table.op_seconds[:, kind],
            transfer_latency=crossing(table.transfer_latency),
            transfer_seconds_per_byte=crossing(table.transfer_seconds_per_byte),
            launch_seconds=table.launch_seconds[kind],
            memory_capacity=table.memory_capacity[kind],
        )


def random_layout(
    devices: int, objective: str, copies: float, lanes: float, random: np.random.Generator
) -> Layout:
    """Draw a layout of D columns.

    Args:
        devices: D.
        objective: ``overlap`` may have lanes.
        copies: Chance that some of three or more columns are copies of one another, or two of two where
            they work at once.
        lanes: Chance of lanes.
        random: Source of everything random.
    """
    at_once = objective == "overlap"
    # Nothing is drawn that is not asked for, so that machines of plain settings stay what they were.
    if at_once and devices >= 2 and lanes > 0 and random.random() < lanes:
        alone = devices == 2 or random.random() < _SHARED_CPU
        others = 0 if alone else int(random.integers(1, min(2, devices - 2) + 1))
        return Layout(
            kind_of=tuple(range(others + 1)),
            lanes=devices - others,
            hand_over=float(10.0 ** random.uniform(*_HAND_OVER)),
            corun_factor=float(random.choice([1.0, 1.03, random.uniform(1.0, 1.25)])),
        )
    if devices >= (2 if at_once else 3) and copies > 0 and random.random() < copies:
        kinds = int(random.integers(1, devices))
        more = random.integers(kinds, size=devices - kinds)
        kind_of = np.sort(np.concatenate([np.arange(kinds), more]))
        return Layout(tuple(kind_of.tolist()), between_copies=float(random.uniform(0.2, 1.5)))
    return Layout(tuple(range(devices)))


def drawn_limits(table: CostTable, layout: Layout, random: np.random.Generator) -> NDArray[np.float64]:
    """Memory of each of K kinds that makes a difference, ``float64[K]``, in bytes; ``inf`` = not limited.

    Where all are limited, they hold up to two and a half times the workload together.
    """
    total = Problem.of(table).units.most_bytes
    count = np.bincount(layout.kind_of, minlength=layout.kinds)
    is_limited = random.random(layout.kinds) < _LIMITED
    is_limited[random.integers(layout.kinds)] = True
    if is_limited.all() and count.sum() > 1:
        share = random.lognormal(0, 0.5, layout.kinds)
        capacity = total * random.uniform(1.15, 2.5) * share / (share * count).sum()
    else:
        capacity = total * random.uniform(0.1, 0.9, layout.kinds)
    return np.where(is_limited & (count.sum() > 1), capacity, np.inf)
