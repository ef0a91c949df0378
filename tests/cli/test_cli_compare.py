"""``compare``: what two commands printed with ``--json``, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused

from command_line import Command

DEVICES = ("-d", "XCPU,CPU", "--policy", "none", "--mode", "zero-shot")


def candidate(
    name: str, predicted: float | None, *, requests: int = 0, interval: object = None, **medians: float | None
) -> dict[str, Any]:
    """As ``--json`` prints it, in milliseconds."""
    measured = {
        load: {"median_ms": median, "ci95_ms": interval, "samples": 9}
        for load, median in medians.items()
        if median is not None
    }
    return {"name": name, "requests": requests, "predicted_ms": predicted, "measured": measured}


def kept(folder: Path, name: str, **fields: Any) -> Path:
    """A file with what a command could have printed."""
    path = folder / f"{name}.json"
    decided = {"model": "net.xml", "devices": ["GPU", "CPU"], "decision": name, "candidates": []}
    path.write_text(json.dumps(decided | fields))
    return path


def cells(printed: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines() if "│" in line]


def test_ops_of_two_explanations_are_compared_by_device(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    files = []
    for first, second in (("XCPU", "CPU"), ("CPU", "CPU")):
        pins = ("--pin", f"first={first}", "--pin", f"second={second}")
        files.append(tmp_path / f"{first}.json")
        files[-1].write_text(cli("explain", small_ir, *DEVICES, *pins, "--json").out)

    found = cli("compare", *files, "--json").json()

    moved = {row["op"] for row in found["moved"]}
    assert "first" in moved
    assert "second" not in moved
    assert {(row["from"], row["to"]) for row in found["moved"]} == {("XCPU", "CPU")}
    assert f"{len(found['moved'])} from XCPU to CPU" in cli("compare", *files).out


def test_lanes_are_parts_of_their_device_and_ops_of_one_answer_count(cli: Command, tmp_path: Path) -> None:
    ops = [{"name": op, "device": device} for op, device in (("a", "CPU#0"), ("b", "CPU#1"), ("c", "GPU"))]
    others = [{"name": op, "device": device} for op, device in (("a", "CPU"), ("b", "GPU"), ("d", "GPU"))]
    explained = {"chosen": "CPU", "cost_source": "profiled", "candidates": []}
    files = kept(tmp_path, "a", ops=ops, **explained), kept(tmp_path, "b", ops=others, **explained)

    assert cli("compare", *files, "--json").json()["moved"] == [{"op": "b", "from": "CPU", "to": "GPU"}]
    said = " ".join(cli("compare", *files).out.split())
    assert said.endswith("1 from CPU to GPU; only in A: 1; only in B: 1")


def test_latencies_are_told_apart_where_their_intervals_are(cli: Command, tmp_path: Path) -> None:
    def row(name: str, median: float | None, low: float, high: float) -> dict[str, Any]:
        return candidate(name, 2.0, steady=median, interval=[low, high])

    before = [row("AUTOPLACE", 1.0, 0.9, 1.1), row("CPU", 4.0, 3.0, 5.0)]
    after = [row("AUTOPLACE", 2.0, 1.9, 2.1), row("CPU", 5.0, 4.0, 6.0), row("GPU", None, 0, 0)]
    one, other = kept(tmp_path, "a", rows=before), kept(tmp_path, "b", rows=after)

    found = {entry["name"]: entry for entry in cli("compare", one, other, "--json").json()["latencies"]}
    rows = cells(cli("compare", one, other).out)

    changes = {name: (entry["measured_change"], entry["told_apart"]) for name, entry in found.items()}
    assert changes["the answer"] == changes["AUTOPLACE"] == (pytest.approx(1.0), True)
    assert changes["CPU"] == (pytest.approx(0.25), False)
    assert changes["GPU"] == (None, False)
    assert ["CPU", "4.000", "5.000", "+25.0 % ~", "2.000", "2.000"] in rows
    assert ["the answer", "1.000", "2.000", "+100.0 %", "2.000", "2.000"] in rows


def test_an_annotation_lists_no_ops_and_has_latencies_of_all_candidates(cli: Command, tmp_path: Path) -> None:
    decided = {"chosen": "GPU", "mode": "PROFILE"}
    first, second = [candidate("GPU", 2.0, steady=1.0), candidate("CPU", 3.0)], [candidate("CPU", 6.0)]
    one = kept(tmp_path, "a", candidates=first, **decided)
    other = kept(tmp_path, "b", candidates=second, chosen="CPU", mode="TUNE")

    found = cli("compare", one, other, "--json").json()
    outcome = cli("compare", one, other)

    assert found["moved"] is None
    assert f"there are none in {one} and {other}" in " ".join(outcome.out.split())
    assert {"name": "mode", "first": "PROFILE", "second": "TUNE"} in found["facts"]
    assert ["mode", "PROFILE", "TUNE"] in cells(outcome.out)
    changes = {entry["name"]: entry["predicted_change"] for entry in found["latencies"]}
    assert changes == {"the answer": pytest.approx(2.0), "GPU": None, "CPU": pytest.approx(1.0)}


def test_rates_are_compared_by_name(cli: Command, tmp_path: Path) -> None:
    def rated(name: str, **rates: float) -> Path:
        ways = [
            candidate(way, None, requests=4, waiting=1e3 / rate, queued=500 / rate)
            for way, rate in rates.items()
        ]
        return kept(tmp_path, name, rows=ways)

    files = rated("a", GPU=1000.0, CPU=10.0), rated("b", GPU=3000.0, NPU=7.0)

    rows = cells(cli("compare", *files).out)

    assert ["GPU", "1,000", "3,000", "2,000", "6,000"] in rows
    assert ["CPU", "10", "-", "20", "-"] in rows
    assert ["NPU", "-", "7", "-", "14"] in rows
    found = cli("compare", *files, "--json").json()
    assert [row["name"] for row in found["rates"]] == ["GPU", "CPU", "NPU"]
    assert found["latencies"] == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "JSON"),
        ("[]", "must be a JSON object"),
        ('{"answer": 42}', "annotate, explain or bench"),
        ('{"model": 7, "devices": [], "decision": ""}', "'model' must be a string"),
        (None, "missing.json"),
    ],
)
def test_what_is_no_answer_is_refused_in_a_sentence(
    cli: Command, tmp_path: Path, text: str | None, complaint: str
) -> None:
    path = tmp_path / "missing.json"
    if text is not None:
        path.write_text(text)
    assert_refused(cli("compare", kept(tmp_path, "a", chosen="CPU"), path), path, complaint)
