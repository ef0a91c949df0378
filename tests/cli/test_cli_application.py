"""``ov-autoplace application``: several models decided, a plan written, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import openvino as ov
import pytest
from refusals import assert_refused, files_in

from command_line import Command, two_layers

NUMBER = (int, float)
PROGRAM = """
import numpy as np, openvino as ov, ov_autoplace
core, option = ov.Core(), {"AUTOPLACE_APPLICATION": "application.plan.json"}
for name, side in (("det", 8), ("cls", 16)):
    image = np.random.default_rng(0).normal(size=(1, 3, side, side)).astype(np.float32)
    (expected,) = core.compile_model(f"{name}.xml", "CPU")(image).values()
    (found,) = core.compile_model(f"{name}.xml", "AUTOPLACE:CPU", option)(image).values()
    np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.05)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the program runs: two small models."""
    for name, side in (("det", 8), ("cls", 16)):
        ov.save_model(two_layers([1, 3, side, side]), tmp_path / f"{name}.xml", compress_to_fp16=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_load(load: dict[str, Any]) -> None:
    for key in ("rate_per_second", "p50_ms", "p99_ms"):
        assert isinstance(load[key], NUMBER)
        assert load[key] > 0
    assert load["p50_ms"] <= load["p99_ms"]
    assert load["late"] is None  # without a deadline nothing is


def check_report(report: dict[str, Any], starts: list[str]) -> None:
    """What every answer holds: who was tried, what each did, and why one was taken."""
    names = [candidate["name"] for candidate in report["candidates"]]
    assert names[0] == "OpenVINO's default"
    assert len(set(names)) == len(names)
    assert report["chosen"] in names
    assert report["decision"]
    assert report["findings"]
    ran = [candidate for candidate in report["candidates"] if candidate["loads"]]
    assert {names[0], report["chosen"]} <= {candidate["name"] for candidate in ran}
    for candidate in ran:
        assert [load["start"] for load in candidate["loads"]] == starts
        assert candidate["cores"] > 0
        assert candidate["memory_bytes"] > 0
        for load in candidate["loads"]:
            check_load(load)
    assert any(candidate["rival"] for candidate in report["candidates"])
    assert not all(candidate["rival"] for candidate in report["candidates"])


@pytest.mark.alone
def test_two_files_are_decided_and_the_plan_compiles_each(cli: Command, here: Path) -> None:
    report = cli("application", "det.xml", "cls.xml", "-d", "CPU", "--time-budget-ms", "500", "--json").json()

    assert report["application"] == ["det.xml", "cls.xml"]
    assert report["file"] == "application.plan.json"
    check_report(report, ["det", "cls"])
    assert report["plan"] == json.loads((here / "application.plan.json").read_text())
    assert {part["name"] for part in report["plan"]["parts"]} == {"det", "cls"}
    chosen = next(c for c in report["candidates"] if c["name"] == report["chosen"])
    assert set(report["memory_bytes"]) == {"det", "cls"}
    assert sum(report["memory_bytes"].values()) == chosen["memory_bytes"]
    # Cores that the plan may reserve would be lost to whatever this process compiles later.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.alone
def test_a_file_says_how_requests_come_and_where_the_plan_goes(cli: Command, here: Path) -> None:
    described = {
        "version": 1,
        "models": {"det": {"path": "det.xml"}, "cls": {"path": "cls.xml"}},
        "load": [{"start": "det", "rate": 200, "deadline_ms": 100}],
        "chains": [{"from": "det", "to": "cls", "times": 2}],
    }
    (here / "cameras.json").write_text(json.dumps(described))

    outcome = cli("application", "cameras.json", "-d", "CPU", "--time-budget-ms", "0", "-o", "made/out.json")

    assert outcome.code == 0, outcome.err
    assert json.loads((here / "made" / "out.json").read_text())["kind"] == "joint"
    assert not (here / "cameras.plan.json").exists()
    assert "begin at" in outcome.out
    assert "headroom" in outcome.out


WRONG = {"version": 1, "models": {"det": {"path": "det.xml", "device": "CPU"}}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.xml"], ["nowhere"]),
        (["det.xml", "nowhere.xml"], ["nowhere"]),
        (["nowhere.json"], ["nowhere.json"]),
        (["det.xml", "wrong.json"], ["wrong.json", "alone"]),
        (["wrong.json"], ["wrong.json", "'device'", "'devices'"]),
        (["broken.json"], ["broken.json"]),
        (["det.xml", "-d", "FPGA"], ["FPGA"]),
        (["det.xml", "--time-budget-ms", "soon"], ["--time-budget-ms", "'soon'"]),
        (["det.xml", "--time-budget-ms", "-1"], ["TIME_BUDGET_MS", "-1"]),
        (["det.xml", "--time-budget-ms", "nan"], ["TIME_BUDGET_MS", "nan"]),
        (["det.xml", "--seed", "-1"], ["seed"]),
        (["det.xml", "-o", "broken.json/a.json"], ["broken.json"]),
        (["det.xml", "-o", "det.bin"], ["det.bin"]),
        (["good.json", "-o", "good.json"], ["good.json"]),
        (["good.json", "-o", "det.xml"], ["det.xml"]),
        pytest.param(
            ["good.json", "-o", "a.html", "--report", "a.html"], ["a.html"], marks=pytest.mark.bokeh
        ),
        (["det.xml", "--devise", "CPU"], ["--devise", "--devices"]),
        (["--devices", "CPU"], ["FILES"]),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    cli: Command, here: Path, arguments: list[str], words: list[str]
) -> None:
    (here / "wrong.json").write_text(json.dumps(WRONG))
    (here / "good.json").write_text(json.dumps({"version": 1, "models": {"det": {"path": "det.xml"}}}))
    (here / "broken.json").write_text('{"version": 1')
    before = files_in(here)

    assert_refused(cli("application", *arguments), *words)
    assert files_in(here) == before


@pytest.mark.parametrize("place", ["annotate", "explain", "bench"])
def test_a_plan_is_no_option_of_commands_that_decide(cli: Command, here: Path, place: str) -> None:
    config = json.dumps({"AUTOPLACE_APPLICATION": "application.plan.json"})
    assert_refused(cli(place, "det.xml", "-d", "CPU", "--config", config), "AUTOPLACE_APPLICATION")
