"""Candidate placements of a cost table: single devices, default HETERO, answers of solvers and the policy."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.options import DEFAULT_SOLVERS, POLICY_SOLVER
from ov_autoplace.errors import CheckpointError, PlacementError
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.runner import PolicyRunner, choose, draw
from ov_autoplace.problem.constraints import Constraints
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers import solve

__all__ = ["POLICY_NAME", "Proposal", "ProposalSource", "propose"]

_log = logging.getLogger("ov_autoplace")

HETERO_NAME = "HETERO"
POLICY_NAME = POLICY_SOLVER
_SAMPLES, _KEPT_SAMPLES = 8, 3


@dataclass(frozen=True, eq=False)
class Proposal:
    """One legal placement.

    Attributes:
        name: A device's name for a single-device placement, ``HETERO``, the solver's name, ``policy`` for the
            policy's greedy answer, or ``policy sample 3``.
        assignment: Device of each group, ``int32[G]``.
        predicted_seconds: Simulated latency.
        lower_bound_seconds: Proven bound below all placements, when the source proves one.
        also: Names of the other sources that proposed the same placement.
    """

    name: str
    assignment: IntArray
    predicted_seconds: float
    lower_bound_seconds: float | None = None
    also: tuple[str, ...] = ()

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
        solvers: Names of the solvers to ask, in order; ``policy`` among them is the turn of ``policy``.
        policy: The policy to ask, after the solvers unless it has a turn among them, or ``None``.
        policy_is_demanded: Whether a policy that cannot be run is an error, not only a warning.
    """

    memory_limits: Mapping[str, float] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    solvers: Sequence[str] = DEFAULT_SOLVERS
    policy: PolicyRunner | None = None
    policy_is_demanded: bool = False


def propose(table: CostTable, source: ProposalSource) -> list[Proposal]:
    """All candidates in the order in which they are thought of; equal placements are kept once.

    Raises:
        PlacementError: No placement honours the constraints.
        CheckpointError: A demanded policy cannot be run.
    """
    constraints = Constraints.of(table, source.memory_limits, source.pins)
    found: dict[bytes, Proposal] = {}
    failures: list[PlacementError] = []
    for name, assignment, bound in _assignments(table, constraints, source, failures):
        assignment = assignment.astype(np.int32)
        key = assignment.tobytes()
        known = found.get(key)
        if known is None:
            found[key] = Proposal(name, assignment, simulate(table, assignment).latency_seconds, bound)
        else:
            # A solver may prove something about a placement that was known.
            proven = known.lower_bound_seconds if bound is None else bound
            found[key] = replace(known, lower_bound_seconds=proven, also=(*known.also, name))
    # HETERO would cut what must stay together in the others, whatever the groups say.
    proposals = [p for p in found.values() if np.isfinite(p.predicted_seconds)]
    if not proposals:
        raise PlacementError(
            f"no placement on {', '.join(table.devices)} was found that honours the pins and memory limits "
            "and keeps each variable in one subgraph; loosen the pins or the limits"
            + "".join(f" ({cause})" for cause in failures[:1])
        )
    return proposals


def _assignments(
    table: CostTable, constraints: Constraints, source: ProposalSource, failures: list[PlacementError]
) -> Iterator[tuple[str, IntArray, float | None]]:
    """Answers with their names and bounds; why a solver has none is added to ``failures``."""
    for d, device in enumerate(table.devices):
        if _honours(table, constraints, everywhere := np.full(len(table), d, dtype=np.int32)):
            yield device, everywhere, None
    by_priority = constraints.allowed.argmax(axis=1).astype(np.int32)
    if _honours(table, constraints, by_priority):
        yield HETERO_NAME, by_priority, None
    for name in dict.fromkeys([*source.solvers, POLICY_NAME]):
        if name == POLICY_NAME:
            yield from _policy_answers(table, constraints, source)
        else:
            try:
                placement = solve(
                    table, name, seed=source.seed, memory_limits=source.memory_limits, pins=source.pins
                )
            except PlacementError as cause:
                # A simple solver may find no way where another does; who named it wants to know.
                level = logging.DEBUG if name in DEFAULT_SOLVERS else logging.WARNING
                _log.log(level, "the solver %s proposes nothing: %s", name, cause)
                failures.append(cause)
                continue
            yield placement.solver, placement.assignment, placement.lower_bound_seconds


def _policy_answers(
    table: CostTable, constraints: Constraints, source: ProposalSource
) -> Iterator[tuple[str, IntArray, None]]:
    """The policy's greedy answer, and those of a few draws that are predicted to be fastest."""
    if source.policy is None:
        return
    graph = policy_graph(table, constraints)
    try:
        scores = source.policy.scores(graph)
    except CheckpointError as cause:
        if source.policy_is_demanded:
            raise
        _log.warning("the policy proposes nothing: %s", cause)
        return
    answers: list[IntArray] = []
    try:
        answers.append(choose(scores, graph))
        answers.extend(draw(scores, graph, _SAMPLES, source.seed))
    except PlacementError:
        pass  # the policy found nothing, or no more, that fits into memory
    evaluator = Evaluator(table, UnitGraph.of(table, constraints))
    if not answers:
        return
    distinct = {device.tobytes(): i for i, device in reversed(list(enumerate(answers)))}
    numbers = sorted(distinct.values())
    latencies = evaluator.latencies([answers[i] for i in numbers])
    drawn = [numbers[i] for i in np.argsort(latencies, kind="stable") if numbers[i] > 0]
    for i in [*(n for n in numbers if n == 0), *drawn[:_KEPT_SAMPLES]]:
        yield f"{POLICY_NAME} sample {i}" if i else POLICY_NAME, answers[i][graph.unit_of], None


def _honours(table: CostTable, constraints: Constraints, assignment: IntArray) -> bool:
    allowed = constraints.allowed[np.arange(len(table)), assignment].all()
    held = held_bytes(table, assignment)
    first = np.full(constraints.unit_of.max(initial=-1) + 1, -1, dtype=np.int32)
    first[constraints.unit_of] = assignment
    together = (first[constraints.unit_of] == assignment).all()
    return bool(allowed and together and (held <= constraints.memory_capacity * (1 + 1e-12)).all())
