"""Runs as trace event files, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is the JSON object form of Google's "Trace Event Format": a process per run, a thread per device or
lane, complete events (``X``) for subgraphs with their groups or nodes nested inside, a flow (``s`` and ``f``)
for each transfer, and metadata (``M``) for the names. Lanes that work at once have slices for idle times too,
and a thread of its own shows the critical path. Times are in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ov_autoplace._base.files import write_text_atomically
from ov_autoplace._version import __version__
from ov_autoplace.explain.explanation import Cut, Explanation
from ov_autoplace.explain.measured import measured_timeline
from ov_autoplace.explain.predicted import timeline_of
from ov_autoplace.explain.timeline import Idle, LaneUse, Stage, Timeline
from ov_autoplace.measure.measured_run import MeasuredNode, MeasuredRun

__all__ = ["trace_events", "write_trace"]

_PREDICTED, _MEASURED = 1, 2

_Event = dict[str, Any]


def write_trace(
    path: Path, title: str, explanation: Explanation, measured: MeasuredRun | None = None
) -> None:
    """Write the predicted run, and the measured one when there is one.

    Args:
        path: The file, ``.json``.
        title: What was run.
        explanation: The placement.
        measured: The same placement on its devices.

    Raises:
        OutputError: It cannot be written.
    """
    document = {
        "traceEvents": trace_events(explanation, measured),
        "displayTimeUnit": "ms",
        "otherData": {"model": title, "ov_autoplace": __version__, "cost_source": explanation.table.source},
    }
    write_text_atomically(path, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def trace_events(explanation: Explanation, measured: MeasuredRun | None = None) -> list[_Event]:
    """The events of both runs."""
    events = list(_predicted(explanation, timeline_of(explanation)))
    if measured is not None:
        events.extend(_measured(explanation, measured))
    return events


@dataclass(frozen=True, slots=True)
class _Process:
    """One run: its number, and the thread of each of its devices or lanes."""

    number: int
    thread: dict[str, int]

    def slice(
        self, thread: int, name: str, category: str, start: float, seconds: float, arguments: _Event
    ) -> _Event:
        """A complete event."""
        return {
            "ph": "X",
            "name": name,
            "cat": category,
            "pid": self.number,
            "tid": thread,
            "ts": _us(start),
            "dur": _us(seconds),
            "args": arguments,
        }

    def flow(self, number: int, name: str, leaves: float, arrives: float, cut: Cut) -> Iterator[_Event]:
        """An arrow between two slices that enclose its ends."""
        both = {"name": name, "cat": "transfer", "id": number, "pid": self.number}
        yield {**both, "ph": "s", "tid": self.thread[cut.source_device], "ts": _us(leaves)}
        yield {**both, "ph": "f", "bp": "e", "tid": self.thread[cut.target_device], "ts": _us(arrives)}


def _predicted(explanation: Explanation, timeline: Timeline) -> Iterator[_Event]:
    table = explanation.table
    process = _Process(_PREDICTED, {device: d + 1 for d, device in enumerate(table.devices)})
    at_once = explanation.at_once
    spare = ["critical path"] if at_once else []
    if timeline.unlocated_seconds:
        spare.append("inside groups that HETERO cuts")
    yield from _names(_PREDICTED, f"predicted, {_ms(timeline.seconds)} ms", (*table.devices, *spare))

    def groups_of(stage: Stage) -> Iterator[_Event]:
        for g in stage.groups:
            costs: dict[str, float | str] = {
                f"ms on {device}": seconds * 1e3 if seconds < float("inf") else "cannot run"
                for device, seconds in zip(table.devices, table.op_seconds[g].tolist(), strict=True)
            }
            if table.op_types is not None:
                costs["type"] = table.op_types[g]
            start, seconds = float(timeline.group_start[g]), float(timeline.group_seconds[g])
            yield process.slice(process.thread[stage.device], table.names[g], "group", start, seconds, costs)

    if at_once:
        yield from _lanes(process, explanation, timeline, groups_of)
    else:
        yield from _turns(process, timeline, groups_of)
    if timeline.unlocated_seconds:
        start = timeline.seconds - timeline.unlocated_seconds
        thread = len(table.devices) + len(spare)
        yield process.slice(thread, "pieces without a group", "rest", start, timeline.unlocated_seconds, {})


def _measured(explanation: Explanation, run: MeasuredRun) -> Iterator[_Event]:
    timeline = measured_timeline(explanation, run)
    names = tuple(lane.name for lane in timeline.lanes)
    process = _Process(_MEASURED, {name: i + 1 for i, name in enumerate(names)})
    at_once = explanation.at_once
    spare = ("critical path",) if at_once else ("transfers and dispatch, as a sum",)
    yield from _names(_MEASURED, f"measured, {_ms(run.seconds)} ms, median of {run.runs}", (*names, *spare))
    nodes = {stage.subgraph: stage.nodes for stage in run.stages}

    def nodes_of(stage: Stage) -> Iterator[_Event]:
        yield from _nodes(process, stage, nodes[stage.subgraph])

    if at_once:
        yield from _lanes(process, explanation, timeline, nodes_of)
        return
    for stage in timeline.stages:
        yield _stage(process, stage, "submodel", {"nodes": len(nodes[stage.subgraph])})
        yield from nodes_of(stage)
    if timeline.unlocated_seconds:
        # The devices say how long their nodes took, not when; what is missing cannot be put anywhere.
        start = timeline.seconds - timeline.unlocated_seconds
        yield process.slice(len(names) + 1, "not in any node", "rest", start, timeline.unlocated_seconds, {})


def _turns(
    process: _Process, timeline: Timeline, parts_of: Callable[[Stage], Iterator[_Event]]
) -> Iterator[_Event]:
    """HETERO's subgraphs, and between them the transfers in the thread of the receiver."""
    leaves = {stage.subgraph: stage.end - 1e-3 * stage.seconds for stage in timeline.stages}
    for stage in timeline.stages:
        yield _stage(process, stage, "subgraph", {"ops": stage.ops, "groups": len(stage.groups)})
        yield from parts_of(stage)
    for i, transfer in enumerate(timeline.transfers):
        cut = transfer.cut
        about = {"bytes": cut.bytes, "from": cut.source_device, "to": cut.target_device}
        name = f"transfer of {cut.producer}"
        thread = process.thread[cut.target_device]
        yield process.slice(thread, name, "transfer", transfer.start, cut.seconds, about)
        # A flow is bound to the slice that encloses its time, so it leaves just before the producer's end.
        left = min(leaves.get(cut.source_subgraph, transfer.start), transfer.start)
        yield from process.flow(i, name, left, transfer.start, cut)


def _lanes(
    process: _Process,
    explanation: Explanation,
    timeline: Timeline,
    parts_of: Callable[[Stage], Iterator[_Event]],
) -> Iterator[_Event]:
    """Lanes that work at once: what they run, when they are idle, what they hand over, and what decides."""
    for lane in timeline.lanes:
        yield from _lane(process, timeline, lane, parts_of)
    by_number = {stage.subgraph: stage for stage in timeline.stages}
    for i, cut in enumerate(explanation.cuts()):
        sender, receiver = by_number.get(cut.source_subgraph), by_number.get(cut.target_subgraph)
        # A lane that was late may have left a submodel to another one, and then nothing crosses.
        if sender is None or receiver is None or sender.device == receiver.device:
            continue
        moved = Cut(
            cut.producer,
            sender.subgraph,
            sender.device,
            receiver.subgraph,
            receiver.device,
            cut.bytes,
            cut.seconds,
        )
        left = min(sender.end - 1e-3 * sender.seconds, receiver.start)
        yield from process.flow(i, f"transfer of {cut.producer}", left, receiver.start, moved)
    thread = len(timeline.lanes) + 1
    for step in timeline.path:
        yield process.slice(thread, step.text, "critical", step.start, step.seconds, {"kind": step.kind})


def _lane(
    process: _Process, timeline: Timeline, lane: LaneUse, parts_of: Callable[[Stage], Iterator[_Event]]
) -> Iterator[_Event]:
    own = [stage for stage in timeline.stages if stage.device == lane.name]
    parts: list[Stage | Idle] = [*own, *lane.idle]
    for part in sorted(parts, key=lambda part: (part.start, part.seconds)):
        if isinstance(part, Stage):
            yield _stage(process, part, "submodel", {"ops": part.ops, "critical": part.is_critical})
            yield from parts_of(part)
        else:
            thread = process.thread[lane.name]
            about = {"kind": part.kind}
            yield process.slice(thread, f"idle: {part.reason}", "idle", part.start, part.seconds, about)


def _stage(process: _Process, stage: Stage, what: str, arguments: _Event) -> _Event:
    name = f"{what} {stage.subgraph}"
    thread = process.thread[stage.device]
    return process.slice(thread, name, "subgraph", stage.start, stage.seconds, arguments)


def _nodes(process: _Process, stage: Stage, nodes: Sequence[MeasuredNode]) -> Iterator[_Event]:
    """A submodel's nodes end to end; where they took longer than it did, which rounding does, all shrink."""
    total = sum(node.seconds for node in nodes)
    scale = min(1.0, stage.seconds / total) if total > 0 else 1.0
    now = stage.start
    for node in nodes:
        about = {"type": node.kind, "kernel": node.kernel, "ops": list(node.ops)}
        seconds = scale * node.seconds
        yield process.slice(process.thread[stage.device], node.name, "node", now, seconds, about)
        now += seconds


def _names(process: int, title: str, threads: Sequence[str]) -> Iterator[_Event]:
    def name(kind: str, thread: int, arguments: _Event) -> _Event:
        return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": arguments}

    yield name("process_name", 0, {"name": title})
    yield name("process_sort_index", 0, {"sort_index": process})
    for number, thread in enumerate(threads, 1):
        yield name("thread_name", number, {"name": thread})
        yield name("thread_sort_index", number, {"sort_index": number})


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 6)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"
