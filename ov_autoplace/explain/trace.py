"""Runs as trace event files, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is the JSON object form of Google's "Trace Event Format": a process per run, a thread per device or
lane and one for the critical path, complete events (``X``) for subgraphs with their groups or nodes nested
inside and for idle times, a flow (``s`` and ``f``) for each transfer, and metadata (``M``) for the names.
Times are in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ov_autoplace._base.files import write_text_atomically
from ov_autoplace._version import __version__
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.measured import measured_timeline
from ov_autoplace.explain.pieces import Inside, groups_inside, nodes_inside
from ov_autoplace.explain.timeline import Idle, LaneUse, Stage, Timeline, Transfer
from ov_autoplace.measure.measured_run import MeasuredRun

__all__ = ["trace_events", "write_trace"]

_PREDICTED, _MEASURED = 1, 2
_PATH = "critical path"

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
    predicted, part = explanation.predicted, explanation.part
    title = f"predicted, {_ms(predicted.seconds)} ms"
    events = list(_run(_PREDICTED, title, part, predicted, groups_inside(explanation)))
    if measured is not None:
        title = f"measured, {_ms(measured.seconds)} ms, median of {measured.runs}"
        timeline = measured_timeline(explanation, measured)
        events += _run(_MEASURED, title, part, timeline, nodes_inside(measured))
    return events


@dataclass(frozen=True, slots=True)
class _Process:
    """One run: its number, what it is cut into, and the thread of each of its devices or lanes."""

    number: int
    part: str
    thread: dict[str, int]

    def slice(
        self, thread: str, name: str, category: str, start: float, seconds: float, about: _Event
    ) -> _Event:
        """A complete event."""
        return {
            "ph": "X",
            "name": name,
            "cat": category,
            "pid": self.number,
            "tid": self.thread[thread],
            "ts": _us(start),
            "dur": _us(seconds),
            "args": about,
        }

    def lane(self, timeline: Timeline, lane: LaneUse, inside: Inside) -> Iterator[_Event]:
        """What a device or lane runs, and when it is idle."""
        own = [stage for stage in timeline.stages if stage.device == lane.name]
        parts: list[Stage | Idle] = [*own, *lane.idle]
        for part in sorted(parts, key=lambda part: (part.start, part.seconds)):
            if isinstance(part, Idle):
                name = f"idle: {part.reason}"
                yield self.slice(lane.name, name, "idle", part.start, part.seconds, {"kind": part.kind})
                continue
            name, about = f"{self.part} {part.subgraph}", {"ops": part.ops, "critical": part.is_critical}
            yield self.slice(lane.name, name, "subgraph", part.start, part.seconds, about)
            for piece in inside(part):
                yield self.slice(lane.name, piece.name, piece.kind, piece.start, piece.seconds, piece.about)

    def flow(self, number: int, transfer: Transfer, sender: Stage, receiver: Stage) -> Iterator[_Event]:
        """An arrow between the slices that enclose its ends, so it leaves just before the sender's."""
        cut = transfer.cut
        both = {"name": f"transfer of {cut.producer}", "cat": "transfer", "id": number, "pid": self.number}
        leaves = min(sender.end - 1e-3 * sender.seconds, receiver.start)
        about = {"bytes": cut.bytes, "predicted ms": cut.seconds * 1e3}
        thread = self.thread
        yield {**both, "ph": "s", "tid": thread[sender.device], "ts": _us(leaves), "args": about}
        yield {**both, "ph": "f", "bp": "e", "tid": thread[receiver.device], "ts": _us(receiver.start)}


def _run(number: int, title: str, part: str, timeline: Timeline, inside: Inside) -> Iterator[_Event]:
    names = (*(lane.name for lane in timeline.lanes), _PATH)
    process = _Process(number, part, {name: i for i, name in enumerate(names, 1)})
    yield from _names(number, title, names)
    for lane in timeline.lanes:
        yield from process.lane(timeline, lane, inside)
    by_number = {stage.subgraph: stage for stage in timeline.stages}
    for i, transfer in enumerate(timeline.transfers):
        ends = transfer.cut.source_subgraph, transfer.cut.target_subgraph
        yield from process.flow(i, transfer, *(by_number[end] for end in ends))
    for step in timeline.path:
        yield process.slice(_PATH, step.text, "critical", step.start, step.seconds, {"kind": step.kind})


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
