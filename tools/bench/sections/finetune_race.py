"""What the runs of the section ``finetune`` were worth: their outcomes, and the last race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.environment import LANES
from harness.result import Table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.solvers import solve
from ov_autoplace.training.finetuning.task import AFTER
from sections.finetune_last import Entry, LanesRace, LastRace

__all__ = ["WITHIN", "Outcome", "first_within", "improvements", "last_race", "outcome_table"]

WITHIN = 1.01
"""A latency counts as reached when it is at most this times the best known."""

_FINALISTS = 3  # of each run, into the last race
_CHECKS = 4  # races of claims


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


def last_race(model: str, pair: str, seconds: float, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Find out what the runs of a model were worth.

    Args:
        model: Its file.
        pair: Of devices.
        seconds: For each race.
        runs: What the runs gave, with ``kind``, ``seed`` and the file ``table``.
    """
    tables = [load_table(run["table"]) for run in runs]
    objective = "overlap" if pair == LANES else "hetero"
    solved = Entry.of(tables[0], solve(tables[0], objective=objective).assignment)
    entered = [solved]
    for run, table in zip(runs, tables, strict=True):
        measured = [line for line in run["lines"] if line["kind"] == "measured" and line["relative"]]
        measured.sort(key=lambda line: line["relative"])
        entered += [Entry.of_line(table, line) for line in measured[:_FINALISTS]]
    race = (LanesRace if pair == LANES else LastRace)(pair, model, entered, seconds)
    try:
        for _ in range(_CHECKS):
            claims: dict[str, Entry] = {}
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
    # Who found it first in the list counts; a single device is nobody's.
    names = {solved.text: "the solver's mix"} | {text: f"{who} alone" for who, text in race.singles.items()}
    return {
        "winner": names.get(race.best, "a mix that a run proposed"),
        "best_single": race.best_single / race.ratios[race.best],
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def _outcome(
    model: str, run: Mapping[str, Any], table: CostTable, race: LastRace, claims: dict[str, Entry]
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
        kinds = ("proposed",) if line["source"] in run["singles"] else ("proposed", "measured")
        if line["kind"] not in kinds or line["note"] == AFTER:  # that one was counted before
            continue
        if line["relative"] is None:
            found.append(np.inf)
            continue
        entry = Entry.of_line(table, line)
        text = race.text_of(entry, run["best_single"])
        ratio = race.ratios.get(text, line["relative"] * reference) / best
        if ratio <= WITHIN and text not in race.ratios:
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
        curve=improvements(found),
        measurements=measured,
        wall=run["wall"],
        others=run["others"],
        **hit,
    )


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
