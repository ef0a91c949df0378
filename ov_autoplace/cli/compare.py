"""``ov-autoplace compare``: two reports side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import milliseconds, print_json, print_sentence, print_table
from ov_autoplace.cli.outputs import check_file, made_folder

if TYPE_CHECKING:
    from ov_autoplace.report.comparison import Comparison, LatencyPair
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

        require_library(report)
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
    print_sentence(f"A: {comparison.first.path}\nB: {comparison.second.path}")
    print_table(
        "What differs",
        ("", "~A", "~B"),
        [(name, first, second) for name, first, second in comparison.facts if first != second],
    )
    print_table(
        "Latency in ms",
        (
            "name",
            ">A measured",
            ">B measured",
            ">measured change",
            ">A predicted",
            ">B predicted",
            ">predicted change",
        ),
        [_latency_cells(pair) for pair in comparison.latencies],
    )
    if any(pair.measured_change is not None and not pair.is_told_apart for pair in comparison.latencies):
        print_sentence("~ the 95 % intervals overlap, or there are none: not told apart")
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
                f"{(pair.second_seconds - pair.first_seconds) * 1e3:+.3f}",
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


def _of(top: int, count: int) -> str:
    return f", {top} of {count:,}" if count > top else ""


def _latency_cells(pair: LatencyPair) -> tuple[object, ...]:
    first, second = pair.first, pair.second
    return (
        pair.name,
        None if first is None else milliseconds(first.median),
        None if second is None else milliseconds(second.median),
        _percent(pair.measured_change, "" if pair.is_told_apart else " ~"),
        None if first is None else milliseconds(first.predicted),
        None if second is None else milliseconds(second.predicted),
        _percent(pair.predicted_change),
    )


def _percent(change: float | None, mark: str = "") -> str | None:
    return None if change is None else f"{100 * change:+.1f} %{mark}"
