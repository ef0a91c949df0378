"""What would change the answer: the same model, solved again on changed costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace._base.statistics import MINIMAL_GAIN
from ov_autoplace._base.text import milliseconds
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import WholePlan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.solvers import solve

if TYPE_CHECKING:
    from ov_autoplace.plan.decision import Candidate

__all__ = ["WhatIf", "what_ifs"]

_LARGE = 10_000  # groups; beyond, solving takes seconds and only the first question is asked


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The best answer under changed costs, as far as costs can tell: a prediction.

    Attributes:
        change: What was changed, in words.
        placed_seconds: Latency of the placement that is explained, under the changed costs.
        best_seconds: Latency of the best placement found under them.
        answer: That placement in words.
        moved_ops: How many ops it runs elsewhere.
        gain: Share of the latency that it saves, 0 to 1.
        proven: Whether no placement is faster under these costs.
        bound_seconds: No placement is faster than this under them; ``None`` = nothing is proven.
        placed_measured_seconds: Of the costs as they are: measured latency of the placement that is
            explained, ``None`` = it was not run.
        best_measured_seconds: The same of the best placement.
    """

    change: str
    placed_seconds: float
    best_seconds: float
    answer: str
    moved_ops: int
    gain: float
    proven: bool
    bound_seconds: float | None = None
    placed_measured_seconds: float | None = None
    best_measured_seconds: float | None = None

    @property
    def is_refuted(self) -> bool:
        """Whether its placement was run, and was not faster than the one that is explained."""
        placed, best = self.placed_measured_seconds, self.best_measured_seconds
        return self.moved_ops > 0 and placed is not None and best is not None and best >= placed

    @property
    def matters(self) -> bool:
        """Whether it saves enough for a decision to take it, and no measurement says otherwise."""
        return self.moved_ops > 0 and self.gain >= MINIMAL_GAIN and not self.is_refuted

    @property
    def best(self) -> str:
        """The best placement in words, and whether it saves too little to be taken."""
        is_too_little = self.moved_ops > 0 and not self.matters and not self.is_refuted
        return f"{self.answer} (too little)" if is_too_little else self.answer

    @property
    def verdict(self) -> str:
        """What was measured of its placement, in words; empty where it was not run."""
        placed, best = self.placed_measured_seconds, self.best_measured_seconds
        if best is None or not self.moved_ops:
            return ""
        if placed is None:
            return f"measured {milliseconds(best)} ms"
        percent = 100 * (best / placed - 1)
        if best >= placed:
            return f"measured {milliseconds(best)} ms, {percent:.1f} % slower, which decided"
        return f"measured {milliseconds(best)} ms, {-percent:.1f} % faster, which proved too little"


def what_ifs(
    explanation: Explanation,
    *,
    memory_limits: Mapping[str, float] | None = None,
    seed: int = 0,
    tried: Sequence[Candidate] = (),
) -> list[WhatIf]:
    """Solve changed versions of a placement's costs as a decision would, and compare with it.

    The first entry is the costs as they are, where measurements of the same placements have the last word.

    Args:
        explanation: The placement, with the pins of the decision.
        memory_limits: Bytes by device, as in the decision.
        seed: Of the solver.
        tried: The candidates of the decision, those that were run with their samples.
    """
    answers = []
    for change, table in _changes(explanation):
        solve_it = partial(
            solve,
            table,
            objective=explanation.objective,
            time_limit=explanation.search_seconds,
            seed=seed,
            memory_limits=memory_limits,
            pins=explanation.pins,
        )
        best, answer = _answer(change, table, explanation, solve_it)
        if table is explanation.table:
            placed = _measured(explanation, explanation.assignment, tried)
            answer = replace(
                answer,
                placed_measured_seconds=placed,
                best_measured_seconds=_measured(explanation, best, tried),
            )
        answers.append(answer)
    return answers


def _measured(explanation: Explanation, assignment: IntArray, tried: Sequence[Candidate]) -> float | None:
    """The shortest measured latency of a placement, on however many threads; ``None`` = nobody ran it."""
    device = explanation.table.devices[int(assignment[0])] if len(np.unique(assignment)) == 1 else ""
    found = []
    for candidate in tried:
        placed = explanation.assignment_of(candidate)
        # Without a cost table, only a plan for one device says where its groups are.
        same = np.array_equal(placed, assignment) or (
            not len(placed) and candidate.plan == WholePlan(device, candidate.plan.width)
        )
        if same and candidate.measured_seconds is not None:
            found.append(candidate.measured_seconds)
    return min(found, default=None)


def _changes(explanation: Explanation) -> Iterator[tuple[str, CostTable]]:
    """What is asked: of devices about their transfers, of lanes about what they cost each other."""
    table, owners = explanation.table, np.array(explanation.table.owners)
    yield "costs as they are", table
    if table.num_devices == 1:
        return
    several, is_large = len(np.unique(owners)) > 1, len(table) > _LARGE
    if several:
        per_byte = frozen_array(table.transfer_seconds_per_byte / 2, np.float64)
        yield "transfers with twice the bandwidth", replace(table, transfer_seconds_per_byte=per_byte)
    if is_large:
        return
    if several:
        fixed = frozen_array(table.transfer_latency / 2, np.float64)
        yield "transfers with half the fixed time", replace(table, transfer_latency=fixed)
    yield "transfers and launches that cost nothing", _without_crossing(table)
    if table.corun_factor > 1:
        yield "lanes that do not slow each other down", replace(table, corun_factor=1.0)
    for device in dict.fromkeys(owners.tolist()):
        own = owners == device
        if own.sum() > 1:
            yield f"one lane of {device} more", _another_lane(table, own)
        if not own[explanation.assignment].all():  # what has everything keeps it when it becomes faster
            yield f"{device} twice as fast", _faster(table, own)


def _without_crossing(table: CostTable) -> CostTable:
    return replace(
        table,
        transfer_seconds_per_byte=np.zeros_like(table.transfer_seconds_per_byte),
        transfer_latency=np.zeros_like(table.transfer_latency),
        launch_seconds=np.zeros_like(table.launch_seconds),
        mix_seconds=0.0,
    )


def _faster(table: CostTable, columns: BoolArray) -> CostTable:
    faster = table.op_seconds.copy()
    faster[:, columns] /= 2
    return replace(table, op_seconds=frozen_array(faster, np.float64))


def _another_lane(table: CostTable, own: BoolArray) -> CostTable:
    """The table with a copy of a device's first lane as its last column."""
    first, second = np.flatnonzero(own)[:2].tolist()
    columns = np.append(np.arange(table.num_devices), first)

    def crossing(matrix: FloatArray) -> FloatArray:
        wider = matrix[np.ix_(columns, columns)]
        # To the copy it is as far as to any other lane.
        wider[first, -1] = wider[-1, first] = matrix[first, second]
        return frozen_array(wider, np.float64)

    return replace(
        table,
        devices=(*table.devices, f"{table.owners[first]}#{int(own.sum())}"),
        lane_devices=(*table.owners, table.owners[first]),
        op_seconds=frozen_array(table.op_seconds[:, columns], np.float64),
        transfer_latency=crossing(table.transfer_latency),
        transfer_seconds_per_byte=crossing(table.transfer_seconds_per_byte),
        launch_seconds=frozen_array(table.launch_seconds[columns], np.float64),
        memory_capacity=frozen_array(table.memory_capacity[columns], np.float64),
    )


def _answer(
    change: str, table: CostTable, explanation: Explanation, search: Callable[[], Placement]
) -> tuple[IntArray, WhatIf]:
    """The best placement under changed costs, ``int32[G]``, and what is to be said of it."""
    assignment, objective = explanation.assignment, explanation.objective
    placed = simulate(table, assignment, objective).latency_seconds
    best = search()
    found, bound = simulate(table, best, objective), best.lower_bound_seconds
    seconds = found.latency_seconds
    if seconds >= placed:
        # The solver knows no better one, and may know the same under another name.
        proven = _is_proven(bound, placed)
        return assignment, WhatIf(change, placed, placed, "the same placement", 0, 0.0, proven, bound)
    moved = np.flatnonzero(best.assignment != assignment).tolist()
    used = [table.devices[d] for d in np.unique(best.assignment).tolist()]
    where = f"{found.subgraphs} {explanation.part}s on {', '.join(used)}"
    return best.assignment, WhatIf(
        change=change,
        placed_seconds=placed,
        best_seconds=seconds,
        answer=where if len(used) > 1 else f"all on {used[0]}",
        moved_ops=sum(map(explanation.num_ops, moved)),
        gain=1.0 - seconds / placed if np.isfinite(placed) else 1.0,
        proven=_is_proven(bound, seconds),
        bound_seconds=bound,
    )


def _is_proven(bound: float | None, seconds: float) -> bool:
    return bound is not None and seconds <= bound * (1 + 1e-6)
