"""The tables of the page as HTML; every cell is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ov_autoplace._base.text import bytes_text, milliseconds, relative_difference
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import LaneUse, Step, Timeline
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.report.latency import Latency, measured_apart, prediction_alone
from ov_autoplace.report.palette import MUTED, device_styles
from ov_autoplace.report.record import Analysis
from ov_autoplace.report.tables import table

__all__ = [
    "candidates_table",
    "changes_table",
    "cuts_table",
    "devices_table",
    "facts_list",
    "path_table",
    "slower_table",
    "subgraphs_table",
]

_ROWS = 15  # of a table; the script's search finds the rest
_REASONS = 3  # of a lane's idle times
_STEPS = {
    "subgraph": "submodels",
    "transfer": "between them",
    "start": "before the first one",
    "rest": "outside all submodels",
}


def facts_list(facts: Sequence[tuple[str, str]]) -> str:
    """Names over values."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f"<dl>{cells}</dl>"


def candidates_table(latencies: Sequence[Latency]) -> str:
    """Every candidate with its measurement and its prediction."""
    rows = [
        (
            f"{row.name} (chosen)" if row.chosen else row.name,
            _ms(row.median),
            "" if row.interval is None else " .. ".join(map(_ms, row.interval)),
            str(row.samples or ""),
            _ms(row.paused),
            _ms(row.predicted),
            "" if row.subgraphs is None else f"{row.subgraphs:,}",
            relative_difference(row.output_difference),
            row.note,
        )
        for row in latencies
    ]
    heads = (
        "candidate",
        ">measured ms",
        ">95 % interval",
        ">samples",
        ">measured after 3 ms idle",
        ">predicted ms",
        ">subgraphs",
        ">outputs differ by",
        "note",
    )
    chosen = [i for i, row in enumerate(latencies) if row.chosen]
    return table(heads, rows, strong=chosen) + "".join(
        _note(said(latencies)) for said in (prediction_alone, measured_apart)
    )


def devices_table(analysis: Analysis) -> str:
    """What each device or lane has to do, and what it waits for, as measured and as predicted."""
    explanation = analysis.explanation
    at_once = explanation.place == "lane"
    names = dict.fromkeys(lane.name for _, run in analysis.runs for lane in run.lanes)
    colours = dict(zip(explanation.table.devices, device_styles(len(names)), strict=False))
    rows, swatches = [], []
    for name in names:
        for what, run in analysis.runs:
            lane = next((lane for lane in run.lanes if lane.name == name), None)
            if lane is None:
                continue
            rows.append((name, what, *_use(analysis, lane, what, at_once)))
            swatches.append(colours[name].colour if name in colours else MUTED)
    heads = (
        "lane" if at_once else "device",
        "run",
        ">ops",
        ">submodels" if at_once else ">subgraphs",
        ">busy ms",
        ">idle ms",
        ">busy %",
        ">weights and results",
        "idle times, the longest first",
    )
    return table(heads, rows, swatches=swatches)


def _use(analysis: Analysis, lane: LaneUse, what: str, at_once: bool) -> tuple[str, ...]:
    """The cells of a device or lane in one run."""
    explanation = analysis.explanation
    ops, memory = "", ""
    if what == "predicted":
        d = explanation.table.devices.index(lane.name)
        here = np.flatnonzero(explanation.assignment == d).tolist()
        ops = f"{sum(explanation.num_ops(g) for g in here):,}"
        memory = bytes_text(float(explanation.schedule.memory_bytes[d]))
    return (
        ops,
        f"{lane.subgraphs:,}",
        _ms(lane.busy_seconds),
        _ms(lane.idle_seconds),
        f"{100 * lane.share:.1f}",
        memory,
        _reasons(lane) if at_once else "",
    )


def path_table(analysis: Analysis) -> str:
    """The critical paths, whose parts add up to the latency; empty where everything is critical."""
    if not analysis.predicted.has_slack:
        return ""
    sums = []
    cells: dict[str, dict[str, Step]] = {}
    for what, run in analysis.runs:
        kinds: dict[str, float] = {}
        for step in run.path:
            kinds[step.kind] = kinds.get(step.kind, 0.0) + step.seconds
            cells.setdefault(_part(step), {})[what] = step
        parts = " + ".join(f"{_ms(seconds)} ms {_STEPS[kind]}" for kind, seconds in kinds.items())
        sums.append(f"{what.capitalize()}: {_ms(run.seconds)} ms = {parts}.")
    longest = sorted(cells, key=lambda part: -max(step.seconds for step in cells[part].values()))[:_ROWS]
    shown = [
        part
        for part in _in_order([list(map(_part, run.path)) for _, run in analysis.runs])
        if part in longest
    ]
    rows = [
        (
            part,
            *(
                _ms(value)
                for what in ("measured", "predicted")
                for step in [cells[part].get(what)]
                for value in ((step.start, step.seconds) if step is not None else (None, None))
            ),
        )
        for part in shown
    ]
    heads = (
        "part",
        ">measured start ms",
        ">measured ms",
        ">predicted start ms",
        ">predicted ms",
    )
    return _note(" ".join(sums)) + table(heads, rows) + _rest(len(cells), "parts, the longest")


def _part(step: Step) -> str:
    return f"submodel {step.text}" if step.kind == "subgraph" else step.text


def _in_order(paths: Sequence[Sequence[str]]) -> list[str]:
    """The parts of the first path, and those of others before the next part that both have, or at the end."""
    found: list[str] = []
    for path in paths:
        waiting: list[str] = []
        for part in path:
            if part in found:
                place = found.index(part)
                found[place:place] = waiting
                waiting = []
            else:
                waiting.append(part)
        found += waiting
    return found


def slower_table(explanation: Explanation) -> str:
    """The groups that another device would run faster; empty where there is no other device."""
    if len(explanation.columns) == 1:
        return ""
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
    heads = (
        "group",
        "type",
        "device",
        *(f">{device}, predicted ms" for device in explanation.columns),
        "why, by prediction",
    )
    return table(heads, rows)


def cuts_table(explanation: Explanation) -> str:
    """The transfers that take the most time; empty where there are none."""
    cuts = explanation.cuts()
    if not cuts:
        return ""
    rows = [
        (
            cut.producer,
            f"{cut.source_device} ({cut.source_subgraph})",
            f"{cut.target_device} ({cut.target_subgraph})",
            bytes_text(cut.bytes),
            _ms(cut.seconds),
        )
        for cut in cuts[:_ROWS]
    ]
    return table(("made by", "from", "to", ">size", ">predicted ms"), rows) + _rest(len(cuts), "transfers")


def subgraphs_table(explanation: Explanation, timeline: Timeline) -> str:
    """The subgraphs that take the most time, in the order in which they run; the critical path is strong.

    Empty where one is all there is.
    """
    if len(timeline.stages) == 1:
        return ""
    names = explanation.table.names
    at_once = explanation.place == "lane"
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
        ">predicted start ms",
        ">predicted end ms",
        ">predicted ms",
        ">after",
        "critical",
        "from",
        "to",
    )
    strong = [i for i, stage in enumerate(shown) if timeline.has_slack and stage.is_critical]
    what = f"{explanation.part}s"
    return table(heads, rows, strong=strong) + _rest(len(timeline.stages), what)


def changes_table(changes: Sequence[WhatIf]) -> str:
    """Changed costs and their best answers; empty where nothing but the costs as they are was asked for."""
    if len(changes) < 2 and not any(change.moved_ops for change in changes):
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
            change.verdict,
        )
        for change in changes
    ]
    heads = (
        "if",
        ">predicted here ms",
        ">predicted best ms",
        ">predicted gain %",
        "best placement by prediction",
        ">ops moved",
        "optimal for these costs",
        "measured",
    )
    return table(heads, rows, strong=[i for i, change in enumerate(changes) if change.matters])


def _reasons(lane: LaneUse) -> str:
    """What a lane waits for, added up."""
    reasons = list(lane.reasons.items())
    shown = [f"{_ms(seconds)} ms {reason}" for reason, seconds in reasons[:_REASONS]]
    rest = sum(seconds for _, seconds in reasons[_REASONS:])
    return "; ".join([*shown, *([f"{_ms(rest)} ms else"] if rest else [])])


def _rest(count: int, what: str) -> str:
    return _note(f"{_ROWS} of {count:,} {what}.") if count > _ROWS else ""


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>' if text else ""


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else milliseconds(seconds)
