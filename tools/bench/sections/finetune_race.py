"""The last race of the section ``finetune``: what the placements that its runs found are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from harness.environment import PAIRS, core_of, executor_of
from harness.race import Load, race, session_of
from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.widths import widths_for
from ov_autoplace.devices.widths import Width
from ov_autoplace.plan.partition import completed
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import Plan, WholePlan
from ov_autoplace.plan.planning import lane_plan
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import solve
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.lanes import canonical, divided_model
from ov_autoplace.training.finetuning.task import AFTER

WITHIN = 1.01
"""A latency counts as reached when it is at most this times the best known."""

_FINALISTS = 3  # of each run, into the last race
_CHECKS = 4  # races of claims
_FASTEST = 6  # placements to be compiled again
_COPIES = 2
_OPENING_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class Entry:
    """A placement of a model.

    Attributes:
        table: Names the groups and the columns.
        assignment: Column of each group, ``int32[G]``.
    """

    table: CostTable
    assignment: IntArray

    @classmethod
    def of(cls, table: CostTable, assignment: IntArray) -> Entry:
        """Equal lanes in the order in which they are first used."""
        if table.lane_devices is None:
            return cls(table, assignment)
        problem = Problem.of(table, objective="overlap")
        units = problem.units
        return cls(table, units.to_groups(canonical(problem, units.from_groups(assignment))))

    @classmethod
    def of_line(cls, table: CostTable, line: Mapping[str, Any]) -> Entry:
        """The placement of a line of a log."""
        codes = [ord(c) - ord("0") for c in line["placement"]]
        return cls.of(table, np.array(codes, dtype=np.int32))

    @cached_property
    def device_of(self) -> dict[str, str]:
        """Column of each op."""
        return Placement.of_groups(self.table, self.assignment).to_dict()

    @cached_property
    def text(self) -> str:
        """The same for the same placement, whatever groups it was made of."""
        return " ".join(self.device_of[name] for name in sorted(self.device_of))


class LastRace:
    """Races of placements of one model, relative to the pair's last device alone, which is the CPU.

    Attributes:
        session: The model, which is run as it is.
        singles: Text of each device alone by its name; of lanes, of the whole model on each width.
        ratios: Latency over the reference's, by text: of the last races that each was in.
    """

    def __init__(self, pair: str, model: str, entries: Sequence[Entry], seconds: float) -> None:
        self._seconds = seconds
        self._entries = {entry.text: entry for entry in entries}
        self._alone = self._open_lanes(model) if len(PAIRS[pair]) == 1 else self._open(pair, model)
        self._reference = list(self.singles.values())[-1]
        self.ratios: dict[str, float] = {}
        everybody = [*self.singles.values(), *self._entries]
        self._race(everybody, 1, set(everybody))
        fastest = sorted(self.ratios, key=self.ratios.__getitem__)[:_FASTEST]
        self._final = dict.fromkeys([*self.singles.values(), *fastest])
        self._race(list(self._final), _COPIES, set(self._final))

    def _open(self, pair: str, model: str) -> dict[str, Plan]:
        """Open the session; the plans of devices alone by text."""
        core, devices = core_of(pair), PAIRS[pair]
        self.session = session_of(core, core.read_model(model), devices, seed=0)
        ops = next(iter(self._entries.values())).device_of
        self.singles = {device: " ".join([device] * len(ops)) for device in devices}
        return {text: WholePlan(device) for device, text in self.singles.items()}

    def _open_lanes(self, model: str) -> dict[str, Plan]:
        options = PlacerOptions(executor="OVERLAP", isolation=False)
        machine = Machine(core_of("cpu"), PAIRS["cpu"], options)
        divided = divided_model(machine.core.read_model(model), machine, TuningBudget(_OPENING_SECONDS))
        self.session, self._costs = divided.session, divided.costs
        (device,) = PAIRS["cpu"]
        # TUNE also tries one thread that is the caller's.
        widths = *widths_for(machine, device, self.session.model), Width(1, in_caller=True)
        alone = [*(WholePlan(device, width) for width in widths), WholePlan(device)]
        self.singles = {plan.name: plan.name for plan in alone}
        return {plan.name: plan for plan in alone}

    def _plan(self, text: str) -> Plan:
        """Of a placement that was entered, or of a device alone."""
        if text in self._alone:
            return self._alone[text]
        entry = self._entries[text]
        if entry.table.lane_devices is not None:
            return lane_plan(entry.table, entry.assignment, self._costs.lanes, self._costs.forms)
        return Placement.from_dict(completed(self.session.model, entry.device_of)).plan

    def text_of(self, entry: Entry, best_single: str) -> str:
        """What a placement is called here; on the first lane alone, it is its run's fastest width."""
        on_lanes = entry.table.lane_devices is not None
        return best_single if on_lanes and not entry.assignment.any() else entry.text

    @property
    def best(self) -> str:
        """The fastest placement of those that were compiled again."""
        return min(self._final, key=lambda text: self.ratios.get(text, np.inf))

    @property
    def best_single(self) -> float:
        """Ratio of the fastest device alone, of those that can run the model."""
        return min(self.ratios.get(text, np.inf) for text in self.singles.values())

    def check(self, entries: Mapping[str, Entry]) -> None:
        """Race more placements beside the best one."""
        self._entries |= entries
        self._race([*self.singles.values(), self.best, *entries], _COPIES, set(entries))

    def _race(self, texts: Sequence[str], copies: int, about: set[str]) -> None:
        """Compile and race placements; note the ratios of some of them."""
        plans = {text: self._plan(text) for text in texts}
        raced = race(self.session, plans, self._seconds, 0, copies=copies)
        for text in about.intersection(raced.samples[Load.STEADY]):
            self.ratios[text] = raced.ratio(text, self._reference, Load.STEADY).median


@dataclass(frozen=True)
class Outcome:
    """What one run was worth.

    Attributes:
        kind: Which policy, and what it learned from.
        evaluations: Placements that it proposed until one was within 1 % of the best known; ``None`` = never.
        of: How many it proposed in all.
        ratio: Its best placement over the best known.
        seconds: Wall-clock time until then, from the start of its process; ``None`` = never.
        measured: Placements that were run on devices until then, the single devices included.
        measurements: How many were in all.
        wall: Seconds from the start of the process to its end.
    """

    model: str
    seed: int
    kind: str
    evaluations: int | None
    of: int
    ratio: float
    seconds: float | None
    measured: int | None
    measurements: int
    wall: float


def last_race(model: str, pair: str, seconds: float, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Find out what the runs of a model were worth.

    Args:
        model: Its file.
        pair: Of devices.
        seconds: For each race.
        runs: What the runs gave, with ``kind``, ``seed`` and the file ``table``.
    """
    tables = [load_table(run["table"]) for run in runs]
    objective = "overlap" if executor_of(pair) == "OVERLAP" else "hetero"
    solved = Entry.of(tables[0], solve(tables[0], objective=objective).assignment)
    entered = [solved]
    for run, table in zip(runs, tables, strict=True):
        measured = [line for line in run["lines"] if line["kind"] == "measured" and line["relative"]]
        measured.sort(key=lambda line: line["relative"])
        entered += [Entry.of_line(table, line) for line in measured[:_FINALISTS]]
    raced = LastRace(pair, model, entered, seconds)
    with raced.session:
        for _ in range(_CHECKS):
            claims: dict[str, Entry] = {}
            outcomes = [
                _outcome(Path(model).stem, run, table, raced, claims)
                for run, table in zip(runs, tables, strict=True)
            ]
            if not claims:
                break
            raced.check(claims)
    # Who found it first in the list counts; a single device is nobody's.
    names = {solved.text: "the solver's mix"} | {text: f"{who} alone" for who, text in raced.singles.items()}
    return {
        "winner": names.get(raced.best, "a mix that a run proposed"),
        "best_single": raced.best_single / raced.ratios[raced.best],
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def _outcome(
    model: str, run: Mapping[str, Any], table: CostTable, raced: LastRace, claims: dict[str, Entry]
) -> Outcome:
    """When a run's policy proposed something within 1 % of the best, and how good its best proposal was.

    Claims that were not raced yet do not count; they are added to ``claims``.
    """
    best = raced.ratios[raced.best]
    reference = raced.ratios[raced.singles[run["best_single"]]]
    found: list[float] = []
    hit: dict[str, Any] = dict.fromkeys(("evaluations", "seconds", "measured"))
    measured = 0
    for line in run["lines"]:
        measured += line["kind"] == "measured"
        kinds = ("proposed",) if line["source"] in run["singles"] else ("proposed", "measured")
        if line["kind"] not in kinds or line["note"] == AFTER:  # that one was counted before
            continue
        if line["relative"] is None:
            found.append(np.inf)
            continue
        entry = Entry.of_line(table, line)
        text = raced.text_of(entry, run["best_single"])
        ratio = raced.ratios.get(text, line["relative"] * reference) / best
        if ratio <= WITHIN and text not in raced.ratios:
            claims[text] = entry
            ratio = np.inf
        found.append(ratio)
        if hit["evaluations"] is None and ratio <= WITHIN:
            hit = {"evaluations": len(found), "seconds": line["at_seconds"], "measured": measured}
    return Outcome(
        model=model,
        seed=run["seed"],
        kind=run["kind"],
        of=len(found),
        ratio=min(found, default=np.inf),
        measurements=measured,
        wall=run["wall"],
        **hit,
    )
