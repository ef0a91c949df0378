"""The placement graph: a node per group, coloured by device, and what the page's search knows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.core.properties import value
from bokeh.models import (
    ColumnDataSource,
    GlyphRenderer,
    HoverTool,
    Legend,
    LegendItem,
    Range1d,
    TapTool,
)
from bokeh.plotting import figure

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.text import counted
from ov_autoplace.explain.explanation import Explanation, GroupCost
from ov_autoplace.measure.measured_run import MeasuredRun
from ov_autoplace.report.charts import TOOLTIP, plain, plain_legend
from ov_autoplace.report.nodes import DrawnGraph
from ov_autoplace.report.palette import CUT, MUTED, device_styles
from ov_autoplace.report.schedule import costs_text

__all__ = ["graph_chart", "graph_facts"]

_SMALLEST, _LARGEST = 6.0, 22.0  # pixels
_LIST = 3  # groups that a node's tooltip names


def graph_chart(explanation: Explanation, drawn: DrawnGraph, groups: Sequence[GroupCost]) -> figure:
    """The graph from left to right in the order of computation."""
    arcs = _arcs(drawn)
    peaks = np.concatenate([drawn.y, arcs.peak])
    low, high = float(peaks.min(initial=0.0)), float(peaks.max(initial=0.0))
    margin = max(0.06 * (high - low), 1.0)
    last = float(drawn.x.max(initial=0.0))
    chart = figure(
        name="graph",
        height=int(np.clip(180 + 30 * (high - low), 280, 640)),
        sizing_mode="stretch_width",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        active_scroll="wheel_zoom",
        toolbar_location="above",
        x_range=Range1d(-0.02 * last - 0.7, 1.02 * last + 0.7),
        y_range=Range1d(low - margin, high + margin),
        lod_threshold=None,
    )
    _draw_edges(chart, drawn, arcs)
    nodes = chart.scatter(
        "x",
        "y",
        source=ColumnDataSource(_columns(explanation, drawn, groups)),
        size="size",
        marker="shape",
        fill_color="colour",
        line_color=None,
        nonselection_fill_alpha=1.0,
    )
    legend = Legend(items=list(_legend_items(explanation, drawn, nodes)))
    for name, colour, size in (("matches", CUT, 20), ("chosen", MUTED, 28)):
        chart.scatter(
            "x",
            "y",
            source=ColumnDataSource({"x": [], "y": []}),
            name=name,
            size=size,
            marker="circle",
            fill_color=None,
            line_color=colour,
            line_width=2.5,
        )
    chart.add_tools(
        HoverTool(renderers=[nodes], tooltips=f"{TOOLTIP}<b>@title</b>\n@text</div>", visible=False, limit=3),
        TapTool(renderers=[nodes], visible=False),
    )
    plain(chart)
    chart.axis.visible = False
    chart.grid.grid_line_color = None
    chart.add_layout(legend, "above")
    plain_legend(chart)
    return chart


def _legend_items(explanation: Explanation, drawn: DrawnGraph, nodes: GlyphRenderer) -> Iterator[LegendItem]:
    """One for each device that has nodes, which looks like the first of them."""
    for d, device in enumerate(explanation.table.devices):
        own = np.flatnonzero(drawn.device == d)
        if len(own):
            yield LegendItem(label=value(device), renderers=[nodes], index=int(own[0]))


def graph_facts(
    explanation: Explanation, drawn: DrawnGraph, measured: MeasuredRun | None = None
) -> dict[str, Any]:
    """What the page's script needs besides the report.

    Args:
        explanation: The placement.
        drawn: Its drawing.
        measured: Its run, if there was one.

    Returns:
        The colours of devices, the drawn node of each group, and of each kernel that ran: type, kernel, mean
        milliseconds, device, and its ops, of which lanes name the first only.
    """
    return {
        "colours": [style.colour for style in device_styles(explanation.table.num_devices)],
        "node": drawn.node_of.tolist(),
        "measured": [
            [
                node.kind,
                node.kernel,
                float(f"{node.seconds * 1e3:.5g}"),
                stage.device,
                list(node.ops or (node.name,)),
            ]
            for stage in (measured.stages if measured is not None else ())
            for node in stage.nodes
        ],
    }


def _columns(explanation: Explanation, drawn: DrawnGraph, groups: Sequence[GroupCost]) -> dict[str, Any]:
    table = explanation.table
    styles = device_styles(table.num_devices)
    share = np.sqrt(drawn.seconds / max(float(drawn.seconds.max(initial=0.0)), 1e-30))
    by_node: list[list[int]] = [[] for _ in drawn.x]
    for g, node in enumerate(drawn.node_of.tolist()):
        by_node[node].append(g)
    titles, texts = [], []
    for node, members in enumerate(by_node):
        if not drawn.is_collapsed:
            group = groups[members[0]]
            titles.append(group.name)
            texts.append(
                f"{group.op_type or 'group'} of {counted(group.ops, 'op')} on {group.device}"
                f"{f', subgraph {group.subgraph}' if group.subgraph >= 0 else ''}\n"
                f"predicted: {costs_text(table.devices, table.op_seconds[members[0]])}\n{group.reason}"
            )
            continue
        where = "several subgraphs" if drawn.subgraph[node] < 0 else f"subgraph {drawn.subgraph[node]}"
        heaviest = sorted(members, key=lambda g: -groups[g].seconds[groups[g].device])[:_LIST]
        titles.append(f"{counted(len(members), 'group')} of {where} on {table.devices[drawn.device[node]]}")
        sums = table.op_seconds[members].sum(axis=0)
        texts.append(
            f"predicted: {drawn.seconds[node] * 1e3:.4f} ms here; {costs_text(table.devices, sums)}\n"
            "heaviest: " + "\n".join(f"{groups[g].name}: {groups[g].reason}" for g in heaviest)
        )
    return {
        "x": drawn.x,
        "y": drawn.y,
        "size": (_SMALLEST + (_LARGEST - _SMALLEST) * share).round(1),
        "colour": [styles[d].colour for d in drawn.device.tolist()],
        "shape": [styles[d].shape for d in drawn.device.tolist()],
        "title": titles,
        "text": texts,
    }


class _Arcs(NamedTuple):
    """Edges that reach over others of their row.

    Attributes:
        edge: Their positions among the edges.
        control: y of what an arc is drawn towards.
        peak: y of its middle, half as far.
    """

    edge: IntArray
    control: FloatArray
    peak: FloatArray


def _arcs(drawn: DrawnGraph) -> _Arcs:
    """Outwards from the middle of the row, the higher the further they reach."""
    start, end = drawn.edges[:, 0], drawn.edges[:, 1]
    span = np.abs(drawn.x[end] - drawn.x[start])
    edge = np.flatnonzero((drawn.row[start] == drawn.row[end]) & (span > 1)).astype(np.int32)
    start, end = start[edge], end[edge]
    middle = (drawn.y[start] + drawn.y[end]) / 2
    bend = np.where(middle >= drawn.middle[drawn.row[start]], 1.0, -1.0) * (0.8 + 0.5 * np.log2(span[edge]))
    return _Arcs(edge, middle + bend, middle + bend / 2)


def _draw_edges(chart: figure, drawn: DrawnGraph, arcs: _Arcs) -> None:
    """Straight to the next layer; further on in an arc, so that what lies between stays visible."""
    start, end = drawn.edges[:, 0], drawn.edges[:, 1]
    span = drawn.x[end] - drawn.x[start]
    same_row = drawn.row[start] == drawn.row[end]
    for cut, colour, width, alpha in ((False, MUTED, 1.0, 0.55), (True, CUT, 2.0, 0.9)):
        wanted = drawn.is_cut == cut
        near = wanted & same_row & (np.abs(span) <= 1)
        style = {"line_color": colour, "line_width": width, "line_alpha": alpha}
        if near.any():
            a, b = start[near], end[near]
            chart.segment(drawn.x[a], drawn.y[a], drawn.x[b], drawn.y[b], **style)
        if (over := wanted & ~same_row).any():
            a, b = start[over], end[over]
            faint = {**style, "line_width": 1.0, "line_alpha": alpha / 3}
            chart.segment(drawn.x[a], drawn.y[a], drawn.x[b], drawn.y[b], **faint)
        if (far := wanted[arcs.edge]).any():
            a, b = start[arcs.edge[far]], end[arcs.edge[far]]
            chart.quadratic(
                x0=drawn.x[a],
                y0=drawn.y[a],
                x1=drawn.x[b],
                y1=drawn.y[b],
                cx=(drawn.x[a] + drawn.x[b]) / 2,
                cy=arcs.control[far],
                **style,
            )
