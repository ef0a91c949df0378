"""Lanes and devices that work at once: who could win is simulated, who wins is measured.

A CPU is divided into lanes of equal width, and devices are lanes too. A schedule gives each op to one of
them; its cost is simulated from what the ops take on the width of a lane (the objective ``overlap``), and the
best schedules are raced with the answer so far. Whether a model has branches that are worth dividing is
seen from what is known of it already, so that a chain of ops pays nothing for the question.

Waking a lane takes longer than many an op, so what wins back to back may lose where requests arrive now and
then. Unless the caller says otherwise, a schedule has to win both ways.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import IntArray, frozen_array
from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.lanes import EXECUTOR_SECONDS, with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.costs import Measured
from ov_autoplace.decide.divisions import (
    Division,
    could_win,
    divisions,
    lanes_for,
    listed_seconds,
    total_seconds,
)
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.proposals import ProposalSource
from ov_autoplace.decide.race import Race
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.counting import CountedDevices, count_width
from ov_autoplace.measure.profiled import counted_profile
from ov_autoplace.placement.decision import Candidate, Scheduled
from ov_autoplace.placement.lane_plan import Form, Lane, LanePlan, lane_plan
from ov_autoplace.placement.scheduled import reason_not_schedulable
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.registry import solve_problem
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["scheduled"]

_log = logging.getLogger("ov_autoplace")

# Schedules that are compiled and raced, the most promising ones.
_RACED = 2
# Racing a schedule with the answer so far, back to back and with pauses, besides compiling it; and counting
# on a lane's threads and searching, for each way to divide a CPU.
_RACE_SECONDS, _SEARCH_SECONDS = 1.5, 0.8


def scheduled(
    machine: Machine,
    known: Measured,
    prepared: PreparedModel,
    problem: Problem,
    verdict: Verdict,
    budget: Budget,
) -> Verdict:
    """The verdict after a race of its winner with schedules on lanes, where those could win.

    Args:
        machine: The devices.
        known: What was measured of the model on each of them.
        prepared: The model.
        problem: Its costs.
        verdict: The answer so far.
        budget: Grows by what this takes, unless the user gave it.
    """
    options = machine.options
    if options.executor == "HETERO":
        return verdict
    is_demanded = options.executor == "OVERLAP"
    reason = _obstacle(machine, prepared)
    found: list[Candidate] = []
    if reason is None:
        found = _challengers(machine, known, prepared, problem, verdict, budget, is_demanded)
        reason = "no schedule on its lanes can be run" if is_demanded else None
    if not found:
        if is_demanded:
            return replace(verdict, reason=f"{verdict.reason}; the executor cannot run the model: {reason}")
        return verdict
    if options.time_budget_ms is None:
        compile_seconds = known.counted.compile_seconds / len(machine.devices)
        budget.seconds += _RACE_SECONDS + (3 * len(found) + 2) * compile_seconds
    race = Race(known.session, problem, known.counted.samples, ProposalSource(()), options, budget)
    return race.demand(verdict, found) if is_demanded else race.challenge(verdict, found)


def _obstacle(machine: Machine, prepared: PreparedModel) -> str | None:
    """Why the executor cannot run a model on this machine, if so."""
    if len(machine.devices) == 1 and not lanes_for(machine, machine.devices[0], prepared.model):
        return f"{machine.devices[0]} cannot be divided into lanes"
    return reason_not_schedulable(prepared.model)


def _challengers(
    machine: Machine,
    known: Measured,
    prepared: PreparedModel,
    problem: Problem,
    verdict: Verdict,
    budget: Budget,
    is_demanded: bool,
) -> list[Candidate]:
    """Schedules that are predicted to beat the answer so far, or the best ones where some are demanded."""
    rivals = [c.seconds for c in verdict.candidates if len(c.samples)]
    best = min([verdict.winner.seconds, *rivals])
    found = []
    for division in divisions(machine, prepared.model):
        if not is_demanded and not _may_win(machine, known, problem, verdict, division, best):
            continue
        if machine.options.time_budget_ms is None:
            budget.seconds += _SEARCH_SECONDS + known.counted.compile_seconds / len(machine.devices)
        try:
            candidate = _candidate(machine, known, problem, verdict, division, budget)
        except (PlacementError, ProfilingError) as cause:
            _log.info("%s is left out: %s", division.name(machine.devices), cause)
            continue
        if candidate is not None and (is_demanded or candidate.promised_seconds < best):
            found.append(candidate)
    return sorted(found, key=lambda candidate: candidate.promised_seconds)[:_RACED]


def _may_win(
    machine: Machine, known: Measured, problem: Problem, verdict: Verdict, division: Division, best: float
) -> bool:
    """Whether a division could beat the best so far, by what is known without another measurement."""
    table = _table(known, known.counted, machine, problem.table)
    if division.lanes is None:
        return listed_seconds(table) < (1 - MINIMAL_GAIN) * best
    column = table.devices.index(division.device or "")
    counted = known.counted.columns[column]
    nodes = int(counted.attribution.nodes_run.sum()) + counted.other_nodes
    whole = total_seconds(table, division.device or "")
    measured = _samples(verdict, division)
    factor = float(np.median(measured)) / whole if len(measured) and whole > 0 else None
    return could_win(table, division, nodes, best, factor)


def _candidate(
    machine: Machine,
    known: Measured,
    problem: Problem,
    verdict: Verdict,
    division: Division,
    budget: Budget,
) -> Candidate | None:
    """The best schedule of a division, by the times of its lanes; ``None`` where one lane is best.

    Raises:
        ProfilingError: The model cannot be run on the width of a lane.
        PlacementError: No schedule fits into memory, or the executor cannot run it.
    """
    counted, session = known.counted, known.session
    if division.lanes is not None and division.device is not None:
        counted = count_width(session, counted, division.device, division.lanes.width, budget)
        raced = _samples(verdict, division)
        if len(raced):  # while nodes are counted, all of them take a little longer
            counted = replace(counted, samples={**counted.samples, division.device: raced})
    table = _table(known, counted, machine, problem.table)
    if division.lanes is not None and division.device is not None:
        table = with_lanes(table, division.device, division.lanes.count)
    options = machine.options
    question = Problem.of(table, options.memory_limits, options.pins, "overlap")
    answer = solve_problem(question, "auto", SolverOptions(seed=options.seed))
    used = np.unique(answer.assignment)
    if len(used) < 2 or answer.latency_seconds is None:
        return None
    forms = _forms(counted) if division.lanes is not None else {}
    plan = lane_plan(table, answer.assignment, _lanes_of(table, division), forms)
    owners = dict.fromkeys(lane.device for lane in plan.lanes)
    return Candidate(
        name=division.name(list(owners)),
        predicted_seconds=answer.latency_seconds,
        subgraphs=len(plan.lane_of),
        assignment=_devices_of(plan, problem.table),
        lower_bound_seconds=answer.lower_bound_seconds,
        scheduled=Scheduled(plan, table, answer.assignment),
    )


def _table(known: Measured, counted: CountedDevices, machine: Machine, costs: CostTable) -> CostTable:
    """Costs of single ops, and of the executor, whose submodels start like any inference.

    Args:
        known: The model on its devices.
        counted: Its node times.
        machine: The devices.
        costs: Where transfers and launches are known from.
    """
    transfers = TransferFit(
        costs.devices, costs.transfer_latency, costs.transfer_seconds_per_byte, costs.launch_seconds
    )
    pins = machine.options.pins
    table = counted_profile(known.session.room, counted, pins, transfers, separable=True).table
    return replace(table, mix_seconds=EXECUTOR_SECONDS)


def _forms(counted: CountedDevices) -> dict[str, Form]:
    """How tensors lie in memory, where that is the same on all devices."""
    first, *others = (column.attribution.forms for column in counted.columns)
    return {name: form for name, form in first.items() if all(form == o.get(name) for o in others)}


def _samples(verdict: Verdict, division: Division) -> np.ndarray:
    """What was measured of the model on the width of a division's lanes; empty where nothing was."""
    if division.lanes is None:
        return np.empty(0)
    raced = [
        c.samples
        for c in verdict.candidates
        if c.width == division.lanes.width and c.name.partition(" (")[0] == division.device
    ]
    return raced[0] if raced else np.empty(0)


def _lanes_of(table: CostTable, division: Division) -> list[Lane]:
    """The lane behind each column of a table."""
    owners = table.devices if table.lane_devices is None else table.lane_devices
    return [
        Lane.of(owner, division.lanes.width.properties if division.lanes and owner == division.device else {})
        for owner in owners
    ]


def _devices_of(plan: LanePlan, table: CostTable) -> IntArray:
    """The device that runs most ops of each group of a table, ``int32[G]``."""
    position = {device: d for d, device in enumerate(table.devices)}
    result = np.zeros(len(table), dtype=np.int32)
    members = table.members if table.members is not None else tuple((name,) for name in table.names)
    for g, ops in enumerate(members):
        ran = [
            position[plan.lanes[plan.lane_of[plan.submodel_of[op]]].device]
            for op in ops
            if op in plan.submodel_of
        ]
        result[g] = np.bincount(ran).argmax() if ran else 0
    return frozen_array(result, np.int32)
