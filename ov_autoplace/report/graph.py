"""The placement graph: a node per group, coloured by device, and what the page's search knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Range1d, TapTool
from bokeh.plotting import figure

from ov_autoplace.explain.explanation import Explanation, GroupCost
from ov_autoplace.report.charts import MUTED, TOOLTIP, plain
from ov_autoplace.report.nodes import DrawnGraph
from ov_autoplace.report.palette import CUT, device_styles
from ov_autoplace.report.schedule import costs_text

__all__ = ["graph_chart", "graph_facts"]

_SMALLEST, _LARGEST = 6.0, 22.0  # pixels
_LIST = 3  # groups that a node's tooltip names


def graph_chart(explanation: Explanation, drawn: DrawnGraph, groups: Sequence[GroupCost]) -> figure:
    """The graph from left to right in the order of computation."""
    low, high = float(drawn.y.min(initial=0.0)), float(drawn.y.max(initial=0.0))
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
    _draw_edges(chart, drawn)
    nodes = chart.scatter(
        "x",
        "y",
        source=ColumnDataSource(_columns(explanation, drawn, groups)),
        size="size",
        marker="shape",
        fill_color="colour",
        line_color=None,
        nonselection_fill_alpha=1.0,
        legend_field="device",
    )
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
    chart.legend.orientation = "horizontal"
    chart.legend.background_fill_color = None
    chart.legend.border_line_color = None
    chart.legend.label_text_color = MUTED
    chart.legend.label_text_font = "system-ui, sans-serif"
    chart.add_layout(chart.legend[0], "above")
    return chart


def graph_facts(explanation: Explanation, drawn: DrawnGraph, groups: Sequence[GroupCost]) -> dict[str, Any]:
    """What the page's script needs: groups with their ops and costs, and the node of each."""
    table = explanation.table
    milliseconds = np.where(np.isfinite(table.op_seconds), table.op_seconds * 1e3, -1.0)
    members = [
        [op for op in ops if op != name] for name, ops in zip(table.names, explanation.members(), strict=True)
    ]
    return {
        "devices": list(table.devices),
        "colours": [style.colour for style in device_styles(table.num_devices)],
        "names": list(table.names),
        "types": [group.op_type for group in groups],
        "device": explanation.assignment.tolist(),
        "subgraph": explanation.schedule.subgraph_of.tolist(),
        "ms": [[float(f"{value:.5g}") for value in row] for row in milliseconds.tolist()],
        "reasons": [group.reason for group in groups],
        "members": members,
        "node": drawn.node_of.tolist(),
        "collapsed": drawn.is_collapsed,
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
                f"{group.op_type or 'group'} of {group.ops} ops on {group.device}"
                f"{f', subgraph {group.subgraph}' if group.subgraph >= 0 else ''}\n"
                f"{costs_text(table.devices, table.op_seconds[members[0]])}\n{group.reason}"
            )
            continue
        where = "several subgraphs" if drawn.subgraph[node] < 0 else f"subgraph {drawn.subgraph[node]}"
        heaviest = sorted(members, key=lambda g: -groups[g].seconds[groups[g].device])[:_LIST]
        titles.append(f"{len(members)} groups of {where} on {table.devices[drawn.device[node]]}")
        sums = table.op_seconds[members].sum(axis=0)
        texts.append(
            f"{drawn.seconds[node] * 1e3:.4f} ms here; {costs_text(table.devices, sums)}\nheaviest: "
            + "\n".join(f"{groups[g].name}: {groups[g].reason}" for g in heaviest)
        )
    return {
        "x": drawn.x,
        "y": drawn.y,
        "size": (_SMALLEST + (_LARGEST - _SMALLEST) * share).round(1),
        "colour": [styles[d].colour for d in drawn.device.tolist()],
        "shape": [styles[d].shape for d in drawn.device.tolist()],
        "device": [table.devices[d] for d in drawn.device.tolist()],
        "title": titles,
        "text": texts,
    }


def _draw_edges(chart: figure, drawn: DrawnGraph) -> None:
    """Straight to the next layer; further on in an arc, so that what lies between stays visible."""
    start, end = drawn.edges[:, 0], drawn.edges[:, 1]
    span = drawn.x[end] - drawn.x[start]
    same_row = drawn.row[start] == drawn.row[end]
    for cut, colour, width, alpha in ((False, MUTED, 1.0, 0.55), (True, CUT, 2.0, 0.9)):
        wanted = drawn.is_cut == cut
        near, far = wanted & same_row & (np.abs(span) <= 1), wanted & same_row & (np.abs(span) > 1)
        style = {"line_color": colour, "line_width": width, "line_alpha": alpha}
        if near.any():
            a, b = start[near], end[near]
            chart.segment(drawn.x[a], drawn.y[a], drawn.x[b], drawn.y[b], **style)
        if (over := wanted & ~same_row).any():
            a, b = start[over], end[over]
            faint = {**style, "line_width": 1.0, "line_alpha": alpha / 3}
            chart.segment(drawn.x[a], drawn.y[a], drawn.x[b], drawn.y[b], **faint)
        if far.any():
            a, b = start[far], end[far]
            # Outwards from the middle of the row; the arc is half as high as its control point.
            up = (drawn.y[a] + drawn.y[b]) / 2 >= drawn.middle[drawn.row[a]]
            bend = np.where(up, 1.0, -1.0) * (0.8 + 0.5 * np.log2(np.abs(span[far])))
            chart.quadratic(
                x0=drawn.x[a],
                y0=drawn.y[a],
                x1=drawn.x[b],
                y1=drawn.y[b],
                cx=(drawn.x[a] + drawn.x[b]) / 2,
                cy=(drawn.y[a] + drawn.y[b]) / 2 + bend,
                **style,
            )
