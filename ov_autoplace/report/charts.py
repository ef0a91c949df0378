"""The small charts: latencies with their intervals, and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    DataRange1d,
    FixedTicker,
    HoverTool,
    NoOverlap,
    Range1d,
    Span,
)
from bokeh.plotting import figure

from ov_autoplace._base.text import milliseconds
from ov_autoplace.explain.candidates import CandidateRow, Measured
from ov_autoplace.report.contents import Curve
from ov_autoplace.report.palette import MUTED, device_styles

__all__ = [
    "TOOLTIP",
    "curve_chart",
    "latency_chart",
    "plain",
    "plain_legend",
    "rows_chart",
]

TOOLTIP = '<div style="max-width:30rem;overflow-wrap:anywhere;white-space:pre-line;font:13px/1.45 system-ui">'
"""Opens the text of a tooltip: long names wrap."""

_HIGHEST = 3.0  # ratios beyond this say no more than that they are bad


def plain(chart: figure) -> figure:
    """Take off what is drawn around a chart, and let the page show through."""
    chart.background_fill_color = None
    chart.border_fill_color = None
    chart.outline_line_color = None
    chart.grid.grid_line_color = MUTED
    chart.grid.grid_line_alpha = 0.25
    chart.axis.minor_tick_line_color = None
    for name in ("axis_line_color", "major_tick_line_color", "axis_label_text_color"):
        setattr(chart.axis, name, MUTED)
    chart.axis.major_label_text_color = MUTED
    chart.axis.axis_label_text_font_style = "normal"
    chart.axis.axis_label_text_font = chart.axis.major_label_text_font = "system-ui, sans-serif"
    chart.xaxis.major_label_policy = NoOverlap(min_distance=8)  # on a phone, every other number
    chart.toolbar.logo = None
    return chart


def latency_chart(rows: Sequence[CandidateRow]) -> figure | None:
    """Measured medians with intervals as dots, predictions as rings; ``None`` when there is nothing."""
    shown = [row for row in rows if row.measured is not None or row.predicted is not None]
    if not shown:
        return None
    chart = rows_chart("latency", [row.name for row in shown], "latency in ms", 32)
    predicted = [(-float(i), row.name, row.predicted) for i, row in enumerate(shown) if row.predicted]
    measured = [(-float(i), row, row.measured) for i, row in enumerate(shown) if row.measured is not None]
    longest = max([seconds for _, _, seconds in predicted] + [own.median for _, _, own in measured])
    chart.x_range = DataRange1d(default_span=0.2e3 * longest)  # where all are equal
    if predicted:
        columns = dict(zip(("y", "name"), zip(*(row[:2] for row in predicted), strict=True), strict=True))
        columns["x"] = [1e3 * seconds for _, _, seconds in predicted]
        style = {"line_width": 1.5, "line_color": MUTED, "fill_color": None, "legend_label": "predicted"}
        _scatter(chart, ColumnDataSource(columns), (("predicted", "@x{0.0000} ms"),), size=11, **style)
    if measured:
        source = ColumnDataSource(
            {
                "x": [1e3 * own.median for _, _, own in measured],
                # Without an interval the line has no length.
                "low": [1e3 * (own.interval or (own.median, own.median))[0] for _, _, own in measured],
                "high": [1e3 * (own.interval or (own.median, own.median))[1] for _, _, own in measured],
                "interval": [_interval_text(own) for _, _, own in measured],
                "samples": [row.samples for _, row, _ in measured],
                "y": [y for y, _, _ in measured],
                "name": [row.name for _, row, _ in measured],
            }
        )
        colour = device_styles(1)[0].colour
        # Not Bokeh's whiskers, which the range of the axis leaves out.
        chart.segment("low", "y", "high", "y", source=source, line_color=colour, line_width=2)
        known = (("measured", "@x{0.0000} ms"), ("95 % interval", "@interval"), ("samples", "@samples"))
        _scatter(chart, source, known, size=9, color=colour, legend_label="measured, 95 % interval")
    chart.add_layout(chart.legend[0], "above")
    plain_legend(chart)
    return plain(chart)


def _scatter(chart: figure, source: ColumnDataSource, known: Sequence[tuple[str, str]], **style: Any) -> None:
    """Marks whose tooltips tell their name and what is known of them."""
    drawn = chart.scatter("x", "y", source=source, **style)
    tooltips = [("", "@name"), *known]
    chart.add_tools(HoverTool(renderers=[drawn], tooltips=tooltips, visible=False))


def _interval_text(measured: Measured) -> str:
    """The 95 % interval of what was measured, in milliseconds."""
    if measured.interval is None:
        return "unknown, there are too few samples"
    low, high = measured.interval
    return f"{milliseconds(low)} .. {milliseconds(high)} ms"


def rows_chart(
    name: str, labels: Sequence[str], axis: str, height: int, tools: str = "xpan,xbox_zoom,reset,save"
) -> figure:
    """A drawing with a named row per label, from the top.

    Args:
        name: Of the drawing.
        labels: Of the rows, whose places are 0, -1, -2 and so on.
        axis: What the horizontal axis shows.
        height: Pixels of a row.
        tools: What the pointer can do; a wheel scrolls the page until it is asked to do something else.
    """
    chart = figure(
        name=name,
        y_range=Range1d(-len(labels) + 0.4, 0.6),
        tags=[height],  # names that are broken into lines make rows higher
        height=120 + height * len(labels),
        sizing_mode="stretch_width",
        tools=tools,
        active_scroll=None,
        toolbar_location="above",
        x_axis_label=axis,
    )
    chart.yaxis.ticker = FixedTicker(ticks=[-float(i) for i in range(len(labels))])
    # Whole numbers are looked up without a point.
    chart.yaxis.major_label_overrides = {-i: label for i, label in enumerate(labels)}
    chart.ygrid.grid_line_color = None
    chart.xaxis.formatter.use_scientific = False
    return chart


def curve_chart(curves: Sequence[Curve]) -> figure | None:
    """The best placement so far as a line, behind it every evaluation as a dot; ``None`` without any."""
    curves = [curve for curve in curves if len(curve.numbers)]
    if not curves:
        return None
    chart = figure(
        name="curve",
        height=380,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom,reset,save",
        toolbar_location="above",
        x_axis_label="measured placements",
        y_axis_label="latency / best single device",
    )
    chart.xaxis.ticker = BasicTicker(min_interval=1)
    chart.add_layout(Span(location=1.0, dimension="width", line_color=MUTED, line_dash="dotted"))
    drawn = []
    for curve, style in zip(curves, device_styles(len(curves)), strict=True):
        values = np.minimum(curve.values, _HIGHEST)
        source = ColumnDataSource(
            {
                "x": curve.numbers,
                "y": values,
                "best": np.minimum(curve.best, _HIGHEST),
                "name": [curve.name] * len(values),
            }
        )
        known = (("placement", "@x"), ("ratio", "@y{0.000}"), ("best until then", "@best{0.000}"))
        dots = {"size": 7, "color": style.colour, "alpha": 0.3, "marker": style.shape, "line_color": None}
        _scatter(chart, source, known, **dots)
        drawn.append((curve, style, source))
    for curve, style, source in drawn:  # above the dots of all
        chart.step(
            "x",
            "best",
            source=source,
            mode="after",
            line_width=2,
            color=style.colour,
            legend_label=curve.name,
        )
    chart.add_layout(chart.legend[0], "above")  # dots may be anywhere inside
    plain_legend(chart)
    return plain(chart)


def plain_legend(chart: figure) -> None:
    """A legend in a row, as unobtrusive as the axes."""
    chart.legend.background_fill_color = None
    chart.legend.border_line_color = None
    chart.legend.label_text_color = MUTED
    chart.legend.label_text_font = "system-ui, sans-serif"
    chart.legend.orientation = "horizontal"
    chart.legend.location = "top_left"
    chart.legend.margin = 0
