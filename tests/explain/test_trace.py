"""Trace files, checked against the fields that the trace event format documents."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

from command_line import two_layers
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.trace import trace_events, write_trace
from ov_autoplace.measure.measured_run import MeasuredNode, MeasuredRun, MeasuredStage, measure_run
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.plan import SplitPlan
from report_tables import HOSTILE, diamond, layered_table, pieces

# Required fields by phase, from the format's document: complete, flow start and end, metadata.
FIELDS = {
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id", "args"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
    "M": {"name", "ph", "ts", "pid", "tid", "args"},
}
METADATA = {"process_name": "name", "process_sort_index": "sort_index"} | {
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def check_format(events: list[dict[str, Any]]) -> None:
    """Every event has the fields of its phase, slices of a thread nest, and flows are tied to slices."""
    slices = defaultdict(list)
    flows = defaultdict(list)
    for event in events:
        assert set(event) == FIELDS[event["ph"]], event
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        if event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}
        elif event["ph"] == "X":
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append(event)
        else:
            flows[event["pid"], event["cat"], event["id"]].append(event)
    for row in slices.values():
        open_until: list[float] = []
        for event in row:  # parents come before their children, as the format asks of equal times
            while open_until and event["ts"] >= open_until[-1] - 1e-5:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 1e-5, event
            open_until.append(end)
    for start, end in flows.values():
        assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
        assert start["ts"] <= end["ts"]
        for event in (start, end):
            assert any(
                s["ts"] <= event["ts"] <= s["ts"] + s["dur"] for s in slices[event["pid"], event["tid"]]
            ), event
    for process, thread in slices:
        named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
        assert (process, thread) in named


def test_a_predicted_run_has_a_thread_per_device_and_a_flow_per_transfer() -> None:
    explanation = HeteroExplanation(diamond(), np.array([0, 1, 0, 0], dtype=np.int32))

    events = trace_events(explanation)

    check_format(events)
    assert [e["args"]["name"] for e in events if e["name"] == "thread_name"] == ["X", "Y", "critical path"]
    groups = {e["name"]: e for e in events if e.get("cat") == "group"}
    assert set(groups) == {"a", "b", "c", "d"}
    assert groups["c"]["dur"] == pytest.approx(4000)  # microseconds
    assert groups["b"]["args"]["ms on X"] == pytest.approx(2)
    assert sum(e["ph"] == "s" for e in events) == len(explanation.cuts())
    last = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert last == pytest.approx(explanation.schedule.latency_seconds * 1e6)


def test_a_measured_run_stands_beside_the_predicted_one(tmp_path: Path) -> None:
    explanation = HeteroExplanation(diamond(), np.array([0, 1, 1, 1], dtype=np.int32))
    run = MeasuredRun(
        stages=(
            MeasuredStage(0, "X", (MeasuredNode("a", "Input", "ref", ("a",), 1e-3),)),
            MeasuredStage(1, "Y", (MeasuredNode("b", "Eltwise", "jit", ("b", "c"), 2e-3),)),
        ),
        seconds=4e-3,
        runs=7,
    )

    write_trace(tmp_path / "run.json", "net.xml", explanation, run)

    document = json.loads((tmp_path / "run.json").read_text())
    assert document["displayTimeUnit"] == "ms"
    events = document["traceEvents"]
    check_format(events)
    titles = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert [title.split(",")[0] for title in titles] == ["predicted", "measured"]
    measured = [e for e in events if e["pid"] == 2 and e["ph"] == "X" and e["cat"] != "idle"]
    run = ["subgraph 0", "a", "subgraph 1", "b"]
    path = ["0 on X", "1 on Y", "outside all submodels"]
    assert [e["name"] for e in measured] == [*run, *path]
    assert measured[-1]["dur"] == pytest.approx(1000)


def test_names_of_any_kind_are_data_in_a_trace(tmp_path: Path) -> None:
    table = layered_table(20, names=HOSTILE)
    write_trace(tmp_path / "run.json", HOSTILE[0], HeteroExplanation(table, pieces(20, 2)))

    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]

    assert set(HOSTILE) <= {e["name"] for e in events}


def test_a_real_run_says_where_the_time_of_each_submodel_went(unequal_pair: ov.Core) -> None:
    model = two_layers([1, 3, 16, 16])
    device_of = {op.get_friendly_name(): "CPU" for op in model.get_ops()}
    first_half = ("image", "weights3", "first", "relu")
    device_of |= dict.fromkeys(first_half, "XCPU")

    with ProfilingSession(unequal_pair, model, ("XCPU", "CPU")) as session:
        run = measure_run(session, SplitPlan.of(device_of))

    assert [stage.device for stage in run.stages] == ["XCPU", "CPU"]
    ops = [{op for node in stage.nodes for op in node.ops} for stage in run.stages]
    assert "first" in ops[0]
    assert "second" in ops[1]
    assert all(node.seconds > 0 for stage in run.stages for node in stage.nodes)
    assert run.runs >= 3
