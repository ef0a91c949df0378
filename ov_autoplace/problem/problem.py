"""The question that solvers and policies answer: a cost table under constraints, made once per decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ov_autoplace.cost.table import CostTable
from ov_autoplace.plan.simulator import Objective, objective_of, parts_of
from ov_autoplace.problem.constraints import Constraints
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.units import UnitGraph

__all__ = ["Problem"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Where to place G groups on D devices.

    Attributes:
        table: What everything costs.
        constraints: What a placement must honour, as arrays over the table's groups.
        memory_limits: Bytes by device name, as the user gave them.
        pins: Device by name pattern, as the user gave them.
        objective: What a latency is of, see :mod:`ov_autoplace.plan.simulator`.
    """

    table: CostTable
    constraints: Constraints
    memory_limits: Mapping[str, float] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    objective: str = "hetero"

    @classmethod
    def of(
        cls,
        table: CostTable,
        memory_limits: Mapping[str, float] | None = None,
        pins: Mapping[str, str] | None = None,
        objective: str = "hetero",
    ) -> Problem:
        """The problem of a table and of its user, who gives limits and pins.

        Args:
            table: The cost table.
            memory_limits: Bytes by device name.
            pins: Device by name pattern (``fnmatch``).
            objective: ``hetero``, ``overlap`` or ``rate``.

        Raises:
            OptionError: A limit or a pin cannot be understood, or there is no such objective.
            PlacementError: Some group is left without a device.
        """
        limits, patterns = dict(memory_limits or {}), dict(pins or {})
        piece_of = parts_of(table).piece_of if objective_of(objective).at_once else None
        constraints = Constraints.of(table, limits, patterns, piece_of)
        return cls(table, constraints, limits, patterns, objective)

    def at(self, table: CostTable) -> Problem:
        """The same question at other costs of the same groups."""
        return replace(self, table=table)

    @property
    def scored(self) -> Objective:
        """What follows from the objective."""
        return objective_of(self.objective)

    @property
    def why_no_single(self) -> str:
        """Why there is no placement on one device, where there is none."""
        if not self.table.supported.all(axis=0).any():
            return "no single device can run every op"
        asked = list(dict.fromkeys(self.pins.values()))
        if asked and not self.constraints.allowed.all(axis=0).any():
            if len(asked) == 1:
                return f"the pins ask for {asked[0]}, which cannot run every op"
            return (
                f"the pins ask for {', '.join(asked[:-1])} and {asked[-1]}, so no single device was compared"
            )
        if not self.evaluator.singles():
            return "no single device has room for the model"
        return "no single device could be run"

    @cached_property
    def units(self) -> UnitGraph:
        """What cannot be separated, as one unit each."""
        return UnitGraph.of(self.table, self.constraints)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Scores placements of the units; it remembers them, whoever asks."""
        return Evaluator(self.table, self.units, self.objective)
