"""``ov-autoplace compare``: two reports side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base import text as wording
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import milliseconds, print_json, print_sentence, print_table
from ov_autoplace.cli.outputs import check_file, made_folder

if TYPE_CHECKING:
    from ov_autoplace.report.comparison import Comparison, LatencyPair, RatePair
    from ov_autoplace.report.latency import Latency

__all__ = ["compare"]

First = Annotated[
    Path,
    typer.Argument(
        metavar="FIRST",
        show_default=False,
        help="A report: what --report wrote (.json or .html), or what annotate, explain or bench printed "
        "with --json.",
    ),
]
Second = Annotated[
    Path, typer.Argument(metavar="SECOND", show_default=False, help="The report to compare with it.")
]
Page = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE.html", help="Write the comparison as a page to look at."),
]


def compare(
    first: First,
    second: Second,
    *,
    report: Page = None,
    top: Annotated[int, typer.Option(min=1, help="How many op types and moved groups to show.")] = 15,
    as_json: arguments.Json = False,
) -> None:
    """Show two reports side by side: latencies, costs by op type, and the ops that moved."""
    if report is not None:
        from ov_autoplace.report import require_library

        require_library(report, is_comparison=True)
        check_file(report)
    from ov_autoplace.report.comparison import compare as compared
    from ov_autoplace.report.saved import read_report

    comparison = compared(read_report(first), read_report(second))
    if not as_json:
        _print(comparison, top)
    if report is not None:
        from ov_autoplace.report import write_comparison

        with made_folder(report.parent):
            write_comparison(comparison, report)
        if not as_json:
            print_sentence(f"wrote {report}")
    if as_json:
        print_json(_json(comparison))


def _json(comparison: Comparison) -> dict[str, Any]:
    return {
        "first": str(comparison.first.path),
        "second": str(comparison.second.path),
        "facts": [
            {"name": name, "first": first or None, "second": second or None}
            for name, first, second in comparison.facts
        ],
        "latencies": [
            {
                "name": pair.name,
                "first": _latency(pair.first),
                "second": _latency(pair.second),
                "measured_change": pair.measured_change,
                "predicted_change": pair.predicted_change,
                "told_apart": pair.is_told_apart,
            }
            for pair in comparison.latencies
        ],
        "rates": [asdict(pair) for pair in comparison.rates],
        "op_types": [asdict(pair) for pair in comparison.kinds],
        "moves": [{"from": source, "to": target, "ops": count} for source, target, count in comparison.moves],
        "moved": [asdict(moved) for moved in comparison.moved],
        "on_another_lane": comparison.on_another_lane,
        "only_first": list(comparison.only_first),
        "only_second": list(comparison.only_second),
        "missing": comparison.missing or None,
    }


def _latency(row: Latency | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "name": row.name,
        "measured_ms": _ms(row.median),
        "ci95_ms": None if row.interval is None else [_ms(end) for end in row.interval],
        "predicted_ms": _ms(row.predicted),
        "subgraphs": row.subgraphs,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _print(comparison: Comparison, top: int) -> None:
    for letter, report in (("A", comparison.first), ("B", comparison.second)):
        print_sentence(f"{letter}: {report.path}: {report.answer}")
    print_table(
        "What differs besides",
        ("", "~A", "~B"),
        [row for row in comparison.facts if row[0] != "decision" and row[1] != row[2]],
    )
    _print_rates(comparison.rates)
    _print_latencies(comparison.latencies)
    if comparison.missing:
        print_sentence(comparison.missing)
    if not comparison.has_ops:
        return
    print_table(
        f"Predicted ms by op type, the largest differences{_of(top, len(comparison.kinds))}",
        ("type of the heaviest op", ">A groups", ">B groups", ">A ms", ">B ms", ">B - A ms"),
        [
            (
                pair.kind,
                pair.first_groups,
                pair.second_groups,
                milliseconds(pair.first_seconds),
                milliseconds(pair.second_seconds),
                wording.milliseconds(pair.second_seconds - pair.first_seconds, "+"),
            )
            for pair in comparison.kinds[:top]
        ],
    )
    if comparison.moved:
        print_table(
            f"Groups with ops on another device, the heaviest{_of(top, len(comparison.moved))}",
            ("group", "?type", ">?ops moved", "A", "B", ">A predicted ms", ">B predicted ms"),
            [
                (
                    moved.group,
                    moved.kind,
                    len(moved.ops),
                    moved.source,
                    moved.target,
                    milliseconds(moved.first_seconds),
                    milliseconds(moved.second_seconds),
                )
                for moved in comparison.moved[:top]
            ],
        )
    print_sentence(comparison.summary)


def _print_rates(pairs: Sequence[RatePair]) -> None:
    """Measured requests a second; nothing where there are none."""
    if not pairs:
        return
    rows = [
        (
            f"{pair.name} * in {pair.chosen_in}" if pair.chosen_in else pair.name,
            *(
                None if rate is None else f"{rate:,.0f}"
                for called in ("synchronous", "asynchronous")
                for rate in (getattr(row, called, None) for row in (pair.first, pair.second))
            ),
        )
        for pair in pairs
    ]
    heads = ("* = the answer", ">A waiting\nthreads", ">B waiting\nthreads", ">A\nqueue", ">B\nqueue")
    print_table("Requests a second, measured", heads, rows)


def _print_latencies(pairs: Sequence[LatencyPair]) -> None:
    """What was measured and what is predicted, each in a table of its own."""
    for what, cells in (("measured", _measured_cells), ("predicted", _predicted_cells)):
        rows = [row for row in ((pair.name, *cells(pair)) for pair in pairs) if any(row[1:])]
        if rows:
            print_table(f"Latency in ms, {what}", ("name", ">A", ">B", ">change"), rows)
    if any(pair.measured_change is not None and not pair.is_told_apart for pair in pairs):
        print_sentence("~ the 95 % intervals overlap, or there are none: not told apart")


def _of(top: int, count: int) -> str:
    return f", {top} of {count:,}" if count > top else ""


def _measured_cells(pair: LatencyPair) -> tuple[str | None, str | None, str | None]:
    first, second = (None if row is None else milliseconds(row.median) for row in (pair.first, pair.second))
    return first, second, _percent(pair.measured_change, "" if pair.is_told_apart else " ~")


def _predicted_cells(pair: LatencyPair) -> tuple[str | None, str | None, str | None]:
    first, second = (
        None if row is None else milliseconds(row.predicted) for row in (pair.first, pair.second)
    )
    return first, second, _percent(pair.predicted_change)


def _percent(change: float | None, mark: str = "") -> str | None:
    return None if change is None else f"{100 * change:+.1f} %{mark}"
