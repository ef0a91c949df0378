"""The commands on a model that shall run on lanes of its CPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from candidates import FOUND, on_groups
from command_line import Command
from networks.builder import NetworkBuilder
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.decide.placer import Placer
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.plan.decision import Candidate, Decision, Load, Scheduled
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.planning import lane_plan
from ov_autoplace.plan.scheduled import scheduled_model
from ov_autoplace.plan.simulator import simulate

pytestmark = pytest.mark.alone

CPU = ("-d", "CPU")
LANES = "CPU (2 lanes of 1 thread)"


def towers() -> ov.Model:
    """Two towers, and their sum."""
    b = NetworkBuilder(0, np.float32)
    ends = []
    for side, layers in (("left", 3), ("right", 2)):
        x = b.input(side, [16, 128])
        for layer in range(layers):
            x = b.relu(b.dense(x, 128, name=f"{side}{layer}"), f"{side}{layer}.relu")
        ends.append(x)
    return b.model("towers", {"sum": b.add(*ends, "joint")})


def decided(model: ov.Model, chosen: str) -> Placement:
    """A decision between the CPU and a tower on each of two lanes, by estimates alone."""
    table = analytic_table(coarsen(extract(model)), generic_target(ov.Core(), ("CPU",)), ("CPU",))
    lanes = with_lanes(table, "CPU", 2)
    assignment = np.array([name.startswith("right") for name in table.names], dtype=np.int32)
    plan = lane_plan(lanes, assignment, [Lane.of("CPU", Width(1).properties)] * 2)
    latency = simulate(lanes, assignment, "overlap").latency_seconds
    alone = np.zeros(len(table), dtype=np.int32)
    candidates = (
        on_groups("CPU", alone, simulate(table, alone).latency_seconds, devices=table.devices),
        Candidate(
            LANES,
            plan,
            latency,
            len(plan.lane_of),
            assignment=alone,
            scheduled=Scheduled(lanes, assignment),
            times={Load.PAUSED: np.array([2 * latency])},
        ),
    )
    decision = Decision(chosen, FOUND, "PROFILE", candidates, {}, table)
    return Placement(
        devices=("CPU",),
        names=table.names,
        assignment=alone,
        members=table.members,
        plan=plan if chosen == LANES else None,
        decision=decision,
    )


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process on two cores, whatever machine this is."""
    monkeypatch.setattr(Cores, "all", 2)
    monkeypatch.setattr(Cores, "of_kind", {})
    monkeypatch.setattr(Cores, "usable", 2)


@pytest.fixture
def chosen() -> str:
    """What is decided."""
    return LANES


@pytest.fixture(autouse=True)
def _decided(monkeypatch: pytest.MonkeyPatch, chosen: str) -> None:
    monkeypatch.setattr(Placer, "place_fitted", lambda _, model: (decided(model, chosen), None))


@pytest.fixture(scope="module")
def towers_ir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the model."""
    path = tmp_path_factory.mktemp("towers") / "towers.xml"
    ov.save_model(towers(), path, compress_to_fp16=False)
    return path


def test_explain_tells_what_each_lane_does_and_what_decides(cli: Command, towers_ir: Path) -> None:
    report = cli("explain", towers_ir, *CPU, "--json").json()

    assert report["objective"] == "overlap"
    assert report["chosen"] == LANES
    assert [lane["name"] for lane in report["lanes"]] == ["CPU#0", "CPU#1"]
    whole = report["predicted_ms"]
    for lane in report["lanes"]:
        assert lane["busy_ms"] + lane["idle_ms"] == pytest.approx(whole)
        assert sum(idle["ms"] for idle in lane["idle"]) == pytest.approx(lane["idle_ms"])
        own = [s for s in report["subgraphs"] if s["device"] == lane["name"]]
        assert len(own) == lane["subgraphs"]
        assert sum(s["end_ms"] - s["start_ms"] for s in own) == pytest.approx(lane["busy_ms"])
    path = report["critical_path"]
    assert sum(step["ms"] for step in path) == pytest.approx(whole)
    marked = {s["subgraph"] for s in report["subgraphs"] if s["critical"]}
    assert len(marked) == sum(step["kind"] == "subgraph" for step in path)
    assert report["bound_ms"] <= whole * (1 + 1e-6)
    *_, last = sorted(report["subgraphs"], key=lambda subgraph: subgraph["end_ms"])
    assert (last["device"], last["critical"], last["end_ms"]) == ("CPU#0", True, pytest.approx(whole))
    assert {cut["source_device"] for cut in report["cuts"]} <= {"CPU#0", "CPU#1"}
    assert not [change for change in report["what_if"] if "bandwidth" in change["change"]]


def test_explain_prints_lanes_and_marks_the_critical_path(cli: Command, towers_ir: Path) -> None:
    out = cli("explain", towers_ir, *CPU).out

    for words in ("Lanes\n", "Submodels in the order", "Critical path\n", "predicted idle, all lanes: "):
        assert words in out
    path = json.loads(cli("explain", towers_ir, *CPU, "--json").out)["critical_path"]
    critical = [step["text"].split()[0] for step in path if step["kind"] == "subgraph"]
    rows = [line.split("│")[1].split() for line in out.splitlines() if line.startswith("│")]
    assert [number for number, *star in rows if star == ["*"] and number.isdigit()] == critical
    columns = next(line for line in out.splitlines() if "why" in line)
    assert "CPU ms" in columns
    assert "CPU#1 ms" not in columns  # equal to the other lane's


@pytest.mark.bokeh
def test_bench_measures_the_schedule_and_shows_it_beside_the_prediction(
    cli: Command, towers_ir: Path, tmp_path: Path
) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "run.json"
    files = ("--report", page, "--trace", trace)

    report = cli("bench", towers_ir, *CPU, "--seconds", "1", *files, "--json").json()

    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows) == ["CPU", "CPU (1 thread)", "AUTO", "HETERO", "AUTOPLACE"]
    for row in rows.values():
        assert set(row["measured"]) == {"steady", "paused"}
        for found in row["measured"].values():
            interval, median = found["ci95_ms"], found["median_ms"]
            assert (interval is None) == (found["samples"] < 6)
            assert median > 0 if interval is None else 0 < interval[0] <= median <= interval[1]
            assert found["samples"] > 0
    (candidate,) = (c for c in decided(towers(), LANES).decision.candidates if c.name == LANES)
    assert rows["AUTOPLACE"]["predicted_ms"] == pytest.approx(candidate.predicted_seconds * 1e3)
    assert rows["AUTOPLACE"]["subgraphs"] == candidate.subgraphs > 1
    assert "CPU#1, measured" in page.read_text(encoding="utf-8")
    events = json.loads(trace.read_text())["traceEvents"]
    for process in (1, 2):
        own = [e for e in events if e["pid"] == process]
        names = [e["args"]["name"] for e in own if e["name"] == "thread_name"]
        assert names == ["CPU#0", "CPU#1", "critical path"]
        numbers = {e["name"] for e in own if e.get("cat") == "subgraph"}
        assert numbers == {f"submodel {i}" for i in range(len(numbers))}


@pytest.mark.bokeh
def test_annotate_reports_the_lanes_that_it_decided(cli: Command, towers_ir: Path, tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "run.json"

    cli("annotate", towers_ir, *CPU, "-o", tmp_path, "--report", page, "--trace", trace)

    text = page.read_text(encoding="utf-8")
    assert "critical path" in text
    assert "idle, all lanes" in text
    threads = [e for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "thread_name"]
    assert [e["args"]["name"] for e in threads] == ["CPU#0", "CPU#1", "critical path"]


@pytest.mark.parametrize("chosen", ["CPU"])
def test_the_table_of_bench_fits_80_columns_with_the_schedule_that_lost(
    cli: Command, towers_ir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli("bench", towers_ir, *CPU, "--seconds", "0.4").out.splitlines()

    table = [line for line in lines if line[:1] in "┏┃┡│└"]
    assert max(map(len, table)) <= 80
    head = [line for line in table if line.startswith("┃")]
    assert {"measured", "after", "idle"} <= set("".join(head).split()), head
    names = [line.split("│")[1].strip() for line in table if line.startswith("│")]
    assert " ".join(names) == f"CPU CPU (1 thread) AUTO HETERO {LANES} AUTOPLACE *"
    assert any(re.match(r"\d+ rounds? back to back", line) for line in lines)


@pytest.mark.parametrize("command", ["annotate", "explain", "bench"])
def test_a_model_that_is_divided_already_is_refused_with_a_sentence(
    cli: Command, tmp_path: Path, command: str
) -> None:
    model = towers()
    plan = decided(model, LANES).plan
    assert plan is not None
    ov.save_model(scheduled_model(model, plan), tmp_path / "divided.xml", compress_to_fp16=False)

    outcome = cli(command, tmp_path / "divided.xml", *CPU)

    assert outcome.code == 2
    assert "give the model that it was made from" in " ".join(outcome.err.split())
