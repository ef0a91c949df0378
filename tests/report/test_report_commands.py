"""``--report``, ``--trace`` and what ``explain`` prints, from the command line."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from command_line import Command, candidates_of, two_layers
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import save_table
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from report_tables import HOSTILE, diamond

DEVICES = ("-d", "XCPU,CPU")
SPLIT = (*DEVICES, "--pin", "first=XCPU", "--pin", "second=CPU", "--mode", "zero-shot")


@pytest.mark.bokeh
@pytest.mark.parametrize("command", ["annotate", "explain"])
def test_a_placement_leaves_a_report_and_a_trace(
    cli: Command, small_ir: Path, tmp_path: Path, command: str
) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "run.json"

    outcome = cli(command, small_ir, *SPLIT, "--report", page, "--trace", trace)

    assert outcome.code == 0, outcome.err
    assert f"wrote {page}" in outcome.out
    text = page.read_text(encoding="utf-8")
    assert "<h1>" in text
    assert "second" in text
    events = json.loads(trace.read_text())["traceEvents"]
    assert {e["cat"] for e in events if e["ph"] == "X"} == {"subgraph", "group", "idle", "critical"}
    assert cli(command, small_ir, *SPLIT, "--report", page, "--json").json()["model"] == str(small_ir)


@pytest.mark.bokeh
def test_a_benchmark_leaves_a_report_and_a_trace_of_the_measured_run(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    annotated = cli("annotate", small_ir, *SPLIT, "--json").json()["annotated_model"]
    page, trace = tmp_path / "page.html", tmp_path / "run.json"
    seconds = ("--seconds", "0.2", "--mode", "zero-shot")

    files = ("--report", page, "--trace", trace)
    report = cli("bench", annotated, *DEVICES, *seconds, *files, "--json").json()

    assert {row["name"]: row["subgraphs"] for row in report["rows"]}["AUTOPLACE"] == 2
    assert report["reason"] == "given"
    assert "CPU, measured" in page.read_text(encoding="utf-8")
    events = json.loads(trace.read_text())["traceEvents"]
    measured = [e for e in events if e["pid"] == 2 and e["ph"] == "X" and e["cat"] == "subgraph"]
    assert [e["name"] for e in measured] == ["subgraph 0", "subgraph 1"]


RATE = ("--config", '{"PERFORMANCE_HINT": "THROUGHPUT"}', "--mode", "zero-shot")


@pytest.mark.bokeh
@pytest.mark.parametrize("command", ["annotate", "explain"])
def test_an_answer_for_many_requests_shows_their_rates(
    cli: Command, small_ir: Path, tmp_path: Path, command: str
) -> None:
    page = tmp_path / "page.html"
    outcome = cli(command, small_ir, *DEVICES, *RATE, "--report", page)

    assert outcome.code == 0, outcome.err
    assert "in flight" in outcome.out
    assert "CPU THROUGHPUT" in outcome.out
    headings = re.findall(r"<h2>(.*?)</h2>", page.read_text(encoding="utf-8"))
    assert "Candidates" in headings
    asked = cli(command, small_ir, *DEVICES, *RATE, "--json").json()
    assert set(candidates_of(asked)) >= {"XCPU THROUGHPUT", "CPU THROUGHPUT"}
    assert asked["rate_bound_per_second"] > 0


@pytest.mark.bokeh
def test_a_benchmark_of_rates_leaves_a_report(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "run.json"
    files = ("--report", page, "--trace", trace)

    outcome = cli("bench", small_ir, *DEVICES, *RATE, "--seconds", "0.3", *files)

    assert outcome.code == 0, outcome.err
    assert f"wrote {page}" in outcome.out
    text = page.read_text(encoding="utf-8")
    assert "<h2>Candidates</h2>" in text
    assert "What would change" not in text  # which is about the latency of one
    assert "queue a second" in text
    explained = tmp_path / "explained.html"
    assert cli("explain", small_ir, *DEVICES, *RATE, "--report", explained).code == 0
    assert "queue a second" not in explained.read_text(encoding="utf-8")
    assert json.loads(trace.read_text())["traceEvents"]


def test_an_annotation_for_one_request_is_not_compared_by_rates(cli: Command, small_ir: Path) -> None:
    annotated = cli("annotate", small_ir, *SPLIT, "--json").json()["annotated_model"]

    outcome = cli("bench", annotated, *DEVICES, *RATE, "--seconds", "0.2")

    assert outcome.code == 2
    assert "one request at a time" in " ".join(outcome.err.split())


def test_a_report_that_cannot_be_drawn_is_refused_before_anything_is_measured(
    cli: Command, small_ir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)  # as where it is not installed

    outcome = cli("annotate", small_ir, *SPLIT, "--report", tmp_path / "page.html")

    assert outcome.code == 2
    assert "pip install 'ov-autoplace[report]'" in outcome.err
    assert {path.name for path in small_ir.parent.iterdir()} == {"net.bin", "net.xml"}


def test_a_trace_makes_its_folder_and_is_refused_where_that_cannot_be_one(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    cli("explain", small_ir, *SPLIT, "--trace", tmp_path / "missing" / "run.json")
    assert (tmp_path / "missing" / "run.json").exists()

    (tmp_path / "occupied").touch()
    outcome = cli("explain", small_ir, *SPLIT, "--trace", tmp_path / "occupied" / "run.json")
    assert outcome.code == 2
    assert "occupied" in outcome.err


def test_explain_prints_subgraphs_in_the_order_of_the_run(
    cli: Command, small_ir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # all columns have room
    titles, rows = ["Subgraphs in the order", "What would change the prediction"], list[list[str]]()
    for line in cli("explain", small_ir, *SPLIT).out.splitlines():
        if titles and line.startswith(titles[0]):
            titles.pop(0)
        if len(titles) == 1 and line.startswith("│"):
            rows.append([cell.strip() for cell in line.split("│")[1:-1]])

    assert not titles
    assert [(row[0], row[1], row[7]) for row in rows[:2]] == [("0", "XCPU", "-"), ("1", "CPU", "0")]
    assert [row[6] == "-" for row in rows[:2]] == [True, False]  # the second one receives something


def test_explain_says_what_would_change_the_answer_under_the_same_pins(cli: Command, small_ir: Path) -> None:
    report = cli("explain", small_ir, *SPLIT, "--json").json()

    assert [change["change"] for change in report["what_if"]] == [
        "costs as they are",
        "transfers with twice the bandwidth",
        "transfers with half the fixed time",
        "transfers and launches that cost nothing",
        "XCPU twice as fast",
        "CPU twice as fast",
    ]
    assert report["what_if"][0]["moved_ops"] == 0


@pytest.mark.alone
def test_explain_names_what_is_left_on_a_slower_device(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    listed = set()
    for device, other in (("XCPU", "CPU"), ("CPU", "XCPU")):
        given = {op.get_friendly_name(): device for op in ov.Core().read_model(small_ir).get_ops()}
        (tmp_path / "given.json").write_text(json.dumps(given))
        arguments = (*DEVICES, "--affinity", tmp_path / "given.json", "--mode", "zero-shot")
        slower = cli("explain", small_ir, *arguments, "--json").json()["left_on_slower"]
        losses = [group["seconds"][device] - group["seconds"][other] for group in slower]
        assert losses == sorted(losses, reverse=True)
        assert all(loss > 0 for loss in losses)
        listed |= {group["name"] for group in slower}

    assert {"first", "second"} <= listed  # each convolution is slower on one of the devices


def test_explain_lists_the_ops_of_a_pattern_with_their_groups(cli: Command, small_ir: Path) -> None:
    report = cli("explain", small_ir, *SPLIT, "--op", "weights?", "--json").json()

    # Each convolution holds its weights; tell which from the model itself.
    coarse = coarsen(extract(ov.Core().read_model(small_ir)))
    groups = {op["name"]: op["group"] for op in report["ops"]}
    assert set(groups) == {name for name in coarse.ops.names if name.startswith("weights")}
    assert groups["weights3"] == "first"
    text = cli("explain", small_ir, *SPLIT, "--op", "weights?").out
    assert "weights3" in text
    assert "Their groups" in text


@pytest.mark.bokeh
def test_a_model_with_hostile_names_is_reported_as_it_is(cli: Command, tmp_path: Path) -> None:
    model = two_layers([1, 3, 8, 8])
    for op, name in zip(model.get_ordered_ops(), HOSTILE, strict=False):
        op.set_friendly_name(name)
    path, page = tmp_path / "net.xml", tmp_path / "page.html"
    ov.save_model(model, path, compress_to_fp16=False)

    outcome = cli("explain", path, *DEVICES, "--mode", "zero-shot", "--report", page)

    assert outcome.code == 0, outcome.err
    text = page.read_text(encoding="utf-8")
    assert "<img" not in text
    assert "\\u003cimg src=x onerror=alert(1)\\u003e" in text


@pytest.mark.bokeh
@pytest.mark.torch
def test_a_fine_tuning_run_is_reported_from_what_it_left(tmp_path: Path) -> None:
    from ov_autoplace.plan.placement import Placement
    from ov_autoplace.report import write_report
    from ov_autoplace.report.tuning import finetune_contents
    from ov_autoplace.training.finetuning.result import FinetuneResult, TunedModel

    table: CostTable = diamond()
    save_table(table, tmp_path / "net.table.json")
    (tmp_path / "state.safetensors").touch()
    placement = Placement.of_groups(table, np.array([0, 1, 0, 0], dtype=np.int32))
    line = {"model": "net", "kind": "measured", "note": "", "reference": "X"}
    line |= {"source": "policy", "best": 1.0}
    values = [1.0, 1.4, None, 0.9]
    lines = [
        {**line, "measurement": i + 1, "relative": value, "ms": [8.0] * 6, "reference_ms": [10.0] * 6}
        | {"placement": f"0{i:03b}"}
        for i, value in enumerate(values)
    ]
    lines[1]["source"] = "policy before tuning"
    (tmp_path / "measurements.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    model = TunedModel(
        "net", ("X", "Y"), 1.4, 0.9, 0.9, "X", 0.010, placement, tmp_path / "best", 4, 9.0, "a mix won"
    )
    result = FinetuneResult((model,), (), tmp_path, tmp_path / "curve.png", 12.0, "budget")

    contents = finetune_contents(result)
    write_report(contents, tmp_path / "page.html")

    (curve,) = contents.curves
    assert curve.values.tolist() == [1.0, 1.4, np.inf, 0.9]
    before = next(row.measured for row in contents.candidates if row.name == "policy before")
    assert (before.median, before.low, before.high) == pytest.approx((0.014, 0.014, 0.014))
    assert [row.name for row in contents.candidates if row.chosen] == ["best found"]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Learning curve" in text
    assert "Schedule" in text
