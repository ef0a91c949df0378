"""From a simulated schedule to the plan that the executor runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.lane import Form, Lane
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.simulator import simulate

__all__ = ["lane_plan"]


def lane_plan(
    table: CostTable,
    placement: Placement | ArrayLike,
    lanes: Sequence[Lane],
    forms: Mapping[str, Form] | None = None,
) -> LanePlan:
    """The plan behind the schedule that the objective ``overlap`` simulates for a placement.

    Args:
        table: Costs of G groups on L lanes.
        placement: As for :func:`~ov_autoplace.plan.simulator.simulate`.
        lanes: What each column of the table stands for, L.
        forms: See :class:`~ov_autoplace.plan.plan.LanePlan`.

    Returns:
        Submodels are ranked by their start; a lane may have none.

    Raises:
        PlacementError: The placement does not fit the table or cannot run, or there is not a lane per column.
    """
    if len(lanes) != table.num_devices:
        raise PlacementError(f"{len(lanes)} lanes are given for a cost table of {table.num_devices} columns")
    schedule = simulate(table, placement, "overlap")
    if not np.isfinite(schedule.latency_seconds):
        raise PlacementError(
            "the placement cannot run on lanes: it puts a group where it is not supported, "
            "or parts what must stay in one submodel"
        )
    members = table.members if table.members is not None else tuple((name,) for name in table.names)
    submodel_of = {
        op: submodel
        for ops, submodel in zip(members, schedule.subgraph_of.tolist(), strict=True)
        if submodel >= 0
        for op in ops
    }
    order = np.lexsort((schedule.finish_seconds, schedule.start_seconds))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    lane_of = tuple(schedule.lane_of.tolist())
    return LanePlan(tuple(lanes), submodel_of, lane_of, tuple(rank.tolist()), dict(forms or {}))
