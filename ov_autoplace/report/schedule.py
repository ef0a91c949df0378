"""The schedule: a row per device or lane, measured above predicted; what runs, what waits, what decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import Range1d
from bokeh.plotting import figure

from ov_autoplace._base.text import counted, milliseconds
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.measured import end_to_end
from ov_autoplace.explain.timeline import Stage, Timeline
from ov_autoplace.measure.measured_run import MeasuredRun
from ov_autoplace.report.bars import (
    HALF,
    Bars,
    draw_bars,
    draw_gaps,
    draw_labels,
    draw_lines,
    draw_outlines,
)
from ov_autoplace.report.charts import plain, rows_chart
from ov_autoplace.report.palette import CUT, MUTED, DeviceStyle, device_styles
from ov_autoplace.report.record import Analysis

__all__ = ["costs_text", "draws_groups", "schedule_chart"]

_MOST_BARS = 8000
"""With more groups, only their subgraphs are drawn."""

_FEW_ROWS = 6  # up to so many are high
_LINES = ("x0", "y0", "x1", "y1", "title", "text")


def schedule_chart(analysis: Analysis, measured: MeasuredRun | None = None) -> figure:
    """The predicted run, and above it the measured one when there is one.

    Args:
        analysis: The placement.
        measured: The nodes of its measured run.
    """
    drawing = _Drawing(analysis.explanation)
    rows = _Rows(analysis)
    drawing.add_predicted(analysis.predicted, rows)
    if measured is not None and analysis.measured is not None:
        drawing.add_measured(analysis.measured, measured, rows)
    total = max(run.seconds for run in analysis.runs.values())
    height = 76 if len(rows.labels) <= _FEW_ROWS else 58
    chart = rows_chart("schedule", rows.labels, "ms", height, tools="xpan,xwheel_zoom,xbox_zoom,reset,save")
    chart.x_range = Range1d(-0.005 * total * 1e3, 1.01 * total * 1e3)
    drawing.draw(chart)
    plain(chart)
    chart.yaxis.axis_line_color = chart.yaxis.major_tick_line_color = None
    chart.yaxis.major_label_text_font_size = "13px"
    return chart


def draws_groups(explanation: Explanation) -> bool:
    """Whether groups have bars of their own, or there are too many."""
    return len(explanation.table) <= _MOST_BARS


class _Rows:
    """Where the rows of devices and lanes are, from 0 downwards, and what they are called."""

    def __init__(self, analysis: Analysis) -> None:
        self.labels: list[str] = []
        self._place: dict[tuple[str, str], int] = {}
        uses = {(lane.name, what): lane for what, run in analysis.runs.items() for lane in run.lanes}
        names = dict.fromkeys(lane.name for run in analysis.runs.values() for lane in run.lanes)
        for name in names:
            for what in analysis.runs:
                lane = uses.get((name, what))
                if lane is None:
                    continue
                self._place[name, what] = -len(self.labels)
                # Numbers stay with their units where the page breaks the lines.
                idle = f"idle {milliseconds(lane.idle_seconds)}\N{NO-BREAK SPACE}ms, "
                idle += f"{100 * (1 - lane.share):.0f}\N{NO-BREAK SPACE}%"
                self.labels.append(f"{name}, {what}\n{idle}")

    def place(self, name: str, what: str) -> int:
        """The middle of a row."""
        return self._place[name, what]


class _Drawing:
    """All that is drawn on the time axis of one placement."""

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self._table = explanation.table
        styles = device_styles(self._table.num_devices)
        self._style: dict[str, DeviceStyle] = dict(zip(self._table.devices, styles, strict=True))
        self._other = styles[0]
        self._stages, self._parts = Bars(), Bars()
        self._gaps, self._outlines = Bars(), Bars()
        self._links: dict[str, list[Any]] = {name: [] for name in _LINES}
        self._path: dict[str, list[Any]] = {name: [] for name in _LINES}

    def draw(self, chart: figure) -> None:
        """Everything, what matters most on top."""
        draw_gaps(chart, self._gaps)
        for bars in (self._parts, self._stages):
            draw_bars(chart, bars)
        draw_labels(chart, self._gaps, "gap-labels")
        draw_labels(chart, self._stages, "labels")
        draw_lines(chart, self._links, CUT)
        draw_outlines(chart, self._outlines, "critical")
        draw_lines(chart, self._path, MUTED, "critical-path")

    def add_predicted(self, timeline: Timeline, rows: _Rows) -> None:
        """Subgraphs with their groups, and transfers."""
        table, split = self._table, draws_groups(self._explanation)
        for stage in timeline.stages:
            row = rows.place(stage.device, "predicted")
            text = (
                f"{counted(stage.ops, 'op')} in {counted(len(stage.groups), 'group')}\n"
                f"from {table.names[stage.groups[0]]}\nto {table.names[stage.groups[-1]]}"
            )
            title = f"{self._explanation.part} {stage.subgraph} on {stage.device}, predicted"
            self._add_stage(stage, row, split, title, text)
            for i, g in enumerate(stage.groups if split else ()):
                kind = table.op_types[g] if table.op_types is not None else "group"
                self._parts.add(
                    float(timeline.group_start[g]),
                    float(timeline.group_seconds[g]),
                    row - HALF,
                    row - 0.04,
                    colour=self._style[stage.device].colour,
                    alpha=0.75 if i % 2 else 0.5,
                    title=table.names[g],
                    text=f"{kind}, {timeline.group_seconds[g] * 1e3:.4f} ms predicted\n"
                    f"{costs_text(table.devices, table.op_seconds[g])}",
                )
        self._add_transfers(timeline, rows)
        self._add_waits(timeline, rows, "predicted")

    def add_measured(self, timeline: Timeline, run: MeasuredRun, rows: _Rows) -> None:
        """Submodels with their nodes."""
        nodes = {stage.subgraph: stage.nodes for stage in run.stages}
        for stage in timeline.stages:
            row = rows.place(stage.device, "measured")
            own = nodes[stage.subgraph]
            title = f"{self._explanation.part} {stage.subgraph} on {stage.device}, measured"
            self._add_stage(stage, row, bool(own), title, f"{len(own)} nodes")
            for i, (node, start, seconds) in enumerate(end_to_end(stage, own)):
                self._parts.add(
                    start,
                    seconds,
                    row - HALF,
                    row - 0.04,
                    colour=self._style.get(stage.device, self._other).colour,
                    alpha=0.75 if i % 2 else 0.5,
                    title=node.name,
                    text=f"{node.kind}, {node.kernel}\n{node.seconds * 1e3:.4f} ms measured",
                )
        self._add_waits(timeline, rows, "measured")

    def _add_stage(self, stage: Stage, row: int, split: bool, title: str, text: str) -> None:
        style = self._style.get(stage.device, self._other)
        after = f"\nafter {stage.after}" if stage.after >= 0 else ""
        critical = "\non the critical path" if stage.is_critical else ""
        self._stages.add(
            stage.start,
            stage.seconds,
            row if split else row - HALF,
            row + HALF,
            colour=style.colour,
            ink=style.on_colour,
            label=f"{stage.subgraph}: {milliseconds(stage.seconds)} ms",
            title=title,
            text=f"{stage.seconds * 1e3:.4f} ms from {stage.start * 1e3:.4f} ms on{after}{critical}\n{text}",
        )

    def _add_waits(self, timeline: Timeline, rows: _Rows, what: str) -> None:
        """Idle times, and the critical path where anything runs beside it."""
        for lane in timeline.lanes:
            row = rows.place(lane.name, what)
            for idle in lane.idle:
                self._gaps.add(
                    idle.start,
                    idle.seconds,
                    row - HALF,
                    row + HALF,
                    ink=MUTED,
                    colour=CUT if idle.kind == "transfer" else MUTED,
                    label=f"{idle.reason}, {milliseconds(idle.seconds)} ms",
                    title=f"{lane.name} is idle, {what}",
                    text=f"{idle.seconds * 1e3:.4f} ms: {idle.reason}",
                )
        if not timeline.has_slack:
            return
        before: Stage | None = None
        for stage in timeline.stages:
            if not stage.is_critical:
                continue
            row = rows.place(stage.device, what)
            self._outlines.add(stage.start, stage.seconds, row - HALF, row + HALF, title="", text="")
            if before is not None and before.device != stage.device:
                _add_line(self._path, before, rows.place(before.device, what), stage.start, row)
            before = stage

    def _add_transfers(self, timeline: Timeline, rows: _Rows) -> None:
        """Lines from the sender's row to the receiver's."""
        for transfer in timeline.transfers:
            cut = transfer.cut
            source, target = (
                rows.place(device, "predicted") for device in (cut.source_device, cut.target_device)
            )
            title = f"transfer of {cut.producer}"
            text = (
                f"{self._explanation.part} {cut.source_subgraph} on {cut.source_device} to "
                f"{cut.target_subgraph} on {cut.target_device}\n"
                f"{cut.bytes:,.0f} bytes, {cut.seconds * 1e3:.4f} ms predicted"
            )
            up = source > target
            row = (
                transfer.start * 1e3,
                source + (-HALF if up else HALF),
                transfer.end * 1e3,
                target + (HALF if up else -HALF),
                title,
                text,
            )
            for name, value in zip(_LINES, row, strict=True):
                self._links[name].append(value)


def _add_line(lines: dict[str, list[Any]], sender: Stage, source: int, end: float, target: int) -> None:
    """From the end of a stage to the next one on the critical path, in another row."""
    up = source > target
    ends = (sender.end * 1e3, source + (-HALF if up else HALF), end * 1e3, target + (HALF if up else -HALF))
    for name, value in zip(_LINES, (*ends, "", ""), strict=True):
        lines[name].append(value)


def costs_text(devices: Sequence[str], seconds: Any) -> str:
    """What a group costs on each device."""
    return ", ".join(
        f"{device} {value * 1e3:.4f} ms" if np.isfinite(value) else f"{device} cannot run it"
        for device, value in zip(devices, seconds, strict=True)
    )
