"""The schedule: a row per device or lane, measured above predicted; what runs, what waits, what decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import FixedTicker, Range1d
from bokeh.plotting import figure

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.measured import measured_timeline
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
from ov_autoplace.report.charts import MUTED, plain
from ov_autoplace.report.palette import CUT, DeviceStyle, device_styles

__all__ = ["costs_text", "draws_groups", "schedule_chart"]

_MOST_BARS = 8000
"""With more groups, only their subgraphs are drawn."""

_FEW_ROWS = 6  # up to so many are high
_LINES = ("x0", "y0", "x1", "y1", "title", "text")


def schedule_chart(
    explanation: Explanation, timeline: Timeline, measured: MeasuredRun | None = None
) -> figure:
    """The predicted run, and above it the measured one when there is one."""
    drawing = _Drawing(explanation)
    runs = [(timeline, False)]
    if measured is not None:
        runs.insert(0, (measured_timeline(explanation, measured), True))
    rows = _Rows(runs)
    drawing.add_predicted(timeline, rows)
    if measured is not None:
        drawing.add_measured(runs[0][0], measured, rows)
    total = max(run.seconds for run, _ in runs)
    chart = figure(
        name="schedule",
        height=90 + (76 if len(rows.labels) <= _FEW_ROWS else 58) * len(rows.labels),
        sizing_mode="stretch_width",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll=None,
        toolbar_location="above",
        x_range=Range1d(-0.005 * total * 1e3, 1.01 * total * 1e3),
        y_range=Range1d(-len(rows.labels) + 0.4, 0.6),
        x_axis_label="ms",
    )
    drawing.draw(chart)
    chart.yaxis.ticker = FixedTicker(ticks=[-float(i) for i in range(len(rows.labels))])
    # Whole numbers are looked up without a point.
    chart.yaxis.major_label_overrides = {-i: label for i, label in enumerate(rows.labels)}
    chart.ygrid.grid_line_color = None
    plain(chart)
    chart.yaxis.axis_line_color = chart.yaxis.major_tick_line_color = None
    chart.yaxis.major_label_text_font_size = "13px"
    return chart


def draws_groups(explanation: Explanation) -> bool:
    """Whether groups have bars of their own, or there are too many."""
    return len(explanation.table) <= _MOST_BARS


class _Rows:
    """Where the rows of devices and lanes are, from 0 downwards, and what they are called."""

    def __init__(self, runs: Sequence[tuple[Timeline, bool]]) -> None:
        self.labels: list[str] = []
        self._place: dict[tuple[str, bool], int] = {}
        uses = {(lane.name, is_measured): lane for run, is_measured in runs for lane in run.lanes}
        names = dict.fromkeys(lane.name for run, _ in runs for lane in run.lanes)
        for name in names:
            for _, is_measured in runs:
                lane = uses.get((name, is_measured))
                if lane is None:
                    continue
                self._place[name, is_measured] = -len(self.labels)
                title = f"{name}, measured" if is_measured else name
                self.labels.append(f"{title}\nidle {100 * (1 - lane.share):.0f} %")

    def place(self, name: str, is_measured: bool) -> int:
        """The middle of a row."""
        return self._place[name, is_measured]


class _Drawing:
    """All that is drawn on the time axis of one placement."""

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self._table = explanation.table
        styles = device_styles(self._table.num_devices)
        self._style: dict[str, DeviceStyle] = dict(zip(self._table.devices, styles, strict=True))
        self._other = styles[0]
        self._at_once = explanation.objective == "overlap"
        self._stages, self._parts, self._arrivals = Bars(), Bars(), Bars()
        self._gaps, self._outlines = Bars(), Bars()
        self._links: dict[str, list[Any]] = {name: [] for name in _LINES}
        self._path: dict[str, list[Any]] = {name: [] for name in _LINES}

    def draw(self, chart: figure) -> None:
        """Everything, what matters most on top."""
        draw_gaps(chart, self._gaps)
        for bars in (self._arrivals, self._parts, self._stages):
            draw_bars(chart, bars)
        draw_labels(chart, self._stages)
        draw_lines(chart, self._links, CUT)
        draw_outlines(chart, self._outlines, "critical")
        draw_lines(chart, self._path, MUTED, "critical-path")

    def add_predicted(self, timeline: Timeline, rows: _Rows) -> None:
        """Subgraphs with their groups, and transfers."""
        table, split = self._table, draws_groups(self._explanation)
        what = "submodel" if self._at_once else "subgraph"
        for stage in timeline.stages:
            row = rows.place(stage.device, False)
            text = (
                f"{stage.ops} ops in {len(stage.groups)} groups\n"
                f"from {table.names[stage.groups[0]]}\nto {table.names[stage.groups[-1]]}"
            )
            self._add_stage(stage, row, split, f"{what} {stage.subgraph} on {stage.device}", text)
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
                    text=f"{kind}, {timeline.group_seconds[g] * 1e3:.4f} ms\n"
                    f"{costs_text(table.devices, table.op_seconds[g])}",
                )
        self._add_transfers(timeline, rows)
        self._add_waits(timeline, rows, False)

    def add_measured(self, timeline: Timeline, run: MeasuredRun, rows: _Rows) -> None:
        """Submodels with their nodes."""
        nodes = {stage.subgraph: stage.nodes for stage in run.stages}
        for stage in timeline.stages:
            row = rows.place(stage.device, True)
            own = nodes[stage.subgraph]
            title = f"submodel {stage.subgraph} on {stage.device}, measured"
            self._add_stage(stage, row, bool(own), title, f"{len(own)} nodes")
            # Nodes take whole microseconds, which can be more than their submodel took.
            spent = sum(node.seconds for node in own)
            scale = min(1.0, stage.seconds / spent) if spent > 0 else 1.0
            now = stage.start
            for i, node in enumerate(own):
                self._parts.add(
                    now,
                    scale * node.seconds,
                    row - HALF,
                    row - 0.04,
                    colour=self._style.get(stage.device, self._other).colour,
                    alpha=0.75 if i % 2 else 0.5,
                    title=node.name,
                    text=f"{node.kind}, {node.kernel}\n{node.seconds * 1e3:.4f} ms measured",
                )
                now += scale * node.seconds
        self._add_waits(timeline, rows, True)

    def _add_stage(self, stage: Stage, row: int, split: bool, title: str, text: str) -> None:
        style = self._style.get(stage.device, self._other)
        after = f"\nafter {stage.after}" if stage.after >= 0 and self._at_once else ""
        critical = "\non the critical path" if stage.is_critical and self._at_once else ""
        self._stages.add(
            stage.start,
            stage.seconds,
            row if split else row - HALF,
            row + HALF,
            colour=style.colour,
            ink=style.on_colour,
            label=f"{stage.subgraph}: {stage.seconds * 1e3:.3f} ms",
            title=title,
            text=f"{stage.seconds * 1e3:.4f} ms from {stage.start * 1e3:.4f} ms on{after}{critical}\n{text}",
        )

    def _add_waits(self, timeline: Timeline, rows: _Rows, is_measured: bool) -> None:
        """Idle times, and the critical path where anything runs beside it."""
        for lane in timeline.lanes:
            row = rows.place(lane.name, is_measured)
            for idle in lane.idle:
                self._gaps.add(
                    idle.start,
                    idle.seconds,
                    row - HALF,
                    row + HALF,
                    title=f"{lane.name} is idle{', measured' if is_measured else ''}",
                    text=f"{idle.seconds * 1e3:.4f} ms: {idle.reason}",
                )
        if not timeline.has_slack:
            return
        before: Stage | None = None
        for stage in timeline.stages:
            if not stage.is_critical:
                continue
            row = rows.place(stage.device, is_measured)
            self._outlines.add(stage.start, stage.seconds, row - HALF, row + HALF, title="", text="")
            if before is not None and before.device != stage.device:
                _add_line(self._path, before, rows.place(before.device, is_measured), stage.start, row)
            before = stage

    def _add_transfers(self, timeline: Timeline, rows: _Rows) -> None:
        """Lines from the sender's row to the receiver's; in turns, the time that they take is a bar there."""
        for transfer in timeline.transfers:
            cut = transfer.cut
            source, target = rows.place(cut.source_device, False), rows.place(cut.target_device, False)
            title = f"transfer of {cut.producer}"
            text = (
                f"subgraph {cut.source_subgraph} on {cut.source_device} to "
                f"subgraph {cut.target_subgraph} on {cut.target_device}\n"
                f"{cut.bytes:,.0f} bytes, {cut.seconds * 1e3:.4f} ms"
            )
            if not self._at_once:
                self._arrivals.add(
                    transfer.start,
                    cut.seconds,
                    target - HALF,
                    target + HALF,
                    colour=CUT,
                    title=title,
                    text=text,
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
