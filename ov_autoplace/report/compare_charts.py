"""The drawings of two reports: latencies, schedules on one time axis, and costs by op type."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from ov_autoplace._base.text import milliseconds
from ov_autoplace.report.bars import HALF, Bars, draw_bars, draw_labels, draw_outlines, hover
from ov_autoplace.report.charts import interval_text, plain, plain_legend, rows_chart
from ov_autoplace.report.comparison import LatencyPair, TypePair
from ov_autoplace.report.latency import Latency
from ov_autoplace.report.palette import DeviceStyle, device_styles, report_styles
from ov_autoplace.report.saved import SavedReport, SavedRun

__all__ = ["kinds_chart", "pairs_chart", "runs_chart"]

_APART = 0.17  # how far A is above and B below the middle of a row
_MOST_STAGES = 4000
_LETTERS = ("A", "B")


def pairs_chart(pairs: Sequence[LatencyPair]) -> figure | None:
    """A row per candidate, A above B; ``None`` when nothing is known."""
    shown = [pair for pair in pairs if any(_points(row) for row in (pair.first, pair.second))]
    if not shown:
        return None
    chart = rows_chart("latency", [pair.name for pair in shown], "latency in ms", 44)
    for i, (letter, style) in enumerate(zip(_LETTERS, report_styles(), strict=True)):
        y, entries = (_APART, -_APART)[i], []
        for place, pair in enumerate(shown):
            row = (pair.first, pair.second)[i]
            if row is not None:
                entries.append((y - place, row))
        _draw_latencies(chart, letter, style, entries)
    chart.add_layout(chart.legend[0], "above")
    plain_legend(chart)
    return plain(chart)


def _points(row: Latency | None) -> bool:
    return row is not None and (row.median is not None or row.predicted is not None)


def _draw_latencies(
    chart: figure, letter: str, style: DeviceStyle, entries: Sequence[tuple[float, Latency]]
) -> None:
    predicted = [(y, row.name, row.predicted) for y, row in entries if row.predicted is not None]
    measured = [(y, row, row.median) for y, row in entries if row.median is not None]
    if predicted:
        source = ColumnDataSource(
            {
                "x": [seconds * 1e3 for _, _, seconds in predicted],
                "y": [y for y, _, _ in predicted],
                "title": [f"{letter}: {name}" for _, name, _ in predicted],
                "text": [f"{milliseconds(seconds)} ms predicted" for _, _, seconds in predicted],
            }
        )
        drawn = chart.scatter(
            "x",
            "y",
            source=source,
            size=10,
            line_width=1.5,
            line_color=style.colour,
            fill_color=None,
            legend_label=f"{letter}, predicted",
        )
        hover(chart, drawn)
    if measured:
        ends = [(median, median) if row.interval is None else row.interval for _, row, median in measured]
        source = ColumnDataSource(
            {
                "x": [median * 1e3 for _, _, median in measured],
                "y": [y for y, _, _ in measured],
                "low": [low * 1e3 for low, _ in ends],
                "high": [high * 1e3 for _, high in ends],
                "title": [f"{letter}: {row.name}" for _, row, _ in measured],
                "text": [
                    f"{milliseconds(median)} ms measured, 95 % interval {interval_text(row)}"
                    for _, row, median in measured
                ],
            }
        )
        chart.segment("low", "y", "high", "y", source=source, line_color=style.colour, line_width=2)
        drawn = chart.scatter(
            "x", "y", source=source, size=8, color=style.colour, legend_label=f"{letter}, measured"
        )
        hover(chart, drawn)


def runs_chart(first: SavedReport, second: SavedReport) -> figure | None:
    """A row per device or lane of each run; ``None`` where none is known or too many subgraphs are."""
    runs = [
        (letter, run)
        for letter, report in zip(_LETTERS, (first, second), strict=True)
        if report.placement is not None
        for run in report.placement.runs
    ]
    if not runs or sum(len(run.stages) for _, run in runs) > _MOST_STAGES:
        return None
    lanes = list(dict.fromkeys(lane for _, run in runs for lane, _, _ in run.lanes))
    styles = dict(zip(lanes, device_styles(len(lanes)), strict=True))
    rows = [
        (letter, run, lane, idle)
        for letter, run in runs
        for lane, busy, idle in run.lanes
        if busy > 0  # devices that are not used would only take room
    ]
    if not rows:
        return None
    labels = [
        f"{letter}: {lane}, {run.what}\nidle {milliseconds(idle)} ms" for letter, run, lane, idle in rows
    ]
    bars, outlines = Bars(), Bars()
    for place, (letter, run, lane, _) in enumerate(rows):
        _add_stages(bars, outlines, (letter, run, lane), -place, styles[lane])
    chart = rows_chart("schedule", labels, "ms", 56)
    longest = max(run.seconds for _, run in runs) * 1e3
    chart.x_range = Range1d(-0.005 * longest, 1.01 * longest)
    draw_bars(chart, bars)
    draw_labels(chart, bars, "labels")
    draw_outlines(chart, outlines, "critical")
    plain(chart)
    chart.yaxis.axis_line_color = chart.yaxis.major_tick_line_color = None
    return chart


def _add_stages(
    bars: Bars, outlines: Bars, row: tuple[str, SavedRun, str], place: int, style: DeviceStyle
) -> None:
    letter, run, lane = row
    has_slack = not all(critical for *_, critical in run.stages)
    for number, where, start, seconds, critical in run.stages:
        if where != lane:
            continue
        bars.add(
            start,
            seconds,
            place - HALF,
            place + HALF,
            colour=style.colour,
            ink=style.on_colour,
            label=f"{number}: {milliseconds(seconds)} ms",
            title=f"{letter}: {number} on {lane}, {run.what}",
            text=f"{seconds * 1e3:.4f} ms from {start * 1e3:.4f} ms on"
            + ("\non the critical path" if critical and has_slack else ""),
        )
        if critical and has_slack:
            outlines.add(start, seconds, place - HALF, place + HALF, title="", text="")


def kinds_chart(kinds: Sequence[TypePair]) -> figure | None:
    """Two bars per op type; ``None`` when there is none."""
    if not kinds:
        return None
    chart = rows_chart("kinds", [pair.kind for pair in kinds], "ms, predicted where it runs", 30)
    for i, (letter, style) in enumerate(zip(_LETTERS, report_styles(), strict=True)):
        values = [(pair.first_seconds, pair.second_seconds)[i] * 1e3 for pair in kinds]
        counts = [(pair.first_groups, pair.second_groups)[i] for pair in kinds]
        source = ColumnDataSource(
            {
                "left": [0.0] * len(kinds),
                "right": values,
                "top": [(HALF, 0.0)[i] - place for place in range(len(kinds))],
                "bottom": [(0.0, -HALF)[i] - place for place in range(len(kinds))],
                "title": [f"{letter}: {pair.kind}" for pair in kinds],
                "text": [
                    f"{value:.4f} ms in {count} groups" for value, count in zip(values, counts, strict=True)
                ],
            }
        )
        drawn = chart.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=source,
            fill_color=style.colour,
            line_color=None,
            legend_label=letter,
        )
        hover(chart, drawn)
    chart.x_range.start = 0.0
    chart.add_layout(chart.legend[0], "above")
    plain_legend(chart)
    return plain(chart)
