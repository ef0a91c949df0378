"""The schedule: a row per device or lane, measured above predicted; what runs, what waits, what decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import Range1d
from bokeh.plotting import figure

from ov_autoplace._base.text import counted, milliseconds
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.pieces import Piece
from ov_autoplace.explain.timeline import Stage, Timeline
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


def schedule_chart(analysis: Analysis) -> figure:
    """The predicted run, and above it the measured one when there is one."""
    drawing, rows = _Drawing(analysis), _rows(analysis)
    for what, run in analysis.runs.items():
        place = {lane.name: list(rows).index((lane.name, what)) for lane in run.lanes}
        drawing.add(what, run, {name: -row for name, row in place.items()})
    total = max(run.seconds for run in analysis.runs.values())
    height = 76 if len(rows) <= _FEW_ROWS else 58
    tools = "xpan,xwheel_zoom,xbox_zoom,reset,save"
    chart = rows_chart("schedule", list(rows.values()), "ms", height, tools=tools)
    chart.x_range = Range1d(-0.005 * total * 1e3, 1.01 * total * 1e3)
    drawing.draw(chart)
    plain(chart)
    chart.yaxis.axis_line_color = chart.yaxis.major_tick_line_color = None
    chart.yaxis.major_label_text_font_size = "13px"
    return chart


def draws_groups(explanation: Explanation) -> bool:
    """Whether groups have bars of their own, or there are too many."""
    return len(explanation.table) <= _MOST_BARS


def _rows(analysis: Analysis) -> dict[tuple[str, str], str]:
    """The label of each row from the top, by device or lane and run."""
    uses = {(lane.name, what): lane for what, run in analysis.runs.items() for lane in run.lanes}
    names = dict.fromkeys(name for name, _ in uses)
    shown = [(name, what) for name in names for what in analysis.runs if (name, what) in uses]
    # Numbers stay with their units where the page breaks the lines.
    return {
        (name, what): f"{name}, {what}\nidle {milliseconds(use.idle_seconds)}\N{NO-BREAK SPACE}ms, "
        f"{100 * (1 - use.share):.0f}\N{NO-BREAK SPACE}%"
        for name, what in shown
        for use in [uses[name, what]]
    }


class _Drawing:
    """All that is drawn on the time axis of one placement; ``place`` is the row of each device in a run."""

    def __init__(self, analysis: Analysis) -> None:
        self._inside, self._part = analysis.inside, analysis.explanation.part
        self._are_groups_drawn = draws_groups(analysis.explanation)
        devices = analysis.explanation.table.devices
        styles = device_styles(len(devices))
        self._style: dict[str, DeviceStyle] = dict(zip(devices, styles, strict=True))
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

    def add(self, what: str, timeline: Timeline, place: Mapping[str, int]) -> None:
        """A run: what is in it, and what is between."""
        for stage in timeline.stages:
            row, pieces = place[stage.device], list(self._inside[what](stage))
            self._add_stage(stage, row, what, pieces)
            for i, piece in enumerate(pieces if self._are_groups_drawn else ()):
                self._parts.add(
                    piece.start,
                    piece.seconds,
                    row - HALF,
                    row - 0.04,
                    colour=self._style.get(stage.device, self._other).colour,
                    alpha=0.75 if i % 2 else 0.5,
                    title=piece.name,
                    text=f"{piece.seconds * 1e3:.4f} ms {what}\n{_about(piece)}",
                )
        if what == "predicted":
            self._add_transfers(timeline, place)
        self._add_waits(timeline, place, what)

    def _add_stage(self, stage: Stage, row: int, what: str, pieces: Sequence[Piece]) -> None:
        style = self._style.get(stage.device, self._other)
        after = f"\nafter {stage.after}" if stage.after >= 0 else ""
        critical = "\non the critical path" if stage.is_critical else ""
        inside = ""
        if pieces:
            count = counted(len(pieces), pieces[0].kind)
            inside = f"\n{count}, from {pieces[0].name}\nto {pieces[-1].name}"
        self._stages.add(
            stage.start,
            stage.seconds,
            row if pieces and self._are_groups_drawn else row - HALF,
            row + HALF,
            colour=style.colour,
            ink=style.on_colour,
            label=f"{stage.subgraph}: {milliseconds(stage.seconds)} ms",
            title=f"{self._part} {stage.subgraph} on {stage.device}, {what}",
            text=f"{stage.seconds * 1e3:.4f} ms from {stage.start * 1e3:.4f} ms on{after}{critical}{inside}",
        )

    def _add_waits(self, timeline: Timeline, place: Mapping[str, int], what: str) -> None:
        """Idle times, and the critical path where anything runs beside it."""
        for lane in timeline.lanes:
            row = place[lane.name]
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
            row = place[stage.device]
            self._outlines.add(stage.start, stage.seconds, row - HALF, row + HALF, title="", text="")
            if before is not None and before.device != stage.device:
                _add_line(self._path, before, place[before.device], stage.start, row)
            before = stage

    def _add_transfers(self, timeline: Timeline, place: Mapping[str, int]) -> None:
        """Lines from the sender's row to the receiver's."""
        for transfer in timeline.transfers:
            cut = transfer.cut
            source, target = place[cut.source_device], place[cut.target_device]
            title = f"transfer of {cut.producer}"
            text = (
                f"{self._part} {cut.source_subgraph} on {cut.source_device} to "
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


def _about(piece: Piece) -> str:
    """What is known of a group or node, a line each."""
    return "\n".join(f"{name}: {_text(value)}" for name, value in piece.about.items() if value)


def _text(value: float | str | list[str]) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return value if isinstance(value, str) else ", ".join(value)


def costs_text(devices: Sequence[str], seconds: Any) -> str:
    """What a group costs on each device."""
    return ", ".join(
        f"{device} {value * 1e3:.4f} ms" if np.isfinite(value) else f"{device} cannot run it"
        for device, value in zip(devices, seconds, strict=True)
    )
