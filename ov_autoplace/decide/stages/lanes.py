"""Lanes and devices that work at once: who could win is simulated, who wins is measured.

A CPU is divided into lanes of equal width, and devices are lanes too. A schedule gives each op to one of
them; its cost is simulated from what the ops take on the width of a lane (the objective ``overlap``), and the
best schedules are raced with the answer so far. ``TUNE`` goes on with schedules for costs that are wrong by
as much as profiles usually are, until its budget ends. Whether a model has branches that are worth dividing
is seen from what is known of it already, so that a chain of ops pays nothing for the question.

Waking a lane takes longer than many an op, so what wins back to back may lose where requests arrive now and
then. Unless the caller says otherwise, a schedule has to win both ways.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from ov_autoplace._base.arrays import IntArray, frozen_array
from ov_autoplace._base.statistics import MINIMAL_GAIN
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.context import Context, Stage
from ov_autoplace.decide.divisions import (
    OPTIMISM,
    Division,
    could_win,
    divisions,
    lanes_for,
    listed_seconds,
    total_seconds,
)
from ov_autoplace.decide.lane_costs import LaneCosts, executor_table, lane_costs
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.decide.widths import width_candidate
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.measure.corrections import perturbed_table
from ov_autoplace.measure.counting import CountedDevices, count_width
from ov_autoplace.plan.decision import Candidate, Scheduled
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import LanePlan, WholePlan
from ov_autoplace.plan.schedulable import reason_not_schedulable
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.registry import solve_problem
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["Lanes"]

_log = logging.getLogger("ov_autoplace")

# Schedules that are compiled and raced, the most promising ones.
_RACED = 2
# How many tables with wrong costs TUNE solves for one race.
_TRIALS = 4
# Racing a schedule with the answer so far, back to back and with pauses, besides compiling it; and counting
# on a lane's threads and searching, for each way to divide a CPU.
_RACE_SECONDS, _SEARCH_SECONDS = 1.5, 0.8
# What that time is reserved for, and the most of what is left of a budget; TUNE has use for all of that.
_PURPOSE, _MOST_RESERVED = "lanes", 0.3


class Lanes(Stage):
    """Submodels that run at once, on lanes and devices."""

    def __init__(self) -> None:
        self._obstacle: str | None = None
        self._search: _Search | None = None

    def estimate(self, context: Context) -> Verdict:
        """The verdict, which says of lanes that were required why there are none."""
        if context.options.executor != "OVERLAP":
            return context.verdict
        return context.verdict.noting(Finding(Kind.LANES_NOT_ESTIMATED))

    def reserve(self, context: Context) -> None:  # noqa: D102
        options = context.options
        executor, grows = options.executor, options.time_budget_ms is None and options.mode != "TUNE"
        if grows or executor == "HETERO" or _obstacle(context) is not None:
            return
        search = _Search(context)
        worthwhile = search.worthwhile(is_required=executor == "OVERLAP")
        may_win = any(map(search.may_win, worthwhile))
        search.reserve(len(worthwhile[:_RACED]), len(worthwhile), goes_on=may_win)

    def propose(self, context: Context) -> list[Candidate]:
        """Schedules that are predicted to win, or the best ones where some are required."""
        if context.options.executor == "HETERO":
            return []
        with context.phase("measure"):
            self._obstacle, self._search = _obstacle(context), _Search(context)
            if self._obstacle is None:
                self._search.run(is_required=context.options.executor == "OVERLAP")
        return self._search.schedules

    def decide(self, context: Context, candidates: Sequence[Candidate]) -> Verdict:
        """Race them with the answer so far, after widths that proved fast while they were looked for."""
        if self._search is None:
            return context.verdict
        with context.phase("measure"):
            return self._raced(context, self._search, list(candidates))

    def _raced(self, context: Context, search: _Search, schedules: list[Candidate]) -> Verdict:
        race, verdict = context.race, context.verdict
        if search.widths:
            search.reserve(len(schedules))
            context.allow(_RACE_SECONDS + 2 * context.compile_seconds)
            verdict = race.challenge(verdict, search.widths)
        context.budget.release(_PURPOSE)
        is_required = context.options.executor == "OVERLAP"
        if not schedules:
            reason = self._obstacle or "no schedule on its lanes can be run"
            return verdict.noting(Finding.of(Kind.NO_EXECUTOR, detail=reason)) if is_required else verdict
        seconds, compilations = _race(len(schedules))
        context.allow(seconds + compilations * context.compile_seconds)
        if context.options.mode == "TUNE":
            found = race.tune_schedules(schedules, search.more)
            schedules, tried = found[:_RACED], found[_RACED:]
            verdict = replace(verdict, candidates=[*verdict.candidates, *tried])
        return race.require(verdict, schedules) if is_required else race.challenge(verdict, schedules)


def _race(schedules: int) -> tuple[float, int]:
    """Seconds of racing so many schedules with the answer so far, and how many compilations that takes."""
    return _RACE_SECONDS, 3 * schedules + 2


def _obstacle(context: Context) -> str | None:
    """Why the executor cannot run the model on this machine, if so."""
    machine, model = context.machine, context.prepared.model
    if len(machine.devices) == 1 and not lanes_for(machine, machine.devices[0], model):
        return f"{machine.devices[0]} cannot be divided into lanes"
    # The op that runs a schedule keeps the weights of all submodels, and the CPU compiles it.
    return reason_not_schedulable(model) or context.known.session.feasibility.refusal("CPU") or None


class _Search:
    """Looks for schedules that could win.

    Args:
        context: The decision.

    Attributes:
        schedules: Those found, the most promising first.
        widths: Widths of lanes on which the whole model was faster than the answer so far, and that nobody
            has raced yet.
    """

    def __init__(self, context: Context) -> None:
        self.schedules: list[Candidate] = []
        self.widths: list[Candidate] = []
        self._context, self._budget = context, context.budget
        self._machine, self._known, self._problem = context.machine, context.known, context.problem
        self._random = np.random.default_rng(context.options.seed)
        self._divided: list[tuple[Division, LaneCosts]] = []
        self._verdict = verdict = context.verdict
        self._best = min([verdict.winner.seconds, *(c.seconds for c in verdict.candidates)])

    def reserve(self, schedules: int, searched: int = 0, *, goes_on: bool = True) -> None:
        """Keep time for racing so many schedules, and for finding some in so many divisions.

        Args:
            schedules: How many; with none, what was kept is free again.
            searched: How many divisions.
            goes_on: ``TUNE`` will go on from them.
        """
        self._budget.release(_PURPOSE)
        options = self._machine.options
        if not schedules or (options.time_budget_ms is None and options.mode != "TUNE"):
            return
        seconds, compilations = _race(schedules)
        seconds += searched * _SEARCH_SECONDS + (compilations + searched) * self._context.compile_seconds
        most = _MOST_RESERVED * self._budget.free
        is_tuned = goes_on and options.mode == "TUNE"
        self._budget.reserve(_PURPOSE, most if is_tuned else min(seconds, most))

    def worthwhile(self, *, is_required: bool) -> list[Division]:
        """The divisions that are worth a search: those that may win, or all where schedules are required."""
        found = divisions(self._machine, self._context.prepared.model)
        return [division for division in found if is_required or self.may_win(division)]

    def run(self, *, is_required: bool) -> None:
        """Find schedules that are predicted to win, or the best ones where some are required."""
        devices = self._machine.devices
        for division in self.worthwhile(is_required=is_required):
            self._context.allow(_SEARCH_SECONDS + self._context.compile_seconds)
            try:
                candidate = self._candidate(division)
            except (PlacementError, ProfilingError) as cause:
                _log.info("%s is left out: %s", division.name(devices), cause)
                continue
            # What devices take is known of themselves, what ops take beside others on lanes is not.
            optimism = 1.0 if division.lanes is None else OPTIMISM
            if candidate is not None and (is_required or optimism * candidate.expected_seconds < self._best):
                self.schedules.append(candidate)
        self.schedules.sort(key=lambda candidate: candidate.expected_seconds)
        del self.schedules[_RACED:]

    def may_win(self, division: Division) -> bool:
        """Whether a division could beat the best so far, by what is known without another measurement."""
        counted, table = self._known.counted, self._known_table
        if division.lanes is None or division.device is None:
            return listed_seconds(table) < (1 - MINIMAL_GAIN) * self._best
        column = counted.columns[table.devices.index(division.device)]
        nodes = int(column.attribution.nodes_run.sum()) + column.other_nodes
        whole = total_seconds(table, division.device)
        raced = self._raced(division.device, division.lanes.width)
        factor = raced.seconds / whole if raced is not None and len(raced.samples) and whole > 0 else None
        return could_win(table, division, nodes, self._best, factor)

    @cached_property
    def _known_table(self) -> CostTable:
        """What single ops take on whole devices."""
        return self._table(self._known.counted)

    def _candidate(self, division: Division) -> Candidate | None:
        """The best schedule of a division, by the times of its lanes; ``None`` where one lane is best.

        Raises:
            ProfilingError: The model cannot be run on the width of a lane.
            PlacementError: No schedule fits into memory, or the executor cannot run it.
        """
        counted = self._known.counted
        if division.lanes is not None and division.device is not None:
            counted = self._counted(division.device, division.lanes.width)
        costs = lane_costs(self._table(counted), counted, division)
        answer = self._budget.timed("schedule", lambda: self._solved(costs.table))
        if len(np.unique(answer.assignment)) < 2:
            return None
        self._divided.append((division, costs))
        return self._scheduled(division, costs, answer, answer.lower_bound_seconds)

    def more(self, tried: Sequence[Candidate]) -> list[Candidate]:
        """The most promising schedules of the best division that were not tried yet, at most ``_RACED``.

        Solved for costs that are wrong by as much as profiles usually are; what they take is simulated by
        the costs as measured.

        Args:
            tried: Schedules, some of them raced.
        """
        best = min(tried, key=lambda candidate: candidate.seconds)
        division, costs = next(
            (division, costs)
            for division, costs in self._divided
            if best.scheduled is not None and costs.table is best.scheduled.table
        )
        known = {candidate.plan.key for candidate in tried}
        found: list[Candidate] = []
        for _ in range(_TRIALS):
            if not self._budget.allows(self._budget.duration("schedule")):
                break
            wrong, seed = perturbed_table(costs.table, self._random), int(self._random.integers(2**31))
            try:
                answer = self._budget.timed("schedule", partial(self._solved, wrong, seed))
                candidate = self._scheduled(division, costs, answer)
            except PlacementError:
                continue  # the executor cannot run it
            if candidate.plan.key not in known:
                known.add(candidate.plan.key)
                found.append(candidate)
        found = sorted(found, key=lambda candidate: candidate.expected_seconds)[:_RACED]
        for number, candidate in enumerate(found, len(tried)):
            candidate.name += f", tuned {number}"
        return found

    def _solved(self, table: CostTable, seed: int | None = None) -> Placement:
        """The default solver's schedule; seeds other than the user's find others.

        Raises:
            PlacementError: None fits into memory.
        """
        options = self._machine.options
        question = Problem.of(table, options.memory_limits, options.pins, "overlap")
        asked = SolverOptions(seed=options.seed if seed is None else seed)
        return solve_problem(question, "portfolio", asked)

    def _scheduled(
        self, division: Division, costs: LaneCosts, answer: Placement, bound: float | None = None
    ) -> Candidate:
        """A candidate, whose latency is simulated by the costs.

        Raises:
            PlacementError: The executor cannot run it.
        """
        plan = costs.plan(answer)
        simulated = simulate(costs.table, answer.assignment, objective="overlap")
        return Candidate(
            name=division.name(list(dict.fromkeys(lane.device for lane in plan.lanes))),
            plan=plan,
            predicted_seconds=simulated.latency_seconds,
            subgraphs=len(plan.lane_of),
            assignment=_devices_of(plan, self._problem.table),
            lower_bound_seconds=bound,
            scheduled=Scheduled(costs.table, answer.assignment),
        )

    def _counted(self, device: str, width: Width) -> CountedDevices:
        """What the model takes on the width of a lane; a width that proves fast is remembered."""
        counted = count_width(self._known.session, self._known.counted, device, width, self._budget)
        raced = self._raced(device, width)
        if raced is not None:
            # While nodes are counted, all of them take a little longer.
            samples = raced.samples if len(raced.samples) else counted.samples[device]
            return replace(counted, samples={**counted.samples, device: samples})
        seconds = float(np.median(counted.samples[device]))
        alone = self._verdict.alone(device)
        if alone is not None and seconds < (1 - MINIMAL_GAIN) * self._best:
            self.widths.append(width_candidate(alone, device, width, seconds))
        return counted

    def _raced(self, device: str, width: Width) -> Candidate | None:
        """The candidate of a width, where there was one."""
        name = WholePlan(device, width).name
        return next((c for c in self._verdict.candidates if c.name == name), None)

    def _table(self, counted: CountedDevices) -> CostTable:
        """Costs for the executor; transfers and launches are those that the costs so far rest on."""
        costs = self._problem.table
        transfers = TransferFit(
            costs.devices, costs.transfer_latency, costs.transfer_seconds_per_byte, costs.launch_seconds
        )
        feasibility, pins = self._known.session.feasibility, self._machine.options.pins
        return executor_table(feasibility, counted, pins, transfers)


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
