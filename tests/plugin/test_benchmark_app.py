"""OpenVINO's benchmark_app on AUTOPLACE, as its users run it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import openvino as ov
import pytest

from command_line import EXTRA_DEVICES, two_layers

PAIR = "AUTOPLACE:XCPU,CPU"
ESTIMATED = {"AUTOPLACE_MODE": "ZERO_SHOT"}
# Without the package's own command, after an import.
PLAIN = "import ov_autoplace; from openvino.tools.benchmark.main import main; main()"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs it on a small model; what it prints."""
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", EXTRA_DEVICES)
    path = tmp_path / "model.xml"
    ov.save_model(two_layers([1, 3, 16, 16]), path)

    def run(*options: str, device: str = PAIR, config: dict[str, object] | None = None, plain: bool = False):
        settings = tmp_path / "settings.json"
        settings.write_text(json.dumps({"AUTOPLACE": {**ESTIMATED, **(config or {})}}))
        program = ["-c", PLAIN] if plain else ["-m", "ov_autoplace.plugin.benchmark_app"]
        command = [sys.executable, *program, "-m", str(path), "-d", device, "-niter", "4", *options]
        done = subprocess.run(
            [*command, "-load_config", str(settings)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Throughput" in done.stdout
        assert "does not support" not in done.stdout
        return done.stdout

    return run


def told(output: str, key: str) -> str:
    """What it prints of a property of the compiled model."""
    return re.search(rf"\] +{key}: (.*)", output)[1]


@pytest.mark.parametrize(
    ("hint", "plain"), [("throughput", False), ("cumulative_throughput", True), ("latency", False)]
)
def test_hints_are_taken(run, hint, plain, tmp_path):
    dump = tmp_path / "dump.json"
    output = run("-hint", hint, "-dump_config", str(dump), plain=plain)
    assert told(output, "PERFORMANCE_HINT").endswith(hint.upper())
    requests = re.search(r"(\d+) inference requests", output)
    if hint == "latency":
        assert requests is None  # it runs synchronously then
    else:
        assert requests[1] == told(output, "OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    if hint == "throughput":  # what it dumps it loads
        dumped = json.loads(dump.read_text())
        assert set(dumped) == {"AUTOPLACE"}
        again = {key: value for key, value in dumped["AUTOPLACE"].items() if key != "PERF_COUNT"}
        assert told(run(config=again), "PERFORMANCE_HINT") == "THROUGHPUT"


@pytest.mark.alone
@pytest.mark.parametrize(("device", "plain"), [("AUTOPLACE", False), ("AUTOPLACE:CPU", True)])
def test_streams_and_threads_are_taken(run, device, plain):
    alone = {"MULTI_DEVICE_PRIORITIES": "CPU"} if device == "AUTOPLACE" else {}
    output = run("-hint", "none", "-nstreams", "2", device=device, plain=plain, config=alone)
    assert told(output, "NUM_STREAMS") == "2"
    assert "2 inference requests" in output
    output = run("-hint", "none", "-nthreads", "1", device=device, plain=plain, config=alone)
    assert told(output, "INFERENCE_NUM_THREADS") == "1"


@pytest.mark.alone
def test_streams_of_single_devices_are_taken(run):
    pins = {"first": "XCPU", "second": "CPU"}
    streams = "XCPU:1,CPU:2"
    output = run("-hint", "none", "-nstreams", streams, config={"AUTOPLACE_PINS": json.dumps(pins)})
    told_of = dict(re.findall(r"\]   (X?CPU):(?:\n.*\]     .*)*?\n.*NUM_STREAMS: (\d)", output))
    assert told_of == {"XCPU": "1", "CPU": "2"}


def test_requests_precision_and_a_loaded_configuration_are_taken(run):
    output = run(
        "-hint", "throughput", "-nireq", "1", "-infer_precision", "f32", config={"PERF_COUNT": "YES"}
    )
    assert "1 inference requests" in output
    assert told(output, "PERFORMANCE_HINT_NUM_REQUESTS") == "1"
    assert "float32" in told(output, "INFERENCE_PRECISION_HINT")
    assert "Performance counters for AUTOPLACE device is turned on" in output


def test_synchronous_inference_and_profiles_run(run):
    output = run("-hint", "none", "-api", "sync", "-pc")
    assert "Start inference synchronously" in output
    assert "EXECUTED" in output
