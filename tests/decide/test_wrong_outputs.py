"""OpenVINO 2026.4.1's CPU multiplies wrongly where one square weight is read as it is and transposed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from command_line import Command
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


def test_a_wrong_reference_is_told(unequal_pair: ov.Core, caplog: pytest.LogCaptureFixture) -> None:
    model, weights = tied_weights()
    assert error_of(unequal_pair.compile_model(model, "CPU"), weights) > 0.5  # else OpenVINO was mended

    decision = ov_autoplace.place(model, "CPU,XCPU", core=unequal_pair).decision

    assert decision is not None
    assert decision.output_difference["CPU"] > 0.5
    assert decision.candidate("CPU").is_wrong
    assert "op by op" in decision.reason
    assert any("op by op" in record.getMessage() for record in caplog.records)


def test_commands_tell_how_far_outputs_differ(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "tied.xml"
    ov.save_model(tied_weights()[0], path, compress_to_fp16=False)
    told = cli("annotate", path, "-d", "XCPU,CPU", "--json").json()
    assert told["output_difference"]["XCPU"] > 0.5
    rows = cli("bench", path, "-d", "XCPU,CPU", "--seconds", "0.5", "--json").json()["rows"]
    assert next(row["output_difference"] for row in rows if row["name"] == "CPU") > 0.5
    told = cli("annotate", path, "-d", "XCPU,CPU", "--output-tolerance", "off", "--json").json()
    assert told["output_difference"] == {}
