"""The page of two reports side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bokeh.plotting import figure

from ov_autoplace._base.text import milliseconds
from ov_autoplace.report.charts import curve_chart
from ov_autoplace.report.compare_charts import kinds_chart, pairs_chart, runs_chart
from ov_autoplace.report.comparison import ANSWER, Comparison, LatencyPair
from ov_autoplace.report.contents import Curve
from ov_autoplace.report.document import chart, document, header, note, section
from ov_autoplace.report.latency import Latency
from ov_autoplace.report.rates import two_rates_section
from ov_autoplace.report.tables import table

__all__ = ["compare_page"]

_MOVED = 50  # groups; ``--json`` has all of them
_KINDS = 20


def compare_page(comparison: Comparison) -> str:
    """The whole document."""
    charts: list[figure] = []
    first, second = comparison.first, comparison.second
    title = f"{first.path.name} and {second.path.name}"
    return document(title, list(_body(comparison, title, charts)), charts, {})


def _body(comparison: Comparison, title: str, charts: list[figure]) -> Iterator[str]:
    first, second = comparison.first, comparison.second
    about = f"A is {first.path}, B is {second.path}."
    yield header(title, " ".join(filter(None, (about, _verdict(comparison)))))
    differ = [i for i, (_, a, b) in enumerate(comparison.facts) if a != b]
    yield section("Summary", table(("", "A", "B"), comparison.facts, strong=differ))
    yield two_rates_section(comparison.rates)
    latencies = pairs_chart(comparison.latencies)
    if comparison.latencies:
        yield section(
            "Latency",
            note(_LATENCY),
            "" if latencies is None else chart(charts, latencies),
            _latency_tables(comparison.latencies),
            tag="measured and predicted",
        )
    runs = runs_chart(first, second)
    if runs is not None:
        yield section("Schedules", note(_RUNS), chart(charts, runs))
    if comparison.missing:
        yield section("Ops", note(comparison.missing))
    yield from _ops(comparison, charts)
    curves = [
        Curve(f"{letter}: {curve.name}", curve.numbers, curve.values, curve.best)
        for letter, report in (("A", first), ("B", second))
        for curve in report.curves
    ]
    learning = curve_chart(curves)
    if learning is not None:
        yield section("Learning curves", note(_CURVES), chart(charts, learning), tag="measured")


def _ops(comparison: Comparison, charts: list[figure]) -> Iterator[str]:
    """Costs by op type, and the ops that moved."""
    first, second = comparison.first.placement, comparison.second.placement
    if first is None or second is None:
        return
    same = first.costs == second.costs
    costs = f"{first.costs} costs" if same else f"costs, {first.costs} in A, {second.costs} in B"
    kinds = comparison.kinds[:_KINDS]
    rows = [
        (
            pair.kind,
            f"{pair.first_groups:,}",
            f"{pair.second_groups:,}",
            _ms(pair.first_seconds),
            _ms(pair.second_seconds),
            milliseconds(pair.second_seconds - pair.first_seconds, "+"),
        )
        for pair in kinds
    ]
    heads = ("type of the heaviest op", ">groups, A", ">groups, B", ">A ms", ">B ms", ">B - A ms")
    drawn = kinds_chart(kinds)
    yield section(
        "Cost by op type",
        "" if drawn is None else chart(charts, drawn),
        table(heads, rows),
        note(f"{_KINDS} of {len(comparison.kinds)} types.") if len(comparison.kinds) > _KINDS else "",
        tag=f"predicted from {costs}",
    )
    moved = [
        (
            group.group,
            group.kind,
            f"{len(group.ops):,}",
            group.source,
            group.target,
            _ms(group.first_seconds),
            _ms(group.second_seconds),
        )
        for group in comparison.moved[:_MOVED]
    ]
    moved_heads = ("group", "type", ">ops moved", "A", "B", ">A, predicted ms", ">B, predicted ms")
    shown = f" {_MOVED} of {len(comparison.moved):,} groups are listed, the heaviest first."
    summary = comparison.summary
    yield section(
        "Ops that moved",
        note(f"{summary[:1].upper()}{summary[1:]}.{shown if len(comparison.moved) > _MOVED else ''}"),
        table(moved_heads, moved) if moved else "",
    )


def _verdict(comparison: Comparison) -> str:
    """Which answer is faster, as far as that is known."""
    if not comparison.latencies or comparison.latencies[0].name != ANSWER:
        return ""
    pair = comparison.latencies[0]
    change = pair.measured_change
    if change is not None:
        said = f"B's answer was measured {100 * abs(change):.1f} % {'slower' if change > 0 else 'faster'}"
        if not pair.is_told_apart:
            return f"{said}, which proves nothing: the 95 % intervals overlap, or one of them is not known."
        return f"{said}."
    change = pair.predicted_change
    if change is None:
        return ""
    how = "slower" if change > 0 else "faster"
    return f"B's answer is predicted {100 * abs(change):.1f} % {how}; not both were run."


def _latency_tables(pairs: Sequence[LatencyPair]) -> str:
    """What was measured, and below it what is predicted."""
    measured = [
        (
            pair.name,
            *_measured(pair.first),
            *_measured(pair.second),
            _percent(pair.measured_change),
            "" if pair.measured_change is None else "yes" if pair.is_told_apart else "no",
        )
        for pair in pairs
    ]
    predicted = [
        (
            pair.name,
            _ms(None if pair.first is None else pair.first.predicted),
            _ms(None if pair.second is None else pair.second.predicted),
            _percent(pair.predicted_change),
        )
        for pair in pairs
    ]
    heads = (
        "candidate",
        ">A, measured ms",
        ">A, 95 % interval",
        ">B, measured ms",
        ">B, 95 % interval",
        ">measured change",
        "told apart",
    )
    predictions = ("candidate", ">A, predicted ms", ">B, predicted ms", ">predicted change")
    shown = ""
    for names, rows in ((heads, measured), (predictions, predicted)):
        known = [row for row in rows if any(row[1:])]
        answers = [i for i, row in enumerate(known) if row[0] == ANSWER]
        shown += table(names, known, strong=answers) if known else ""
    return shown


def _measured(row: Latency | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    return _ms(row.median), "" if row.interval is None else " .. ".join(map(_ms, row.interval))


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else milliseconds(seconds)


def _percent(change: float | None) -> str:
    return "" if change is None else f"{100 * change:+.1f} %"


_LATENCY = (
    "Full dots are measured medians with their 95 % intervals, rings are predictions. Only what was measured "
    "on the same machine at about the same time says which is faster."
)
_RUNS = (
    "Both on one time axis; frames are the critical path where lanes work at once. Of an answer on fewer "
    "threads, the predicted times are those of the model on all of them."
)
_CURVES = (
    "Lines are the best placements proven so far, faint dots are all that were measured; 1 is the best "
    "single device of each run."
)
