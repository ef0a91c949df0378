"""What the runs of the section ``finetune`` were worth: their outcomes, and the last race."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from harness.environment import PAIRS, core_of
from harness.result import Table
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.decide.place import place
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.annotation import completed
from ov_autoplace.placement.placement import Placement
from ov_autoplace.solvers import solve
from ov_autoplace.training.finetuning.task import AFTER

__all__ = ["WITHIN", "Outcome", "first_within", "improvements", "last_race", "outcome_table"]

WITHIN = 1.01
"""A latency counts as reached when it is at most this times the best known."""

_FINALISTS = 3  # of each run, into the last race
_FASTEST = 6  # of the last race, to be compiled again
_COMPILATIONS = 2
_CHECKS = 4  # races of claims
_ROUNDS = 400

DeviceOf = dict[str, str]


@dataclass
class Outcome:
    """What one run on devices, or one search on the simulator, was worth.

    Attributes:
        kind: Which policy, and what it learned from.
        evaluations: Placements that it proposed until one was within 1 % of the best known; ``None`` = never.
        of: How many it proposed in all.
        curve: Evaluation and latency over the best known wherever the latter fell.
        ratio: Its best placement over the best known.
        seconds: Wall-clock time until then, ``None`` on the simulator, like all that follow.
        measured: Placements that were run on devices until then, the single devices included.
        measurements: How many were in all.
        wall: Seconds from the start of the process to its end.
        others: Share of the machine that other processes took meanwhile.
    """

    model: str
    seed: int
    kind: str
    evaluations: int | None
    of: int
    ratio: float
    curve: list[tuple[int, float]] = field(default_factory=list)
    seconds: float | None = None
    measured: int | None = None
    measurements: int | None = None
    wall: float | None = None
    others: float | None = None


def improvements(values: Sequence[float]) -> list[tuple[int, float]]:
    """Number, from 1, and value wherever a value is lower than all before."""
    found: list[tuple[int, float]] = []
    for number, value in enumerate(values, 1):
        if np.isfinite(value) and (not found or value < found[-1][1]):
            found.append((number, float(value)))
    return found


def first_within(curve: Sequence[tuple[int, float]], limit: float) -> int | None:
    """Evaluations until a curve is at most ``limit``."""
    return next((evaluation for evaluation, ratio in curve if ratio <= limit), None)


def last_race(
    model: str, pair: str, budget: float, seconds: float, runs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Find out what the runs of a model were worth.

    Args:
        model: Its file.
        pair: Of devices.
        budget: Seconds of mode TUNE, whose answer takes part beside the exact solver's.
        seconds: For each race.
        runs: What ``tune`` and ``tune_as_published`` gave, with ``kind``, ``seed`` and the file ``table``.
    """
    tables = [load_table(run["table"]) for run in runs]
    rivals = {"the solver's": solve(tables[0]).to_dict()}
    read = ov.Core().read_model(model)
    core, milliseconds = core_of(pair), 1e3 * budget
    tuned = place(read, PAIRS[pair], "TUNE", core, time_budget_ms=milliseconds, policy="none").to_dict()
    rivals["TUNE's"] = {op: tuned[op] for op in rivals["the solver's"]}
    entered = [*rivals.values()]
    for run, table in zip(runs, tables, strict=True):
        measured = [line for line in run["lines"] if line["kind"] == "measured" and line["relative"]]
        measured.sort(key=lambda line: line["relative"])
        entered += [_devices(table, line) for line in measured[:_FINALISTS]]
    race = _LastRace(pair, read, entered, seconds)
    try:
        for _ in range(_CHECKS):
            claims: dict[str, DeviceOf] = {}
            for run, table in zip(runs, tables, strict=True):
                _outcome(Path(model).stem, run, table, race, claims)
            if not claims:
                break
            race.check(claims)
        outcomes = [
            _outcome(Path(model).stem, run, table, race, {}) for run, table in zip(runs, tables, strict=True)
        ]
    finally:
        race.session.close()
    names = {_text(device_of): f"{who} mix" for who, device_of in rivals.items()}
    names |= {text: f"{device} alone" for device, text in race.singles.items()}
    return {
        "winner": names.get(race.best, "a mix that a policy proposed"),
        "best_single": race.best_single / race.ratios[race.best],
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


class _LastRace:
    """Races of placements of one model, relative to the pair's second device alone, which is the CPU.

    Attributes:
        session: The model, which is run as it is.
        singles: Text of each device alone.
        placements: Device of each op, by text.
        ratios: Latency over the second device's, by text: of the last races that each was in.
    """

    def __init__(self, pair: str, model: ov.Model, placements: Sequence[DeviceOf], seconds: float) -> None:
        core, devices = core_of(pair), PAIRS[pair]
        self.session = ProfilingSession(core, model, devices, device_properties(core, devices, {}))
        self._reference, self._seconds = devices[1], seconds
        alone = {device: dict.fromkeys(placements[0], device) for device in devices}
        self.singles = {device: _text(device_of) for device, device_of in alone.items()}
        self.placements = {_text(device_of): device_of for device_of in [*alone.values(), *placements]}
        self.ratios: dict[str, float] = {}
        self._race(list(self.placements), 1)
        fastest = sorted(self.ratios, key=self.ratios.__getitem__)[:_FASTEST]
        self._final = dict.fromkeys([*self.singles.values(), *fastest])
        self._race(list(self._final), _COMPILATIONS)

    @property
    def best(self) -> str:
        """The fastest placement of those that were compiled again."""
        return min(self._final, key=lambda text: self.ratios.get(text, np.inf))

    @property
    def best_single(self) -> float:
        """Ratio of the fastest device alone, of those that can run the model."""
        return min(self.ratios.get(text, np.inf) for text in self.singles.values())

    def check(self, placements: dict[str, DeviceOf]) -> None:
        """Race more placements beside the best one."""
        self.placements |= placements
        self._race([*self.singles.values(), self.best, *placements], _COMPILATIONS, set(placements))

    def _race(self, texts: Sequence[str], compilations: int, about: set[str] | None = None) -> None:
        """Compile and race placements; note the ratios of some of them, which are all if not said."""
        logs: dict[str, list[float]] = {}
        for _ in range(compilations):
            self.session.forget()
            executables = {}
            for text in dict.fromkeys(texts):
                try:
                    device_of = completed(self.session.model, self.placements[text])
                    executables[text] = self.session.compile_placement(device_of)
                except ProfilingError as cause:
                    print(f"left out of the last race: {cause}", file=sys.stderr)
            raced = list(executables.values())
            result = self.session.race(raced, self._seconds, max_rounds=_ROUNDS, confidence=0.9999)
            samples = {text: e.samples for text, e in zip(executables, result.entries, strict=True)}
            reference = samples[self.singles[self._reference]]
            for text, own in samples.items():
                if len(own):
                    logs.setdefault(text, []).append(float(np.log(paired_ratio(own, reference).median)))
        for text, values in logs.items():
            if about is None or text in about:
                self.ratios[text] = float(np.exp(np.mean(values)))


def _outcome(
    model: str, run: Mapping[str, Any], table: CostTable, race: _LastRace, claims: dict[str, DeviceOf]
) -> Outcome:
    """When a run's policy proposed something within 1 % of the best, and how good its best proposal was.

    Claims that were not raced yet do not count; they are added to ``claims``.
    """
    best = race.ratios[race.best]
    reference = race.ratios[race.singles[run["best_single"]]]
    found: list[float] = []
    hit: dict[str, Any] = {"evaluations": None}
    measured = 0
    for line in run["lines"]:
        measured += line["kind"] == "measured"
        kinds = ("proposed",) if line["source"] in table.devices else ("proposed", "measured")
        if line["kind"] not in kinds or line["note"] == AFTER:  # that one was counted before
            continue
        if line["relative"] is None:
            found.append(np.inf)
            continue
        device_of = _devices(table, line)
        text = _text(device_of)
        ratio = race.ratios.get(text, line["relative"] * reference) / best
        if ratio <= WITHIN and text not in race.ratios:
            claims[text] = device_of
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
        curve=improvements(found),
        measurements=measured,
        wall=run["wall"],
        others=run["others"],
        **hit,
    )


def _devices(table: CostTable, line: Mapping[str, Any]) -> DeviceOf:
    """Device of each op in a line of a log."""
    assignment = np.array([ord(c) - ord("0") for c in line["placement"]], dtype=np.int32)
    return Placement.of_groups(table, assignment).to_dict()


def _text(device_of: DeviceOf) -> str:
    """The same for the same placement, whatever groups it was made of."""
    return " ".join(device_of[name] for name in sorted(device_of))


def outcome_table(outcomes: Sequence[Outcome], budget: float) -> Table:
    """A row per model and kind; ``> n`` is a run that did not get there with all its n evaluations."""
    rows = []
    for model, kind in dict.fromkeys((o.model, o.kind) for o in outcomes):
        own = sorted((o for o in outcomes if (o.model, o.kind) == (model, kind)), key=lambda o: o.seed)
        there = [o for o in own if o.evaluations is not None]
        counts = [f"> {o.of}" if o.evaluations is None else str(o.evaluations) for o in own]
        rows.append(
            (
                model,
                kind,
                f"{len(there)} of {len(own)}",
                ", ".join(counts),
                _cell([o.of for o in own], ".0f"),
                _cell([o.measured for o in there], ".0f", worst=True),
                _cell([o.measurements for o in own], ".0f"),
                _cell([o.seconds for o in there], ".1f", worst=True),
                _cell([o.ratio for o in own], ".3f"),
                _cell([o.wall for o in own], ".1f", worst=True),
                _cell([o.others and 100 * o.others for o in own], ".0f", worst=True),
            )
        )
    columns = ("model", "run", "reached", "evaluations, by seed", "of", "measured", "spent", "seconds")
    columns += ("best / best known", "whole run s", "others %")
    title = f"until within {100 * (WITHIN - 1):.0f} % of the best known, budget {budget:g} s: medians (worst)"
    return Table(title, columns, rows)


def _cell(values: Sequence[float | None], form: str, worst: bool = False) -> str:
    """The median of what is known, and its largest."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    largest = f" ({max(known):{form}})" if worst else ""
    return f"{float(np.median(known)):{form}}{largest}"
