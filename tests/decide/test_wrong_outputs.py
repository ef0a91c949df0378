"""OpenVINO's CPU multiplies wrongly where one square weight is read as it is and transposed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from command_line import Command, candidates_of
from ov_autoplace.measure import outputs

SIZE = 64


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking a device that is alone is given up when it takes long, and here other tests are running."""
    monkeypatch.setattr(outputs, "_SHARE", 100.0)


def tied_weights() -> tuple[ov.Model, np.ndarray]:
    """``relu(x W) W'`` and W."""
    weights = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    x = ops.parameter([8, SIZE], np.float32, name="x")
    shared = ops.constant(weights, name="W")
    hidden = ops.relu(ops.matmul(x, shared, False, False))
    return ov.Model([ops.result(ops.matmul(hidden, shared, False, True))], [x], "tied"), weights


def error_of(compiled: ov.CompiledModel, weights: np.ndarray) -> float:
    x = np.random.default_rng(1).uniform(-1, 1, (8, SIZE)).astype(np.float32)
    right = np.maximum(x @ weights, 0) @ weights.T
    return float(np.abs(compiled(x)[0] - right).max() / np.abs(right).max())


def test_a_wrong_reference_is_told_and_what_is_compiled_is_right(
    unequal_pair: ov.Core, caplog: pytest.LogCaptureFixture
) -> None:
    model, weights = tied_weights()
    assert error_of(unequal_pair.compile_model(model, "CPU"), weights) > 0.5  # else OpenVINO was mended

    decision = ov_autoplace.place(model, "CPU,XCPU", core=unequal_pair).decision

    assert decision is not None
    given = decision.candidate("CPU (model as given)")
    assert given.is_wrong
    assert given.output_difference > 0.5
    assert decision.winner.output_difference < 1e-5
    assert not decision.winner.is_wrong
    assert given.name in decision.reason
    assert any(given.name in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("devices", "properties"),
    [
        ("CPU", {}),
        ("CPU", {"INFERENCE_NUM_THREADS": 1}),
        ("CPU,XCPU", {}),
        ("CPU,XCPU", {"AUTOPLACE_MODE": "ZERO_SHOT"}),
        ("CPU,XCPU", {"AUTOPLACE_OUTPUT_TOLERANCE": "OFF"}),
        ("CPU", {"PERFORMANCE_HINT": "THROUGHPUT"}),
        ("CPU", {"AUTOPLACE_EXECUTOR": "OVERLAP", "AUTOPLACE_LANES": "2x1"}),
    ],
)
def test_whatever_is_compiled_is_right(
    unequal_pair: ov.Core, devices: str, properties: dict[str, object]
) -> None:
    model, weights = tied_weights()
    assert error_of(unequal_pair.compile_model(model, f"AUTOPLACE:{devices}", properties), weights) < 1e-5


def test_ways_to_serve_many_requests_are_compared(unequal_pair: ov.Core) -> None:
    many = {"PERFORMANCE_HINT": "THROUGHPUT"}
    decision = ov_autoplace.place(
        tied_weights()[0], "CPU,XCPU", core=unequal_pair, properties=many, time_budget_ms=1000
    ).decision
    assert decision is not None
    differences = {
        c.name: c.output_difference for c in decision.candidates if c.output_difference is not None
    }
    assert {"CPU THROUGHPUT", "XCPU THROUGHPUT"} <= set(differences)
    assert max(differences.values()) < 1e-5


def test_commands_tell_how_far_outputs_differ(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "tied.xml"
    model, weights = tied_weights()
    ov.save_model(model, path, compress_to_fp16=False)
    asked = ("-d", "XCPU,CPU", "--json")
    told = cli("annotate", path, *asked).json()
    assert candidates_of(told)["XCPU (model as given)"]["output_difference"] > 0.5
    assert candidates_of(told)[told["chosen"]]["output_difference"] < 1e-5
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    # The file is right in programs that know nothing of the package, too.
    assert error_of(ov.Core().compile_model(told["annotated_model"], "CPU", exact), weights) < 1e-5
    rows = cli("bench", path, *asked, "--time-budget-ms", "300", "--seconds", "0.3").json()["rows"]
    differences = {row["name"]: row["output_difference"] for row in rows}
    assert differences["CPU"] > 0.5 > 1e-5 > differences["AUTOPLACE"]
    told = cli("annotate", path, *asked, "--time-budget-ms", "300", "--output-tolerance", "off").json()
    assert {c["output_difference"] for c in told["candidates"]} == {None}
