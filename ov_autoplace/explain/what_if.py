"""What would change the answer: the same model, solved again on changed costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ov_autoplace._base.arrays import IntArray, frozen_array
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.solvers import solve

__all__ = ["WhatIf", "what_ifs"]

_LARGE = 10_000  # groups; beyond, solving takes seconds and only the first question is asked


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The best answer under changed costs.

    Attributes:
        change: What was changed, in words.
        placed_seconds: Latency of the placement that is explained, under the changed costs.
        best_seconds: Latency of the best placement found under them.
        answer: That placement in words.
        moved_ops: How many ops it runs elsewhere.
        gain: Share of the latency that it saves, 0 to 1.
        proven: Whether no placement is faster under these costs.
    """

    change: str
    placed_seconds: float
    best_seconds: float
    answer: str
    moved_ops: int
    gain: float
    proven: bool

    @property
    def matters(self) -> bool:
        """Whether it saves enough for a decision to take it."""
        return self.moved_ops > 0 and self.gain >= MINIMAL_GAIN


def what_ifs(
    table: CostTable,
    assignment: IntArray,
    *,
    memory_limits: Mapping[str, float] | None = None,
    pins: Mapping[str, str] | None = None,
    seed: int = 0,
) -> list[WhatIf]:
    """Solve changed versions of a table exactly as a decision would, and compare with one placement.

    The first entry is the table as it is.

    Args:
        table: Costs of G groups.
        assignment: The placement that is explained, ``int32[G]``.
        memory_limits: Bytes by device, as in the decision.
        pins: Device by op name pattern, as in the decision.
        seed: Of the solver.
    """
    return [
        _answer(change, changed, assignment, memory_limits, pins, seed)
        for change, changed in _changes(table, assignment)
    ]


def _changes(table: CostTable, assignment: IntArray) -> Iterator[tuple[str, CostTable]]:
    yield "costs as they are", table
    if table.num_devices == 1:
        return
    per_byte, fixed = table.transfer_seconds_per_byte, table.transfer_latency
    yield (
        "transfers with twice the bandwidth",
        replace(table, transfer_seconds_per_byte=frozen_array(per_byte / 2, np.float64)),
    )
    if len(table) > _LARGE:
        return
    yield (
        "transfers with half the fixed time",
        replace(table, transfer_latency=frozen_array(fixed / 2, np.float64)),
    )
    yield (
        "transfers and launches that cost nothing",
        replace(
            table,
            transfer_seconds_per_byte=np.zeros_like(per_byte),
            transfer_latency=np.zeros_like(fixed),
            launch_seconds=np.zeros_like(table.launch_seconds),
            mix_seconds=0.0,
        ),
    )
    for d, device in enumerate(table.devices):
        if (assignment == d).all():
            continue  # a device that has everything keeps it when it becomes faster
        faster = table.op_seconds.copy()
        faster[:, d] /= 2
        yield f"{device} twice as fast", replace(table, op_seconds=frozen_array(faster, np.float64))


def _answer(
    change: str,
    table: CostTable,
    assignment: IntArray,
    memory_limits: Mapping[str, float] | None,
    pins: Mapping[str, str] | None,
    seed: int,
) -> WhatIf:
    placed = simulate(table, assignment).latency_seconds
    best = solve(table, seed=seed, memory_limits=memory_limits, pins=pins)
    seconds = simulate(table, best.assignment)
    if seconds.latency_seconds >= placed:
        # The solver knows no better one, and may know the same under another name.
        return WhatIf(change, placed, placed, "the same placement", 0, 0.0, _is_proven(best, placed))
    moved = np.flatnonzero(best.assignment != assignment)
    used = [table.devices[d] for d in np.unique(best.assignment).tolist()]
    answer = f"{seconds.subgraphs} subgraphs on {', '.join(used)}" if len(used) > 1 else f"all on {used[0]}"
    return WhatIf(
        change=change,
        placed_seconds=placed,
        best_seconds=seconds.latency_seconds,
        answer=answer,
        moved_ops=sum(len(table.members[g]) if table.members is not None else 1 for g in moved.tolist()),
        gain=1.0 - seconds.latency_seconds / placed if np.isfinite(placed) else 1.0,
        proven=_is_proven(best, seconds.latency_seconds),
    )


def _is_proven(best: Placement, seconds: float) -> bool:
    bound = best.lower_bound_seconds
    return bound is not None and seconds <= bound * (1 + 1e-6)
