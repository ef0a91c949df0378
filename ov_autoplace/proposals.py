"""Candidate placements of a cost table: every single device, default HETERO, and each solver's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ov_autoplace._arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.simulator import simulate
from ov_autoplace.solvers import solve
from ov_autoplace.solvers.constraints import Constraints

__all__ = ["Proposal", "ProposalSource", "propose"]

HETERO_NAME = "HETERO"


@dataclass(frozen=True, eq=False)
class Proposal:
    """One legal placement.

    Attributes:
        name: A device's name for a single-device placement, ``HETERO``, or the solver's name.
        assignment: Device of each group, ``int32[G]``.
        predicted_seconds: Simulated latency.
        lower_bound_seconds: Proven bound below all placements, when the source proves one.
    """

    name: str
    assignment: IntArray
    predicted_seconds: float
    lower_bound_seconds: float | None = None

    @property
    def is_single(self) -> bool:
        """Whether all groups stand on one device."""
        return bool((self.assignment == self.assignment[0]).all()) if len(self.assignment) else True


@dataclass(frozen=True)
class ProposalSource:
    """Where proposals come from, for one model and its constraints.

    Attributes:
        memory_limits: Bytes by device.
        pins: Device by op name pattern.
        seed: Of the solvers.
        solvers: Names of the solvers to ask, in order.
    """

    memory_limits: Mapping[str, float] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    solvers: Sequence[str] = ("auto", "greedy")


def propose(table: CostTable, source: ProposalSource) -> list[Proposal]:
    """All candidates in the order in which they are thought of; equal placements are kept once.

    Raises:
        PlacementError: No placement honours the constraints.
    """
    constraints = Constraints.of(table, source.memory_limits, source.pins)
    seen: set[bytes] = set()
    proposals: list[Proposal] = []
    for name, assignment, bound in _assignments(table, constraints, source):
        assignment = assignment.astype(np.int32)
        if assignment.tobytes() in seen:
            if bound is not None:  # the solver proved something about a placement that was known
                proposals = [_with_bound(p, assignment, bound) for p in proposals]
            continue
        seen.add(assignment.tobytes())
        seconds = simulate(table, assignment).latency_seconds
        if not np.isfinite(seconds):
            continue  # HETERO would cut what must stay together, whatever the groups say
        proposals.append(Proposal(name, assignment, seconds, bound))
    if not proposals:
        raise PlacementError(
            f"no placement on {', '.join(table.devices)} was found that honours the pins and memory limits "
            "and keeps each variable in one subgraph; loosen the pins or the limits"
        )
    return proposals


def _assignments(
    table: CostTable, constraints: Constraints, source: ProposalSource
) -> Iterator[tuple[str, IntArray, float | None]]:
    for d, device in enumerate(table.devices):
        if _honours(table, constraints, everywhere := np.full(len(table), d, dtype=np.int32)):
            yield device, everywhere, None
    by_priority = constraints.allowed.argmax(axis=1).astype(np.int32)
    if _honours(table, constraints, by_priority):
        yield HETERO_NAME, by_priority, None
    for name in source.solvers:
        try:
            placement = solve(
                table,
                name,
                seed=source.seed,
                memory_limits=source.memory_limits,
                pins=source.pins,
            )
        except PlacementError:
            continue  # a simple solver may find no way where another does
        yield placement.solver, placement.assignment, placement.lower_bound_seconds


def _honours(table: CostTable, constraints: Constraints, assignment: IntArray) -> bool:
    allowed = constraints.allowed[np.arange(len(table)), assignment].all()
    held = np.bincount(assignment, weights=table.memory_bytes, minlength=table.num_devices)
    first = np.full(constraints.unit_of.max(initial=-1) + 1, -1, dtype=np.int32)
    first[constraints.unit_of] = assignment
    together = (first[constraints.unit_of] == assignment).all()
    return bool(allowed and together and (held <= constraints.memory_capacity).all())


def _with_bound(proposal: Proposal, assignment: IntArray, bound: float) -> Proposal:
    if not np.array_equal(proposal.assignment, assignment):
        return proposal
    return Proposal(proposal.name, proposal.assignment, proposal.predicted_seconds, bound)
