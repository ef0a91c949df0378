"""The page itself: HTML, with every name escaped, around Bokeh's drawings.

The page holds two scripts, Bokeh's and ``page.js``, which the Content-Security-Policy names by their hashes;
everything else is data in ``<script type="application/json">``, which no browser runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from html import escape
from importlib.resources import files
from typing import Any

from bokeh.embed import json_item
from bokeh.plotting import figure
from bokeh.resources import Resources

from ov_autoplace._version import __version__
from ov_autoplace.explain.measured import measured_timeline
from ov_autoplace.explain.predicted import timeline_of
from ov_autoplace.report.charts import curve_chart, latency_chart
from ov_autoplace.report.contents import Contents
from ov_autoplace.report.graph import graph_chart, graph_facts
from ov_autoplace.report.nodes import drawn_graph
from ov_autoplace.report.schedule import draws_groups, schedule_chart
from ov_autoplace.report.sections import (
    candidates_table,
    changes_table,
    cuts_table,
    devices_table,
    facts_list,
    slower_table,
    subgraphs_table,
)

__all__ = ["page", "safe_json"]


def page(contents: Contents) -> str:
    """The whole document."""
    charts: list[figure] = []
    data: dict[str, Any] = {}
    body = [
        f"<header><p>ov-autoplace {escape(__version__)}</p><h1>{escape(contents.title)}</h1>"
        f'<p class="answer">{escape(contents.answer)}</p></header>',
        _section("Summary", facts_list(contents.facts)),
    ]
    latencies = latency_chart(contents.latencies)
    if contents.latencies:
        drawn = _chart(charts, latencies) if latencies is not None else ""
        body.append(_section("Latency of the candidates", drawn, candidates_table(contents.latencies)))
    explanation = contents.explanation
    if explanation is not None and math.isfinite(explanation.schedule.latency_seconds):
        timeline = timeline_of(explanation)
        measured = measured_timeline(explanation, contents.measured) if contents.measured else None
        at_once = explanation.objective == "overlap"
        groups = explanation.all_groups()
        graph = drawn_graph(explanation)
        data["graph"] = graph_facts(explanation, graph, groups)
        body += [
            _section(
                "Schedule",
                _note(
                    _LANES if at_once else _SCHEDULE,
                    _PARTS if draws_groups(explanation) else "",
                    (_MEASURED_LANES if at_once else _MEASURED) if measured is not None else "",
                ),
                _chart(charts, schedule_chart(explanation, timeline, contents.measured)),
                devices_table(explanation, timeline, measured),
            ),
            _section(
                "Placement",
                _note(
                    _GRAPH,
                    _ROWS if graph.row.any() else "",
                    _COLLAPSED if graph.is_collapsed else "",
                ),
                _SEARCH,
                _chart(charts, graph_chart(explanation, graph, groups)),
                '<div id="details" class="panel" aria-live="polite" hidden></div>',
            ),
            _section("What would change the answer", changes_table(contents.changes)),
            _section("Left on a slower device", slower_table(explanation)),
            _section("Dearest transfers", cuts_table(explanation)),
            _section("Submodels" if at_once else "Subgraphs", subgraphs_table(explanation, timeline)),
        ]
    curve = curve_chart(contents.curves)
    if curve is not None:
        body.append(_section("Learning curve", _note(_CURVE), _chart(charts, curve)))
    data["charts"] = [{"item": json_item(chart), "target": chart.name} for chart in charts]
    return _document(contents.title, body, data)


def safe_json(value: Any) -> str:
    """JSON that cannot end the element that it is in, nor open a comment or another element there."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


_SCHEDULE = (
    "HETERO runs the subgraphs of one request one after another. Transfers are orange links, and bars for "
    "the time that they take. Drag or zoom to look closer."
)
_LANES = (
    "Lanes work at once. Hatched is idle time; the pointer tells what is waited for. Frames and thick lines "
    "are the critical path, which decides how long the request takes; orange lines are transfers. Drag or "
    "zoom to look closer."
)
_PARTS = "Upper bars are subgraphs, lower bars the groups of ops inside."
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
    "A node is a group of ops that stay together, larger when it takes more time; orange edges are "
    "transfers. Click a node for details."
)
_COLLAPSED = (
    "This graph is large: a node is a stretch of a subgraph, and clicking it lists its heaviest groups."
)
_CURVE = "The line is the best placement measured so far, dots are all of them; 1 is the best single device."
_SEARCH = (
    '<div class="search"><input id="search" type="search" autocomplete="off" spellcheck="false" '
    'placeholder="Find ops: part of a name, or a pattern like */conv*" aria-label="Find ops by name">'
    '<output id="found"></output></div><ul id="results" hidden></ul>'
)


def _note(*sentences: str) -> str:
    return f'<p class="note">{escape(" ".join(filter(None, sentences)))}</p>'


def _section(title: str, *parts: str) -> str:
    inside = "".join(parts)
    return f"<section><h2>{escape(title)}</h2>{inside}</section>" if inside else ""


def _chart(charts: list[figure], chart: figure) -> str:
    charts.append(chart)
    return f'<div class="chart" id="{escape(chart.name)}"></div>'


def _document(title: str, body: Sequence[str], data: dict[str, Any]) -> str:
    assets = files("ov_autoplace.report")
    # The script's own text must not end its element either.
    scripts = [
        *Resources(mode="inline", components=["bokeh"]).js_raw[:1],
        assets.joinpath("page.js").read_text("utf-8"),
    ]
    scripts = [script.replace("</script", "<\\/script").replace("\r\n", "\n") for script in scripts]
    policy = (
        f"default-src 'none'; script-src {' '.join(_hashes(scripts))}; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )
    made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{assets.joinpath('page.css').read_text('utf-8')}</style>\n</head>\n<body>\n<main>",
            *body,
            f"<footer>Made on {made} by ov-autoplace {escape(__version__)}.</footer>\n</main>",
            f'<script type="application/json" id="data">{safe_json(data)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def _hashes(scripts: Iterable[str]) -> list[str]:
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
