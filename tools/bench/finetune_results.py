"""What tools/bench/finetune.py found out, on disk piece by piece, and the tables made of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from common import print_table

__all__ = ["WITHIN", "Outcome", "Results", "first_within", "improvements", "print_results"]

WITHIN = 1.01
"""A latency counts as reached when it is at most this times the best known."""


@dataclass
class Outcome:
    """One run on devices, or one search on the simulator.

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


class Results:
    """A file of JSON lines, one for every piece of work that is done; the last one of its kind counts.

    Args:
        path: Is made by the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[tuple[Any, ...], dict[str, Any]] = {}
        if path.exists():
            for text in path.read_text().splitlines():
                try:
                    line = json.loads(text)
                except json.JSONDecodeError:
                    continue  # the line that a kill cut short
                self._lines[tuple(line["key"])] = line

    @property
    def folder(self) -> Path:
        """Where models and measurement logs are."""
        return self.path.with_suffix(".files")

    def get(self, *key: Any) -> dict[str, Any] | None:
        """What was found out about something, ``None`` = not yet."""
        return self._lines.get(key)

    def all(self, piece: str) -> list[dict[str, Any]]:
        """All that was found out of a kind."""
        return [line for key, line in self._lines.items() if key[0] == piece]

    def add(self, *key: Any, **values: Any) -> dict[str, Any]:
        """Write a line."""
        line = {"key": list(key), **values}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a") as file:
            file.write("\n" * torn + json.dumps(line) + "\n")
        self._lines[key] = line
        return line

    def check_settings(self, **ours: Any) -> None:
        """Refuse to mix runs of different settings."""
        known = self.get("settings") or self.add("settings", **ours)
        for name, value in ours.items():
            if known[name] != value:
                raise SystemExit(
                    f"{self.path} holds runs with {name} {known[name]!r}, not {value!r}; take another file"
                )

    def outcomes(self) -> list[Outcome]:
        """Of the runs of all models that had their last race, and of all searches."""
        found = [Outcome(**values) for race in self.all("race") for values in race["outcomes"]]
        searches = self.all("search")
        optima: dict[str, float] = {}
        for line in searches:
            model = line["key"][1]
            optima[model] = min(optima.get(model, np.inf), line["solved"], line["curve"][-1][1])
        for line in searches:
            _, model, seed, kind = line["key"]
            curve = [(evaluation, seconds / optima[model]) for evaluation, seconds in line["curve"]]
            hit = first_within(curve, WITHIN)
            found.append(Outcome(model, seed, kind, hit, line["of"], curve[-1][1], curve))
        return found


def improvements(values: list[float]) -> list[tuple[int, float]]:
    """Number, from 1, and value wherever a value is lower than all before."""
    found: list[tuple[int, float]] = []
    for number, value in enumerate(values, 1):
        if np.isfinite(value) and (not found or value < found[-1][1]):
            found.append((number, value))
    return found


def first_within(curve: list[tuple[int, float]], limit: float) -> int | None:
    """Evaluations until a curve is at most ``limit``."""
    return next((evaluation for evaluation, ratio in curve if ratio <= limit), None)


def print_results(results: Results, comparisons: list[tuple[str, str]]) -> dict[str, Any]:
    """Print the tables; returns the ratios of evaluations."""
    settings, machine, outcomes = results.get("settings"), results.get("machine"), results.outcomes()
    if settings is None or machine is None or not outcomes:
        raise SystemExit(f"{results.path} has nothing to show yet; it needs the last race of a model")
    print(machine["line"])
    for race in results.all("race"):
        model = race["key"][1]
        print(
            f"{model}: the best placement known is {race['winner']}; the best single device takes "
            f"{race['best_single']:.3f} of its time"
        )
    columns = (
        "model",
        "run",
        "reached",
        "evaluations",
        "of",
        "measured",
        "spent",
        "seconds",
        "best / best known",
    )
    columns += ("longest run s", "others %")
    title = f"until within {100 * (WITHIN - 1):.0f} % of the best known, budget {settings['budget']:g} s"
    print_table(title, columns, _rows(outcomes))
    ratios = {}
    for ours, other in comparisons:
        ratios[f"{other} / {ours}"] = found = _speed_up(outcomes, ours, other)
        if found["pairs"]:
            print(
                f"evaluations, {other} / {ours}, {found['pairs']} pairs: median to within 1 % "
                f"{found['within']:.1f} ({found['bounds']} are at least that, {found['losses']} at most), "
                f"to the same latency {found['same_latency']:.1f}"
            )
    return ratios


def _rows(outcomes: list[Outcome]) -> list[list[str]]:
    """A row per model and kind; runs that did not get there count as worse than any number."""
    rows = []
    for model in dict.fromkeys(o.model for o in outcomes):
        for kind in dict.fromkeys(o.kind for o in outcomes):
            own = [o for o in outcomes if (o.model, o.kind) == (model, kind)]
            if not own:
                continue
            there = [o for o in own if o.evaluations is not None]
            counts = sorted(np.inf if o.evaluations is None else o.evaluations for o in own)
            rows.append(
                [
                    model,
                    kind,
                    f"{len(there)} of {len(own)}",
                    " ".join("-" if np.isinf(count) else str(count) for count in counts),
                    _median([o.of for o in own], ".0f"),
                    _median_and_worst([o.measured for o in there], ".0f"),
                    _median([o.measurements for o in own], ".0f"),
                    _median_and_worst([o.seconds for o in there], ".1f"),
                    _median([o.ratio for o in own], ".3f"),
                    _largest([o.wall for o in own], 1, ".1f"),
                    _largest([o.others for o in own], 100, ".0f"),
                ]
            )
    return rows


def _median(values: list[Any], form: str) -> str:
    known = [value for value in values if value is not None]
    return format(float(np.median(known)), form) if known else "-"


def _median_and_worst(values: list[Any], form: str) -> str:
    worst = _largest(values, 1, form)
    return worst if worst == "-" else f"{_median(values, form)} ({worst})"


def _largest(values: list[float | None], scale: float, form: str) -> str:
    known = [value for value in values if value is not None]
    return format(scale * max(known), form) if known else "-"


def _speed_up(outcomes: list[Outcome], kind: str, scratch: str) -> dict[str, Any]:
    """How many times more evaluations ``scratch`` took than ``kind``, as medians over models and seeds.

    ``within`` is until within 1 % of the best known. Who did not get there took more than all that it had:
    ``bounds`` counts the pairs in which that was ``scratch``, so that their ratio is too low, and ``losses``
    those in which it was ``kind``, whose ratio is too high. ``same_latency`` has no bounds for ``scratch``:
    until the best latency that it found, or within 1 % if that was better.
    """
    within, same, bounds, losses = [], [], 0, 0
    key = {(o.model, o.seed, o.kind): o for o in outcomes}
    for (model, seed, own), ours in key.items():
        other = key.get((model, seed, scratch))
        if own != kind or other is None:
            continue
        bounds += other.evaluations is None
        losses += ours.evaluations is None
        within.append((other.evaluations or other.of) / (ours.evaluations or max(ours.of, 1)))
        goal = max(WITHIN, other.curve[-1][1]) if other.curve else np.inf
        there = first_within(other.curve, goal) or other.of
        same.append(there / (first_within(ours.curve, goal) or max(ours.of, 1)))
    return {
        "within": float(np.median(within)) if within else None,
        "same_latency": float(np.median(same)) if same else None,
        "pairs": len(within),
        "bounds": bounds,
        "losses": losses,
    }
