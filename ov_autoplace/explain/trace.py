"""Runs as trace event files, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is the JSON object form of Google's "Trace Event Format": a process per run, a thread per device,
complete events (``X``) for subgraphs with their groups or nodes nested inside, a flow (``s`` and ``f``)
for each transfer, and metadata (``M``) for the names. Times are in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ov_autoplace._base.files import write_text_atomically
from ov_autoplace._version import __version__
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import Timeline, timeline_of
from ov_autoplace.measure.measured_run import MeasuredRun

__all__ = ["trace_events", "write_trace"]

_PREDICTED, _MEASURED = 1, 2


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


def trace_events(explanation: Explanation, measured: MeasuredRun | None = None) -> list[dict[str, Any]]:
    """The events of both runs, those of a thread in order of time."""
    devices = explanation.table.devices
    events = list(_predicted(explanation, timeline_of(explanation)))
    if measured is not None:
        others = [stage.device for stage in measured.stages]
        events.extend(_measured(measured, tuple(dict.fromkeys([*devices, *others]))))
    return events


def _predicted(explanation: Explanation, timeline: Timeline) -> Iterator[dict[str, Any]]:
    table = explanation.table
    thread = {device: d + 1 for d, device in enumerate(table.devices)}
    unlocated = len(thread) + 1
    spare = ("inside groups that HETERO cuts",) if timeline.unlocated_seconds else ()
    yield from _names(_PREDICTED, f"predicted, {_ms(timeline.seconds)} ms", (*table.devices, *spare))
    leaves = {stage.subgraph: stage.end - 1e-3 * stage.seconds for stage in timeline.stages}
    for stage in timeline.stages:
        arguments = {"ops": stage.ops, "groups": len(stage.groups)}
        name = f"subgraph {stage.subgraph}"
        yield _slice(
            _PREDICTED, thread[stage.device], name, "subgraph", stage.start, stage.seconds, arguments
        )
        for g in stage.groups:
            costs: dict[str, float | str] = {
                f"ms on {device}": seconds * 1e3 if seconds < float("inf") else "cannot run"
                for device, seconds in zip(table.devices, table.op_seconds[g].tolist(), strict=True)
            }
            if table.op_types is not None:
                costs["type"] = table.op_types[g]
            start, seconds = float(timeline.group_start[g]), float(timeline.group_seconds[g])
            yield _slice(_PREDICTED, thread[stage.device], table.names[g], "group", start, seconds, costs)
    for i, transfer in enumerate(timeline.transfers):
        cut = transfer.cut
        about = {"bytes": cut.bytes, "from": cut.source_device, "to": cut.target_device}
        receiver = thread[cut.target_device]
        name = f"transfer of {cut.producer}"
        yield _slice(_PREDICTED, receiver, name, "transfer", transfer.start, cut.seconds, about)
        flow = {"name": name, "cat": "transfer", "id": i, "pid": _PREDICTED}
        # A flow is bound to the slice that encloses its time, so it leaves just before the producer's end.
        left = min(leaves.get(cut.source_subgraph, transfer.start), transfer.start)
        yield {**flow, "ph": "s", "tid": thread[cut.source_device], "ts": _us(left)}
        yield {**flow, "ph": "f", "bp": "e", "tid": receiver, "ts": _us(transfer.start)}
    if timeline.unlocated_seconds:
        start = timeline.seconds - timeline.unlocated_seconds
        yield _slice(
            _PREDICTED, unlocated, "pieces without a group", "rest", start, timeline.unlocated_seconds, {}
        )


def _measured(run: MeasuredRun, devices: Sequence[str]) -> Iterator[dict[str, Any]]:
    thread = {device: d + 1 for d, device in enumerate(devices)}
    title = f"measured, {_ms(run.seconds)} ms, median of {run.runs}"
    yield from _names(_MEASURED, title, (*devices, "transfers and dispatch, as a sum"))
    now = 0.0
    for stage in run.stages:
        name, arguments = f"submodel {stage.subgraph}", {"nodes": len(stage.nodes)}
        yield _slice(_MEASURED, thread[stage.device], name, "subgraph", now, stage.seconds, arguments)
        for node in stage.nodes:
            about = {"type": node.kind, "kernel": node.kernel, "ops": list(node.ops)}
            yield _slice(_MEASURED, thread[stage.device], node.name, "node", now, node.seconds, about)
            now += node.seconds
    if run.seconds > now:
        # The devices say how long their nodes took, not when; what is missing cannot be put anywhere.
        yield _slice(_MEASURED, len(devices) + 1, "not in any node", "rest", now, run.seconds - now, {})


def _names(process: int, title: str, threads: Sequence[str]) -> Iterator[dict[str, Any]]:
    def name(kind: str, thread: int, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": arguments}

    yield name("process_name", 0, {"name": title})
    yield name("process_sort_index", 0, {"sort_index": process})
    for number, thread in enumerate(threads, 1):
        yield name("thread_name", number, {"name": thread})
        yield name("thread_sort_index", number, {"sort_index": number})


def _slice(
    process: int,
    thread: int,
    name: str,
    category: str,
    start: float,
    seconds: float,
    arguments: dict[str, Any],
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": process,
        "tid": thread,
        "ts": _us(start),
        "dur": _us(seconds),
        "args": arguments,
    }


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 6)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"
