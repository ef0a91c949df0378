"""The tables of the page as HTML; every cell is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import LaneUse, Timeline
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.report.contents import Latency
from ov_autoplace.report.palette import device_styles

__all__ = [
    "candidates_table",
    "changes_table",
    "cuts_table",
    "devices_table",
    "facts_list",
    "slower_table",
    "subgraphs_table",
]

_ROWS = 15  # of a table; the script's search finds the rest
_REASONS = 3  # of a lane's idle times


def facts_list(facts: Sequence[tuple[str, str]]) -> str:
    """Names over values."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f"<dl>{cells}</dl>"


def candidates_table(latencies: Sequence[Latency]) -> str:
    """Every candidate with its prediction and its measurement."""
    rows = [
        (
            f"{row.name} (chosen)" if row.chosen else row.name,
            _ms(row.predicted),
            _ms(row.median),
            "" if row.low is None else f"{_ms(row.low)} .. {_ms(row.high)}",
            str(row.samples or ""),
            _ms(row.paused),
            "" if row.subgraphs is None else str(row.subgraphs),
            row.note,
        )
        for row in latencies
    ]
    heads = (
        "candidate",
        ">predicted ms",
        ">median ms",
        ">95 % interval",
        ">samples",
        ">after 3 ms idle",
        ">subgraphs",
        "note",
    )
    return _table(heads, rows, strong=[i for i, row in enumerate(latencies) if row.chosen])


def devices_table(explanation: Explanation, timeline: Timeline, measured: Timeline | None = None) -> str:
    """What each device or lane has to do, and what it waits for."""
    table, schedule = explanation.table, explanation.schedule
    styles = device_styles(table.num_devices)
    ran = {lane.name: lane for lane in measured.lanes} if measured is not None else {}
    at_once = explanation.objective == "overlap"
    rows = []
    for d, lane in enumerate(timeline.lanes):
        here = explanation.assignment == d
        ops = sum(explanation.num_ops(g) for g in np.flatnonzero(here).tolist())
        busy = schedule.device_seconds[d]
        share = 100 * busy / schedule.latency_seconds if schedule.latency_seconds else 0.0
        size = schedule.memory_bytes[d] / 2**20
        used = ran.get(lane.name)
        rows.append(
            (
                lane.name,
                f"{ops:,}",
                f"{lane.subgraphs:,}",
                _ms(busy),
                _ms(max(schedule.latency_seconds - busy, 0.0)),
                f"{share:.1f}",
                _ms(used.busy_seconds) if used is not None else "",
                _ms(used.idle_seconds) if used is not None else "",
                f"{size:,.1f}",
                _reasons(lane) if at_once else "",
            )
        )
    heads = (
        "lane" if at_once else "device",
        ">ops",
        ">submodels" if at_once else ">subgraphs",
        ">busy ms",
        ">idle ms",
        ">share of the latency %",
        ">measured busy ms",
        ">measured idle ms",
        ">weights and results MiB",
        "idle times, the longest first",
    )
    return _table(heads, rows, swatches=[style.colour for style in styles])


def slower_table(explanation: Explanation) -> str:
    """The groups that another device would run faster."""
    groups = explanation.left_on_slower(_ROWS)
    if not groups:
        return '<p class="note">Every group runs on its fastest device.</p>'
    rows = [
        (
            group.name,
            group.op_type,
            group.device,
            *(
                _ms(group.seconds[column]) if np.isfinite(group.seconds[column]) else "cannot"
                for column in explanation.columns.values()
            ),
            group.reason,
        )
        for group in groups
    ]
    heads = ("group", "type", "device", *(f">{device} ms" for device in explanation.columns), "why")
    return _table(heads, rows)


def cuts_table(explanation: Explanation) -> str:
    """The transfers that take the most time."""
    cuts = explanation.cuts()
    if not cuts:
        return '<p class="note">Nothing is transferred between subgraphs.</p>'
    rows = [
        (
            cut.producer,
            f"{cut.source_device} ({cut.source_subgraph})",
            f"{cut.target_device} ({cut.target_subgraph})",
            f"{cut.bytes:,.0f}",
            _ms(cut.seconds),
        )
        for cut in cuts[:_ROWS]
    ]
    return _table(("made by", "from", "to", ">bytes", ">ms"), rows) + _rest(len(cuts), "transfers")


def subgraphs_table(explanation: Explanation, timeline: Timeline) -> str:
    """The subgraphs that take the most time, in the order in which they run; the critical path is strong."""
    names = explanation.table.names
    at_once = explanation.objective == "overlap"
    longest = {stage.subgraph for stage in sorted(timeline.stages, key=lambda s: -s.seconds)[:_ROWS]}
    shown = [stage for stage in timeline.stages if stage.subgraph in longest]
    rows = [
        (
            str(stage.subgraph),
            stage.device,
            f"{stage.ops:,}",
            _ms(stage.start),
            _ms(stage.end) if at_once else "",
            _ms(stage.seconds),
            str(stage.after) if at_once and stage.after >= 0 else "",
            "yes" if timeline.has_slack and stage.is_critical else "",
            names[stage.groups[0]],
            names[stage.groups[-1]],
        )
        for stage in shown
    ]
    heads = (
        ">submodel" if at_once else ">subgraph",
        "lane" if at_once else "device",
        ">ops",
        ">starts at ms",
        ">ends at ms",
        ">ms",
        ">after",
        "critical",
        "from",
        "to",
    )
    strong = [i for i, stage in enumerate(shown) if timeline.has_slack and stage.is_critical]
    what = "submodels" if at_once else "subgraphs"
    return _table(heads, rows, strong=strong) + _rest(len(timeline.stages), what)


def changes_table(changes: Sequence[WhatIf]) -> str:
    """Changed costs and their best answers; empty without any."""
    if not changes:
        return ""
    rows = [
        (
            change.change,
            _ms(change.placed_seconds),
            _ms(change.best_seconds),
            f"{100 * change.gain:.1f}",
            change.answer
            if change.matters or not change.moved_ops
            else f"{change.answer}, but by too little",
            f"{change.moved_ops:,}" if change.moved_ops else "",
            "yes" if change.proven else "no",
        )
        for change in changes
    ]
    heads = (
        "if",
        ">this placement ms",
        ">best placement ms",
        ">gain %",
        "best placement",
        ">ops moved",
        "proven best",
    )
    return _table(heads, rows, strong=[i for i, change in enumerate(changes) if change.matters])


def _table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    strong: Sequence[int] = (),
    swatches: Sequence[str] = (),
) -> str:
    """A table; a heading with ``>`` aligns its column right, empty columns are left out."""
    kept = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    side = [' class="n"' if head.startswith(">") else "" for head in heads]
    head = "".join(f"<th{side[i]}>{escape(heads[i].lstrip('>'))}</th>" for i in kept)
    lines = []
    for r, row in enumerate(rows):
        cells = [f"<td{side[i]}>{escape(row[i])}</td>" for i in kept]
        if swatches:
            cells[0] = (
                f'<td class="swatched"><svg class="swatch" viewBox="0 0 1 1" aria-hidden="true">'
                f'<rect width="1" height="1" fill="{escape(swatches[r])}"/></svg>{escape(row[0])}</td>'
            )
        opening = '<tr class="strong">' if r in strong else "<tr>"
        lines.append(f"{opening}{''.join(cells)}</tr>")
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="wide"><table>{body}</table></div>'


def _reasons(lane: LaneUse) -> str:
    """What a lane waits for, added up."""
    reasons = list(lane.reasons.items())
    shown = [f"{_ms(seconds)} ms {reason}" for reason, seconds in reasons[:_REASONS]]
    rest = sum(seconds for _, seconds in reasons[_REASONS:])
    return "; ".join([*shown, *([f"{_ms(rest)} ms else"] if rest else [])])


def _rest(count: int, what: str) -> str:
    return f'<p class="note">{_ROWS} of {count:,} {what}.</p>' if count > _ROWS else ""


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.3f}"
