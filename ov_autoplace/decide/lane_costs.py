"""What a model costs on the lanes of a divided machine, and the plan of a placement on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ov_autoplace.cost.lanes import EXECUTOR_SECONDS, with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.divisions import Division
from ov_autoplace.measure.counting import CountedDevices
from ov_autoplace.measure.feasibility import Feasibility
from ov_autoplace.measure.profiled import counted_profile
from ov_autoplace.plan.lane import Form, Lane
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.planning import lane_plan

__all__ = ["LaneCosts", "executor_table", "lane_costs"]


@dataclass(frozen=True, eq=False)
class LaneCosts:
    """Costs on L lanes, and what a plan for them needs besides.

    Attributes:
        table: Costs of G groups on the lanes.
        lanes: What each column of the table stands for, L.
        forms: How tensors lie in memory where they are made.
    """

    table: CostTable
    lanes: tuple[Lane, ...]
    forms: Mapping[str, Form]

    def plan(self, placement: Placement) -> LanePlan:
        """How a placement on the lanes is run.

        Args:
            placement: Of the table's groups.

        Raises:
            PlacementError: It cannot run.
        """
        return lane_plan(self.table, placement, self.lanes, self.forms)


def executor_table(
    feasibility: Feasibility, counted: CountedDevices, pins: Mapping[str, str], transfers: TransferFit
) -> CostTable:
    """Costs of single ops, and of the executor, whose submodels start like any inference.

    Args:
        feasibility: What of the model each device can run and hold.
        counted: Seconds of every op on every device.
        pins: Groups by pins of ops.
        transfers: What crossings cost.
    """
    return replace(
        counted_profile(feasibility, counted, pins, transfers, separable=True).table,
        mix_seconds=EXECUTOR_SECONDS,
    )


def lane_costs(table: CostTable, counted: CountedDevices, division: Division) -> LaneCosts:
    """Costs on the lanes of a division.

    Args:
        table: Of :func:`executor_table`, from ``counted``.
        counted: Seconds of every op, those of the divided device on the width of a lane.
        division: How the machine is divided.
    """
    forms: dict[str, Form] = {}
    if division.lanes is not None and division.device is not None:
        table = with_lanes(table, division.device, division.lanes.count)
        forms = _forms(counted)
    return LaneCosts(table, _lanes_of(table, division), forms)


def _forms(counted: CountedDevices) -> dict[str, Form]:
    """How tensors lie in memory, where that is the same on all devices."""
    first, *others = (column.attribution.forms for column in counted.columns)
    return {name: form for name, form in first.items() if all(form == o.get(name) for o in others)}


def _lanes_of(table: CostTable, division: Division) -> tuple[Lane, ...]:
    """The lane behind each column of a table."""
    return tuple(
        Lane.of(owner, division.lanes.width.properties if division.lanes and owner == division.device else {})
        for owner in table.owners
    )
