"""The commands that only report: devices, calibrate, bench, explain, benchmark_app."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import openvino as ov
import pytest

from command_line import EXTRA_DEVICES, Command
from ov_autoplace import Target
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import save_target
from ov_autoplace.devices.widths import Cores
from ov_autoplace.explain import answer
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.measure import calibrate

pytestmark = pytest.mark.alone

DEVICES = ("-d", "XCPU,CPU")
QUICK = (*DEVICES, "--time-budget-ms", "50")


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A target profile of XCPU and CPU whose numbers are assumed, which is quick."""
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", EXTRA_DEVICES)
    path = tmp_path / "here.json"
    save_target(generic_target(ov.Core(), ("XCPU", "CPU")), path)
    return path


def test_devices_lists_what_the_core_has(cli: Command) -> None:
    report = cli("devices", "--json").json()

    assert {d["name"] for d in report["devices"]} == {"XCPU", *ov.Core().available_devices}
    cpu = next(d for d in report["devices"] if d["name"] == "CPU")
    assert cpu["full_name"] == ov.Core().get_property("CPU", "FULL_DEVICE_NAME")
    assert "FP32" in cpu["precisions"]


def test_devices_shows_the_rates_of_a_target(cli: Command, profile: Path) -> None:
    rates = cli("devices", "--target", profile, "--json").json()["target"]

    assert rates["measured"] is False
    assert {r["device"] for r in rates["rates"]} == {"XCPU", "CPU"}
    assert {"matmul", "convolution", "copy"} <= {r["op_class"] for r in rates["rates"]}
    assert "nothing was measured" in cli("devices", "--target", profile).out


def test_calibrate_writes_what_was_measured_and_annotate_takes_it(
    cli: Command, small_ir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def measure(core: ov.Core, devices: tuple[str, ...], *, progress: Any, **options: Any) -> Target:
        progress(1, 2, "half of it")
        asked.append((devices, options))
        return generic_target(core, devices)

    monkeypatch.setattr(calibrate, "calibrate", measure)
    path = tmp_path / "new" / "measured.json"
    config = '{"PERFORMANCE_HINT": "LATENCY"}'

    outcome = cli("calibrate", "-o", path, "--quick", "--config", config, *DEVICES, "--json")

    assert outcome.json()["target"] == str(path)
    assert asked == [
        (
            ("XCPU", "CPU"),
            {
                "properties": {"PERFORMANCE_HINT": "LATENCY"},
                "quick": True,
                "isolation": True,
                "models": [],
            },
        )
    ]
    report = cli("annotate", small_ir, "--mode", "zero-shot", "--target", path, "--json").json()
    assert report["devices"] == ["XCPU", "CPU"]


def test_bench_has_a_row_for_every_way_of_running(cli: Command, small_ir: Path) -> None:
    report = cli("bench", small_ir, *QUICK, "--seconds", "0.3", "--json").json()

    rows = {row["name"]: row for row in report["rows"]}
    assert "measured here: AUTOPLACE" in report["measured"]
    widths = [f"CPU ({width.label})" for width in Cores.of_this_process().widths]
    assert list(rows) == ["XCPU", "CPU", *widths, "AUTO", "HETERO", "AUTOPLACE"]
    # Runs are interleaved and nobody is dropped: all have as many samples, up to the last round.
    steady = [row["measured"]["steady"] for row in rows.values()]
    samples = [found["samples"] for found in steady]
    assert min(samples) > 0
    assert max(samples) - min(samples) <= 1
    for found in steady:
        assert found["median_ms"] > 0
        # Of fewer samples there is no 95 % interval of a median.
        assert (found["ci95_ms"] is None) == (found["samples"] < 6)
        if found["ci95_ms"] is not None:
            assert 0 < found["ci95_ms"][0] <= found["median_ms"] <= found["ci95_ms"][1]
    assert {row["subgraphs"] for row in rows.values()} == {1}
    assert rows["XCPU"]["predicted_ms"] > 0
    assert rows["AUTO"]["predicted_ms"] is None


def test_explain_adds_up(cli: Command, small_ir: Path) -> None:
    pins = ("--pin", "first=XCPU", "--pin", "second=CPU")
    report = cli("explain", small_ir, *DEVICES, *pins, "--mode", "zero-shot", "--json").json()

    ops = len(ov.Core().read_model(small_ir).get_ops())
    assert [s["device"] for s in report["subgraphs"]] == ["XCPU", "CPU"]
    assert sum(s["ops"] for s in report["subgraphs"]) == ops
    (cut,) = report["cuts"]
    assert (cut["source_device"], cut["target_device"]) == ("XCPU", "CPU")
    assert cut["bytes"] == 4 * 16 * 16 * 4  # channels, height, width, bytes of f32
    assert cut["seconds"] == pytest.approx(report["transfer_ms"] / 1e3)


def test_explain_shows_the_ops_that_were_asked_for(cli: Command, small_ir: Path) -> None:
    report = cli("explain", small_ir, *DEVICES, "--mode", "zero-shot", "--op", "rel*", "--json").json()
    everything = cli("explain", small_ir, *DEVICES, "--mode", "zero-shot", "--op", "*", "--json").json()

    assert len(report["groups"]) == 1
    assert report["groups"][0] in everything["groups"]
    assert set(report["groups"][0]["seconds"]) == {"XCPU", "CPU"}
    assert report["groups"][0]["reason"]


def test_what_was_measured_has_the_last_word_in_explain(
    cli: Command, small_ir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The costs promise 6.3 % on XCPU, where the race found it slower than the answer."""
    refuted = WhatIf(
        change="costs as they are",
        placed_seconds=1.6e-3,
        best_seconds=1.5e-3,
        answer="all on XCPU",
        moved_ops=5,
        gain=0.063,
        proven=True,
        placed_measured_seconds=1.2e-3,
        best_measured_seconds=1.5e-3,
    )
    monkeypatch.setattr(answer, "what_ifs", lambda *_, **__: [refuted])
    monkeypatch.setenv("COLUMNS", "300")
    arguments = ("explain", small_ir, *DEVICES, "--mode", "zero-shot")

    text = cli(*arguments).out
    (change,) = cli(*arguments, "--json").json()["what_if"]

    assert "What would change the prediction" in text
    assert "measured 1.500 ms, 25.0 % slower, which decided" in text
    assert change["matters"] is False
    assert "which decided" in change["verdict"]


def test_explain_takes_an_affinity_file(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    given = {op.get_friendly_name(): "CPU" for op in ov.Core().read_model(small_ir).get_ops()}
    (tmp_path / "given.json").write_text(json.dumps(given))

    outcome = cli("explain", small_ir, *DEVICES, "--affinity", tmp_path / "given.json", "--mode", "zero-shot")

    assert outcome.code == 0, outcome.err
    assert "given.json" in outcome.out


def test_benchmark_app_runs_on_autoplace(cli: Command, small_ir: Path) -> None:
    pins = ("--pin", "first=XCPU", "--pin", "second=CPU")
    report = cli("annotate", small_ir, *DEVICES, *pins, "--mode", "zero-shot", "--json").json()

    # benchmark_app refuses a precision for virtual devices that it does not know.
    arguments = ("-d", "AUTOPLACE:XCPU,CPU", "-niter", "2", "-infer_precision", "f32")
    command = [
        sys.executable,
        "-m",
        "ov_autoplace",
        "benchmark_app",
        "-m",
        report["annotated_model"],
        *arguments,
    ]
    # It configures the logging of the whole process, so it gets one of its own.
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "EXECUTION_DEVICES: ['XCPU', 'CPU']" in done.stdout
    assert "Median" in done.stdout


def test_extension_prints_a_path_that_openvino_loads(cli: Command) -> None:
    path = cli("extension").out.strip()

    assert cli("extension", "--json").json() == {"extension": path}
    ov.Core().add_extension(path)
