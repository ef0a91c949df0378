"""Bars of a time axis: their columns, and how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool
from bokeh.plotting import figure

from ov_autoplace.report.charts import TOOLTIP
from ov_autoplace.report.palette import MUTED

__all__ = ["HALF", "Bars", "draw_bars", "draw_gaps", "draw_labels", "draw_lines", "draw_outlines", "hover"]

HALF = 0.4
"""Half the height of a row's bars, where rows are 1 apart."""


@dataclass(slots=True)
class Bars:
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
        for name, value in {"colour": MUTED, "alpha": 1.0, "ink": "", "label": "", **row, **style}.items():
            self.columns[name].append(value)

    def __len__(self) -> int:
        return len(self.columns["left"])


def draw_bars(chart: figure, bars: Bars) -> None:
    """Filled ones."""
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
        hover(chart, drawn)


def draw_gaps(chart: figure, bars: Bars) -> None:
    """Hatched ones, for times in which nothing runs."""
    if len(bars):
        drawn = chart.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=ColumnDataSource(bars.columns),
            fill_color="colour",
            fill_alpha=0.12,
            hatch_pattern="right_diagonal_line",
            hatch_color="colour",
            hatch_alpha=0.45,
            hatch_scale=8,
            hatch_weight=1,
            line_color=None,
        )
        hover(chart, drawn)


def draw_outlines(chart: figure, bars: Bars, name: str) -> None:
    """Only their edges, in a colour that the page's script sets by name."""
    if len(bars):
        chart.quad(
            "left",
            "right",
            "top",
            "bottom",
            source=ColumnDataSource(bars.columns),
            name=name,
            fill_color=None,
            line_color=MUTED,
            line_width=2.5,
        )


def draw_lines(chart: figure, lines: dict[str, list[Any]], colour: str, name: str | None = None) -> None:
    """Straight lines between rows; with a name their colour is set by the page's script."""
    if lines["x0"]:
        drawn = chart.segment(
            "x0",
            "y0",
            "x1",
            "y1",
            source=ColumnDataSource(lines),
            line_color=colour,
            line_width=1.5 if name is None else 2,
            line_alpha=0.9,
            **({} if name is None else {"name": name}),
        )
        if name is None:
            hover(chart, drawn)


def draw_labels(chart: figure, bars: Bars, name: str) -> None:
    """Texts in the middle of bars; the page's script shows those that have room, and finds them by name."""
    if len(bars):
        columns = {name: bars.columns[name] for name in ("left", "right", "ink")}
        columns["x"] = [(a + b) / 2 for a, b in zip(bars.columns["left"], bars.columns["right"], strict=True)]
        columns["y"] = [(a + b) / 2 for a, b in zip(bars.columns["bottom"], bars.columns["top"], strict=True)]
        columns["whole"] = bars.columns["label"]
        columns["label"] = [""] * len(bars)
        chart.text(
            "x",
            "y",
            "label",
            source=ColumnDataSource(columns),
            name=name,
            text_color="ink",
            text_align="center",
            text_baseline="middle",
            text_font={"value": "system-ui, sans-serif"},
            text_font_size="12px",
        )


def hover(chart: figure, drawn: Any) -> None:
    """A tooltip of title and text."""
    chart.add_tools(
        HoverTool(renderers=[drawn], tooltips=f"{TOOLTIP}<b>@title</b>\n@text</div>", visible=False, limit=1)
    )
