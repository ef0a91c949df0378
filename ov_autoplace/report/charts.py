"""The small charts: latencies with their intervals, and learning curves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bokeh.models import BasicTicker, ColumnDataSource, DataRange1d, HoverTool, Span
from bokeh.plotting import figure

from ov_autoplace.report.contents import Curve, Latency
from ov_autoplace.report.palette import device_styles

__all__ = ["MUTED", "TOOLTIP", "curve_chart", "latency_chart", "plain"]

MUTED = "#8a8a8a"
"""Lines and text that are readable on white and on black; the page's script sets better ones."""

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
    chart.toolbar.logo = None
    return chart


def latency_chart(latencies: Sequence[Latency]) -> figure | None:
    """Measured medians with intervals as dots, predictions as rings; ``None`` when there is nothing."""
    shown = [row for row in latencies if row.median is not None or row.predicted is not None]
    if not shown:
        return None
    # Equal names would be one row of the chart.
    names = [f"{row.name} " + "\u200b" * i for i, row in enumerate(shown)]
    longest = max(seconds for row in shown for seconds in (row.median, row.predicted) if seconds is not None)
    chart = figure(
        name="latency",
        x_range=DataRange1d(default_span=0.2e3 * longest),  # where all are equal
        y_range=names[::-1],
        height=120 + 24 * len(shown),
        sizing_mode="stretch_width",
        tools="xpan,xbox_zoom,reset,save",
        toolbar_location="above",
        x_axis_label="latency in ms",
    )
    measured = [(name, row) for name, row in zip(names, shown, strict=True) if row.median is not None]
    predicted = [(name, row) for name, row in zip(names, shown, strict=True) if row.predicted is not None]
    if predicted:
        rings = ColumnDataSource(
            {"x": [_ms(row.predicted) for _, row in predicted], "y": [name for name, _ in predicted]}
        )
        drawn = chart.scatter(
            "x",
            "y",
            source=rings,
            size=11,
            line_width=1.5,
            line_color=MUTED,
            fill_color=None,
            legend_label="predicted",
        )
        chart.add_tools(
            HoverTool(renderers=[drawn], tooltips=[("", "@y"), ("predicted", "@x{0.000} ms")], visible=False)
        )
    if measured:
        dots = ColumnDataSource(
            {
                "x": [_ms(row.median) for _, row in measured],
                # Without an interval the line has no length.
                "low": [_ms(row.median if row.low is None else row.low) for _, row in measured],
                "high": [_ms(row.median if row.high is None else row.high) for _, row in measured],
                "samples": [row.samples for _, row in measured],
                "y": [name for name, _ in measured],
            }
        )
        colour = device_styles(1)[0].colour
        # Not Bokeh's whiskers, which the range of the axis leaves out.
        chart.segment("low", "y", "high", "y", source=dots, line_color=colour, line_width=2)
        drawn = chart.scatter(
            "x", "y", source=dots, size=9, color=colour, legend_label="median, 95 % interval"
        )
        chart.add_tools(
            HoverTool(
                renderers=[drawn],
                tooltips=[
                    ("", "@y"),
                    ("median", "@x{0.000} ms"),
                    ("95 % interval", "@low{0.000} .. @high{0.000} ms"),
                    ("samples", "@samples"),
                ],
                visible=False,
            )
        )
    chart.ygrid.grid_line_color = None
    chart.legend.location = "center"
    chart.add_layout(chart.legend[0], "above")
    _plain_legend(chart)
    return plain(chart)


def curve_chart(curves: Sequence[Curve]) -> figure | None:
    """The best placement so far as a line, every measured one as a dot; ``None`` without any."""
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
    for curve, style in zip(curves, device_styles(len(curves)), strict=True):
        values = np.minimum(curve.values, _HIGHEST)
        source = ColumnDataSource(
            {
                "x": curve.numbers,
                "y": values,
                "best": np.minimum.accumulate(values),
                "name": [curve.name] * len(values),
            }
        )
        dots = chart.scatter(
            "x",
            "y",
            source=source,
            size=8,
            color=style.colour,
            alpha=0.6,
            marker=style.shape,
            line_color=None,
        )
        chart.step(
            "x",
            "best",
            source=source,
            mode="after",
            line_width=2,
            color=style.colour,
            legend_label=curve.name,
        )
        chart.add_tools(
            HoverTool(
                renderers=[dots],
                tooltips=[
                    ("", "@name"),
                    ("placement", "@x"),
                    ("ratio", "@y{0.000}"),
                    ("best", "@best{0.000}"),
                ],
                visible=False,
            )
        )
    chart.add_layout(chart.legend[0], "above")  # dots may be anywhere inside
    _plain_legend(chart)
    return plain(chart)


def _plain_legend(chart: figure) -> None:
    chart.legend.background_fill_color = None
    chart.legend.border_line_color = None
    chart.legend.label_text_color = MUTED
    chart.legend.label_text_font = "system-ui, sans-serif"
    chart.legend.orientation = "horizontal"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
