"""The page of one report: its sections, what is said above them, and how they are tagged.

Every section says whether it shows what was measured, what is predicted, or both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bokeh.plotting import figure

from ov_autoplace.report.charts import curve_chart, latency_chart
from ov_autoplace.report.contents import Contents
from ov_autoplace.report.document import chart, document, header, note, section
from ov_autoplace.report.graph import graph_chart, graph_facts
from ov_autoplace.report.nodes import DrawnGraph, drawn_graph
from ov_autoplace.report.rates import rates_section
from ov_autoplace.report.record import Analysis, analysis_of, placement_record
from ov_autoplace.report.schedule import draws_groups, schedule_chart
from ov_autoplace.report.sections import (
    candidates_table,
    changes_table,
    cuts_table,
    devices_table,
    facts_list,
    path_table,
    slower_table,
    subgraphs_table,
)

__all__ = ["page"]


def page(contents: Contents) -> str:
    """The whole document."""
    analysis = analysis_of(contents)
    charts: list[figure] = []
    data: dict[str, Any] = {}
    body = [header(contents.title, contents.answer), section("Summary", facts_list(contents.facts))]
    body.append(rates_section(contents.rates, contents.rate_bound))
    if contents.latencies:
        latencies = latency_chart(contents.latencies)
        drawn = "" if latencies is None else chart(charts, latencies)
        body.append(section("Latency of the candidates", drawn, candidates_table(contents.latencies)))
    if analysis is not None:
        graph = drawn_graph(analysis.explanation)
        data["placement"] = placement_record(analysis)
        data["graph"] = graph_facts(analysis.explanation, graph, contents.measured)
        body += _placement(contents, analysis, graph, charts)
    curve = curve_chart(contents.curves)
    if curve is not None:
        body.append(section("Learning curve", note(_CURVE), chart(charts, curve), tag="measured"))
    return document(contents.title, body, charts, data, contents.ops)


def _placement(
    contents: Contents, analysis: Analysis, graph: DrawnGraph, charts: list[figure]
) -> Iterator[str]:
    """What is shown of a placement that can run."""
    explanation = analysis.explanation
    at_once = explanation.place == "lane"
    runs = " and ".join(what for what, _ in analysis.runs)
    costs = f"predicted from {explanation.table.source} costs"
    cuts = explanation.cuts()
    parts = _PARTS.format(parts=f"{explanation.part}s") if draws_groups(explanation) else ""
    measured_note = "" if analysis.measured is None else _MEASURED_LANES if at_once else _MEASURED
    yield section(
        "Schedule",
        note(*_said_of(contents, analysis), parts, measured_note),
        chart(charts, schedule_chart(analysis, contents.measured)),
        devices_table(analysis),
        tag=runs,
    )
    yield section("Critical path", path_table(analysis), tag=runs)
    rows, collapsed = _ROWS if graph.row.any() else "", _COLLAPSED if graph.is_collapsed else ""
    yield section(
        "Placement",
        note(_GRAPH, _CUTS if cuts else "", _OPS if contents.ops is not None else "", rows, collapsed),
        _SEARCH,
        f'<div class="explorer">{chart(charts, graph_chart(explanation, graph, analysis.groups))}'
        '<aside id="details" class="panel" aria-live="polite" aria-label="The chosen op" tabindex="-1" '
        "hidden></aside></div>",
        tag=costs,
    )
    changes = changes_table(contents.changes)
    yield section("What would change the prediction", note(_CHANGES) + changes if changes else "", tag=costs)
    yield section("Left on a slower device", slower_table(explanation), tag=costs)
    yield section("Dearest transfers", cuts_table(explanation), tag=costs)
    title = "Submodels" if at_once else "Subgraphs"
    yield section(title, subgraphs_table(explanation, analysis.predicted), tag=costs)


def _said_of(contents: Contents, analysis: Analysis) -> Iterator[str]:
    """What to know of the schedule."""
    if analysis.explanation.place == "lane":
        yield _LANES
    else:
        yield _SCHEDULE if len(analysis.predicted.stages) > 1 else _ALONE
    if contents.threads:
        yield _THREADS.format(threads=contents.threads)


_SCHEDULE = (
    "HETERO runs the subgraphs of one request one after another. Transfers are dark orange links; hatched is "
    "idle time, orange where a transfer is waited for. Drag or zoom to look closer."
)
_LANES = (
    "Lanes work at once. Hatched is idle time, named by what is waited for where there is room, else by the "
    "pointer. Frames and thick lines are the critical path, which decides how long the request takes; dark "
    "orange lines are transfers. Drag or zoom to look closer."
)
_ALONE = "One device runs the whole model. Drag or zoom to look closer."
_THREADS = "These times are those of the model on all threads; the answer runs on {threads}."
_PARTS = "Upper bars are {parts}, lower bars the groups of ops inside."
_ROWS = "The graph is long, and is read like lines of text."
_MEASURED = (
    "The measured rows put the devices' own times of their nodes end to end; what they leave out are "
    "transfers and dispatch."
)
_MEASURED_LANES = (
    "Above each predicted row is the measured one, of the run of median latency; a lane that is free may "
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
