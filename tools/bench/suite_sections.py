"""The sections of the suite: which there are, what they need, and how each is called for JSON."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suite_result import Case, Result, Table, exact_ratio

__all__ = ["SECTIONS", "Section", "call", "placement_result"]


@dataclass(frozen=True, slots=True)
class Section:
    """A function ``run(quick, seed, **arguments) -> Result`` of a module of this folder."""

    module: str
    arguments: Mapping[str, Any] | None = None
    needs_gpu: bool = False


SECTIONS = {
    "placement": Section("placement"),
    "latency-alias": Section("real_latency", {"pair": "alias"}),
    "latency-gpu": Section("real_latency", {"pair": "gpu"}, needs_gpu=True),
    "mixes": Section("mix_search", needs_gpu=True),
    "scaling": Section("scaling"),
    "overhead": Section("profiler_overhead"),
    "power": Section("profiler_power"),
    "accuracy": Section("accuracy"),
    "gate": Section("suite_gate"),
}
"""In the order in which they run."""


def call(section: str, quick: bool, seed: int) -> dict[str, Any]:
    """Run a section in this process; its result for JSON."""
    chosen = SECTIONS[section]
    module = importlib.import_module(chosen.module)
    result = module.run(quick=quick, seed=seed, **(chosen.arguments or {}))
    if not isinstance(result, Result):
        result = placement_result(result)
    return result.to_dict()


def placement_result(found: Mapping[str, Any]) -> Result:
    """The result of the benchmark of placement quality, which has a form of its own."""
    tables = []
    for name in dict.fromkeys(row["set"] for row in found["rows"]):
        rows = [row for row in found["rows"] if row["set"] == name]
        if not rows[0]["problems"]:
            continue
        tables.append(
            Table(
                f"{name}: {rows[0]['problems']} problems, {rows[0]['proven']} with proven optimum; gaps in %",
                (
                    "method",
                    "mean [95 %]",
                    "median",
                    "p95",
                    "worst",
                    "optimal",
                    "where placing matters",
                    "faster / slower than best device",
                    "ms per placement",
                ),
                tuple(_placement_cells(row) for row in rows),
            )
        )
    return Result(
        title="Placement quality on cost tables",
        command=found["command"],
        tables=tuple(tables),
        ratios=tuple(
            exact_ratio(name, value, 1, "decided" if name.startswith("policy") else "exact")
            for name, value in found["ratios"].items()
        ),
        losing=tuple(_placement_case(case) for case in found["losing"]),
        winning=tuple(_placement_case(case) for case in found["winning"]),
        remarks=tuple(f"{method} was not run: {reason}" for method, reason in found["not_run"].items()),
        data={"rows": found["rows"], "problems": found["problems"]},
    )


def _placement_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    if not row["answered"]:
        return (f"{row['method']} (no answer, {row['not_legal']} not legal)", *["-"] * 8)
    partial = "" if row["answered"] == row["problems"] else f" ({row['answered']} of {row['problems']})"
    worth = row["mean_where_worth"]
    return (
        row["method"] + partial,
        f"{_percent(row['mean'])} [{_percent(row['low'])}, {_percent(row['high'])}]",
        *(_percent(row[key]) for key in ("median", "p95", "worst")),
        str(row["optimal"]),
        "-" if worth is None else f"{_percent(worth)} ({row['worth_placing']})",
        f"{row['faster_than_single']} / {row['slower_than_single']}",
        f"{row['median_ms']:.3g} (p95 {row['p95_ms']:.3g})",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f}" if abs(share) < 10 else f"{100 * share:.0f}"


def _placement_case(case: Mapping[str, Any]) -> Case:
    detail = f"{case['ms']:.4g} ms against {case['rival_ms']:.4g} ms; {case['set']}"
    return Case(f"{case['method']} on {case['problem']}", case["rival"], case["ratio"], detail)
