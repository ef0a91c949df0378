"""``compare``: what two commands printed with ``--json``, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused

from command_line import Command

DEVICES = ("-d", "XCPU,CPU", "--mode", "zero-shot")


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


def test_times_are_told_apart_where_their_intervals_are(cli: Command, tmp_path: Path) -> None:
    def row(name: str, median: float | None, low: float, high: float) -> dict[str, Any]:
        return candidate(name, 2.0, steady=median, interval=[low, high])

    before = [row("AUTOPLACE", 1.0, 0.9, 1.1), row("CPU", 4.0, 3.0, 5.0)]
    after = [row("AUTOPLACE", 2.0, 1.9, 2.1), row("CPU", 5.0, 4.0, 6.0), row("GPU", None, 0, 0)]
    one, other = kept(tmp_path, "a", rows=before), kept(tmp_path, "b", rows=after)

    found = {(e["name"], e["load"]): e for e in cli("compare", one, other, "--json").json()["times"]}
    rows = cells(cli("compare", one, other).out)

    changes = {key: (entry["change"], entry["told_apart"]) for key, entry in found.items()}
    assert changes["the answer", "steady"] == changes["AUTOPLACE", "steady"] == (pytest.approx(1.0), True)
    assert changes["CPU", "steady"] == (pytest.approx(0.25), False)
    assert changes["GPU", "predicted"] == (None, False)
    assert ("GPU", "steady") not in changes
    assert ["CPU", "measured back to back", "4.000", "5.000", "+25.0 % ~"] in rows
    assert ["the answer", "measured back to back", "1.000", "2.000", "+100.0 %"] in rows
    assert ["CPU", "predicted", "2.000", "2.000", "+0.0 %"] in rows


def test_the_answers_of_annotations_are_compared_whatever_they_are_called(
    cli: Command, tmp_path: Path
) -> None:
    first, second = [candidate("GPU", 2.0, steady=1.0), candidate("CPU", 3.0)], [candidate("CPU", 6.0)]
    one = kept(tmp_path, "a", candidates=first, chosen="GPU", mode="PROFILE")
    other = kept(tmp_path, "b", candidates=second, chosen="CPU", mode="TUNE")

    found = cli("compare", one, other, "--json").json()
    outcome = cli("compare", one, other)

    assert found["moved"] is None
    assert f"there are none in {one} and {other}" in " ".join(outcome.out.split())
    assert {"name": "mode", "first": "PROFILE", "second": "TUNE"} in found["facts"]
    assert ["mode", "PROFILE", "TUNE"] in cells(outcome.out)
    changes = {entry["name"]: entry["change"] for entry in found["times"] if entry["load"] == "predicted"}
    assert changes == {"the answer": pytest.approx(2.0), "GPU": None, "CPU": pytest.approx(1.0)}


def test_ways_to_run_many_requests_are_compared_as_they_are_called(cli: Command, tmp_path: Path) -> None:
    def way(name: str, waiting: float, queued: float) -> dict[str, Any]:
        return candidate(name, None, requests=4, waiting=waiting, queued=queued)

    one = kept(tmp_path, "a", rows=[way("GPU", 1.0, 0.5), way("CPU", 9.0, 4.0)])
    other = kept(tmp_path, "b", rows=[way("GPU", 0.5, 0.5)])

    rows = cells(cli("compare", one, other).out)

    assert ["GPU", "measured with waiting threads", "1.000", "0.500", "-50.0 % ~"] in rows
    assert ["CPU", "measured with a queue", "4.000", "-", "-"] in rows


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
