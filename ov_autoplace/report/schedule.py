"""The schedule: a lane per device, subgraphs and their groups as bars, transfers as links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Range1d
from bokeh.plotting import figure

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import Timeline
from ov_autoplace.measure.measured_run import MeasuredRun
from ov_autoplace.report.charts import TOOLTIP, plain
from ov_autoplace.report.palette import CUT, device_styles

__all__ = ["costs_text", "draws_groups", "schedule_chart"]

_MOST_BARS = 8000
"""With more groups, only their subgraphs are drawn."""

_LABEL_SHARE = 0.08
"""A bar that takes this share of the time is wide enough for a text."""

_HALF = 0.4  # of a lane's height


@dataclass(slots=True)
class _Bars:
    """Columns of one kind of bar."""

    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {
            name: []
            for name in ("left", "right", "bottom", "top", "colour", "alpha", "ink", "label", "title", "text")
        }
    )

    def add(self, left: float, seconds: float, bottom: float, top: float, **style: Any) -> None:
        """One bar; times are in seconds."""
        row = {"left": left * 1e3, "right": (left + seconds) * 1e3, "bottom": bottom, "top": top}
        for name, value in {"alpha": 1.0, "ink": "", "label": "", **row, **style}.items():
            self.columns[name].append(value)

    def __len__(self) -> int:
        return len(self.columns["left"])


def schedule_chart(
    explanation: Explanation, timeline: Timeline, measured: MeasuredRun | None = None
) -> figure:
    """The predicted run, and below it the measured one when there is one."""
    devices = list(explanation.table.devices)
    lanes = [*devices, *(f"{device}, measured" for device in devices if measured is not None)]
    total = max(timeline.seconds, measured.seconds if measured is not None else 0.0)
    chart = figure(
        name="schedule",
        height=90 + 76 * len(lanes),
        sizing_mode="stretch_width",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll=None,
        toolbar_location="above",
        x_range=Range1d(-0.005 * total * 1e3, 1.01 * total * 1e3),
        y_range=Range1d(-len(lanes) + 0.4, 0.6),
        x_axis_label="ms",
    )
    subgraphs, parts, arrivals = _Bars(), _Bars(), _Bars()
    _add_predicted(explanation, timeline, subgraphs, parts)
    if measured is not None:
        _add_measured(measured, devices, subgraphs, parts)
    links = _links(timeline, devices, arrivals)
    for bars in (arrivals, parts, subgraphs):
        _draw(chart, bars)
    _draw_labels(chart, subgraphs, total)
    if links["x0"]:
        drawn = chart.segment(
            "x0", "y0", "x1", "y1", source=ColumnDataSource(links), color=CUT, line_width=1.5, line_alpha=0.9
        )
        _hover(chart, drawn)
    chart.yaxis.ticker = FixedTicker(ticks=[-float(i) for i in range(len(lanes))])
    # Whole numbers are looked up without a point.
    chart.yaxis.major_label_overrides = {-i: lane for i, lane in enumerate(lanes)}
    chart.ygrid.grid_line_color = None
    plain(chart)
    chart.yaxis.axis_line_color = chart.yaxis.major_tick_line_color = None
    chart.yaxis.major_label_text_font_size = "13px"
    return chart


def draws_groups(explanation: Explanation) -> bool:
    """Whether groups have bars of their own, or there are too many."""
    return len(explanation.table) <= _MOST_BARS


def _add_predicted(explanation: Explanation, timeline: Timeline, subgraphs: _Bars, parts: _Bars) -> None:
    table = explanation.table
    position = {device: d for d, device in enumerate(table.devices)}
    styles = device_styles(len(position))
    split = draws_groups(explanation)
    for stage in timeline.stages:
        d = position[stage.device]
        style, lane = styles[d], -d
        subgraphs.add(
            stage.start,
            stage.seconds,
            lane if split else lane - _HALF,
            lane + _HALF,
            colour=style.colour,
            ink=style.on_colour,
            label=f"{stage.subgraph}: {stage.seconds * 1e3:.3f} ms",
            title=f"subgraph {stage.subgraph} on {stage.device}",
            text=f"{stage.seconds * 1e3:.4f} ms from {stage.start * 1e3:.4f} ms on\n"
            f"{stage.ops} ops in {len(stage.groups)} groups\n"
            f"from {table.names[stage.groups[0]]}\nto {table.names[stage.groups[-1]]}",
        )
        for i, g in enumerate(stage.groups if split else ()):
            parts.add(
                float(timeline.group_start[g]),
                float(timeline.group_seconds[g]),
                lane - _HALF,
                lane - 0.04,
                colour=style.colour,
                alpha=0.75 if i % 2 else 0.5,
                title=table.names[g],
                text=f"{table.op_types[g] if table.op_types is not None else 'group'}, "
                f"{timeline.group_seconds[g] * 1e3:.4f} ms\n{costs_text(table.devices, table.op_seconds[g])}",
            )


def _add_measured(run: MeasuredRun, devices: Sequence[str], subgraphs: _Bars, parts: _Bars) -> None:
    """The measured submodels end to end: devices say how long their nodes took, not when."""
    styles = device_styles(len(devices))
    now = 0.0
    for stage in run.stages:
        d = devices.index(stage.device) if stage.device in devices else 0
        style, lane = styles[d], -(len(devices) + d)
        subgraphs.add(
            now,
            stage.seconds,
            lane,
            lane + _HALF,
            colour=style.colour,
            ink=style.on_colour,
            label=f"{stage.subgraph}: {stage.seconds * 1e3:.3f} ms",
            title=f"submodel {stage.subgraph} on {stage.device}, measured",
            text=f"{stage.seconds * 1e3:.4f} ms in {len(stage.nodes)} nodes",
        )
        for i, node in enumerate(stage.nodes):
            parts.add(
                now,
                node.seconds,
                lane - _HALF,
                lane - 0.04,
                colour=style.colour,
                alpha=0.75 if i % 2 else 0.5,
                title=node.name,
                text=f"{node.kind}, {node.kernel}\n{node.seconds * 1e3:.4f} ms measured",
            )
            now += node.seconds


def _links(timeline: Timeline, devices: Sequence[str], arrivals: _Bars) -> dict[str, list[Any]]:
    """Lines from the sender's lane to the receiver's; the time that they take is a bar in the latter."""
    links: dict[str, list[Any]] = {name: [] for name in ("x0", "y0", "x1", "y1", "title", "text")}
    for transfer in timeline.transfers:
        cut = transfer.cut
        source, target = -devices.index(cut.source_device), -devices.index(cut.target_device)
        title = f"transfer of {cut.producer}"
        text = (
            f"subgraph {cut.source_subgraph} on {cut.source_device} to "
            f"subgraph {cut.target_subgraph} on {cut.target_device}\n"
            f"{cut.bytes:,.0f} bytes, {cut.seconds * 1e3:.4f} ms"
        )
        arrivals.add(
            transfer.start, cut.seconds, target - _HALF, target + _HALF, colour=CUT, title=title, text=text
        )
        up = source > target
        row = (
            transfer.start * 1e3,
            source + (-_HALF if up else _HALF),
            transfer.end * 1e3,
            target + (_HALF if up else -_HALF),
            title,
            text,
        )
        for name, value in zip(links, row, strict=True):
            links[name].append(value)
    return links


def _draw(chart: figure, bars: _Bars) -> None:
    if len(bars):
        drawn = chart.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=ColumnDataSource(bars.columns),
            fill_color="colour",
            fill_alpha="alpha",
            line_color=None,
        )
        _hover(chart, drawn)


def _draw_labels(chart: figure, bars: _Bars, total: float) -> None:
    wide = [
        i
        for i, (left, right) in enumerate(zip(bars.columns["left"], bars.columns["right"], strict=True))
        if right - left >= _LABEL_SHARE * total * 1e3
    ]
    if wide:
        columns = {name: [values[i] for i in wide] for name, values in bars.columns.items()}
        columns["x"] = [(a + b) / 2 for a, b in zip(columns["left"], columns["right"], strict=True)]
        columns["y"] = [(a + b) / 2 for a, b in zip(columns["bottom"], columns["top"], strict=True)]
        chart.text(
            "x",
            "y",
            "label",
            source=ColumnDataSource(columns),
            text_color="ink",
            text_align="center",
            text_baseline="middle",
            text_font={"value": "system-ui, sans-serif"},
            text_font_size="12px",
        )


def _hover(chart: figure, drawn: Any) -> None:
    chart.add_tools(
        HoverTool(renderers=[drawn], tooltips=f"{TOOLTIP}<b>@title</b>\n@text</div>", visible=False, limit=1)
    )


def costs_text(devices: Sequence[str], seconds: Any) -> str:
    """What a group costs on each device."""
    return ", ".join(
        f"{device} {value * 1e3:.4f} ms" if np.isfinite(value) else f"{device} cannot run it"
        for device, value in zip(devices, seconds, strict=True)
    )
