"""The page of one report: its sections, what is said above them, and how they are tagged.

Every section says whether it shows what was measured, what is predicted, or both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bokeh.plotting import figure

from ov_autoplace.explain.candidates import candidates_table
from ov_autoplace.explain.tables import (
    Table,
    changes_table,
    devices_table,
    parts_table,
    path_table,
    slower_table,
    transfers_table,
)
from ov_autoplace.report.application import application_page
from ov_autoplace.report.charts import curve_chart, latency_chart
from ov_autoplace.report.contents import Contents
from ov_autoplace.report.document import chart, document, facts_list, header, section
from ov_autoplace.report.graph import graph_chart, graph_facts
from ov_autoplace.report.nodes import DrawnGraph, drawn_graph
from ov_autoplace.report.palette import device_styles
from ov_autoplace.report.record import Analysis, analysis_of, placement_record
from ov_autoplace.report.schedule import draws_groups, schedule_chart
from ov_autoplace.report.tables import note, table

__all__ = ["page"]


_ROWS = 15
"""Of a table; the script's search finds the rest."""


def page(contents: Contents) -> str:
    """The whole document."""
    analysis = analysis_of(contents)
    if contents.application is not None:
        return application_page(contents.title, contents.answer, contents.facts, contents.application)
    charts: list[figure] = []
    data: dict[str, Any] = {}
    body = [header(contents.title, contents.answer), section("Summary", facts_list(contents.facts))]
    latencies = latency_chart(contents.candidates)
    drawn = "" if latencies is None else chart(charts, latencies)
    body.append(_tabled(candidates_table(contents.candidates, contents.rate_bound), drawn))
    if analysis is not None:
        graph = drawn_graph(analysis.explanation)
        data["placement"] = placement_record(analysis)
        data["graph"] = graph_facts(analysis.explanation, graph, contents.measured)
        body += _placement(contents, analysis, graph, charts)
    curve = curve_chart(contents.curves)
    if curve is not None:
        body.append(section("Learning curve", note(_CURVE), chart(charts, curve), tag="measured"))
    return document(contents.title, body, charts, data, contents.ops)


def _tabled(shown: Table, *above: str, tag: str = "") -> str:
    """A table as a section, with what stands above it; nothing where it is empty."""
    below = table(shown)
    return section(shown.title, *above, below, tag=tag) if below else ""


def _placement(
    contents: Contents, analysis: Analysis, graph: DrawnGraph, charts: list[figure]
) -> Iterator[str]:
    """What is shown of a placement that can run."""
    explanation, runs = analysis.explanation, analysis.runs
    costs = f"predicted from {explanation.table.source} costs"
    cuts = explanation.cuts()
    colours = dict(zip(explanation.table.devices, device_styles(explanation.table.num_devices), strict=True))
    yield section(
        "Schedule",
        note(*_said_of(analysis)),
        chart(charts, schedule_chart(analysis)),
        table(devices_table(explanation, runs), {name: style.colour for name, style in colours.items()}),
        tag=" and ".join(runs),
    )
    yield _tabled(path_table(runs, _ROWS), tag=" and ".join(runs))
    rows, collapsed = _LONG if graph.row.any() else "", _COLLAPSED if graph.is_collapsed else ""
    yield section(
        "Placement",
        note(_GRAPH, _CUTS if cuts else "", _OPS if contents.ops is not None else "", rows, collapsed),
        _SEARCH,
        f'<div class="explorer">{chart(charts, graph_chart(explanation, graph, analysis.groups))}'
        '<aside id="details" class="panel" aria-live="polite" aria-label="The chosen op" tabindex="-1" '
        "hidden></aside></div>",
        tag=costs,
    )
    yield _tabled(changes_table(contents.changes), note(_CHANGES), tag=costs)
    yield _tabled(slower_table(explanation, _ROWS), tag=costs)
    yield _tabled(transfers_table("Dearest transfers", cuts, _ROWS), tag=costs)
    if len(explanation.predicted.stages) > 1:
        yield _tabled(parts_table(explanation, explanation.predicted, _ROWS), tag=costs)


def _said_of(analysis: Analysis) -> Iterator[str]:
    """What to know of the schedule."""
    predicted = analysis.explanation.predicted
    yield _SCHEDULE if len(predicted.stages) > 1 else _ALONE
    if predicted.has_slack:
        yield _PATH
    if draws_groups(analysis.explanation):
        yield _PARTS.format(parts=f"{analysis.explanation.part}s")
    if "measured" in analysis.runs:
        yield _MEASURED


_SCHEDULE = (
    "Hatched is idle time, named by what is waited for where there is room, else by the pointer, and orange "
    "where that is a transfer. Dark orange lines are transfers. Drag or zoom to look closer."
)
_PATH = "Frames and thick lines are the critical path, which decides how long the request takes."
_ALONE = "One device runs the whole model. Drag or zoom to look closer."
_PARTS = "Upper bars are {parts}, lower bars the groups of ops inside."
_LONG = "The graph is long, and is read like lines of text."
_MEASURED = (
    "Above each predicted row is the measured one. HETERO's devices say how long their nodes took, not when: "
    "these are put end to end, and what they leave out are transfers and dispatch. A lane that is free may "
    "take over what was meant for another one."
)
_GRAPH = (
    "A node is a group of ops that stay together, larger when it takes more time. Click a node for details."
)
_CUTS = "Dark orange edges are transfers."
_OPS = (
    "Every op of the model is here with its attributes, shapes and types, weights also with their size and "
    "statistics; their values stay in the model's file."
)
_CHANGES = (
    "The same model solved again with other costs: what the solver would then choose, and what it predicts. "
    "Where such a placement was run, what was measured has the last word."
)
_COLLAPSED = (
    "This graph is large: a node is a stretch of a subgraph, and clicking it lists its heaviest groups."
)
_CURVE = (
    "The line is the best placement so far, faint dots are all that were measured: what was fast once has to "
    "win again before it is taken. 1 is the best single device."
)
_SEARCH = (
    '<div class="search"><input id="search" type="search" autocomplete="off" spellcheck="false" '
    'placeholder="Part of a name, or a pattern: */conv*" aria-label="Find ops by name">'
    '<output id="found"></output></div><ul id="results" hidden></ul>'
)
