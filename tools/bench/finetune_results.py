"""What tools/bench/finetune.py found out, on disk piece by piece, and the tables made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from common import print_table
from finetune_outcome import WITHIN, Outcome, first_within
from finetune_ratios import compare

__all__ = ["Results", "print_results"]


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
        known = {"pair": "alias"} | known  # files that name none are older than the other pair
        for name, value in ours.items():
            theirs = known.get(name)
            if theirs != value:
                raise SystemExit(
                    f"{self.path} holds runs with {name} {theirs!r}, not {value!r}; take another file"
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
        "evaluations, by seed",
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
        found = compare(outcomes, ours, other)
        if found.pairs:
            print_table(*found.table())
            print(found.sentence())
        ratios[f"{other} / {ours}"] = found.to_dict()
    return ratios


def _rows(outcomes: list[Outcome]) -> list[list[str]]:
    """A row per model and kind; ``> n`` is a run that did not get there with all its n evaluations."""
    rows = []
    for model in dict.fromkeys(o.model for o in outcomes):
        for kind in dict.fromkeys(o.kind for o in outcomes):
            own = [o for o in outcomes if (o.model, o.kind) == (model, kind)]
            if not own:
                continue
            there = [o for o in own if o.evaluations is not None]
            own.sort(key=lambda o: o.seed)
            counts = [f"> {o.of}" if o.evaluations is None else str(o.evaluations) for o in own]
            rows.append(
                [
                    model,
                    kind,
                    f"{len(there)} of {len(own)}",
                    ", ".join(counts),
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
