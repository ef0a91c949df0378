"""The commands with a GPU among the devices."""

from __future__ import annotations

import json
from pathlib import Path

import openvino as ov
import pytest
from gpu_models import compiled_with, encoder

from command_line import Command, candidates_of
from model_checks import outputs_of, random_inputs, relative_error
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import save_target

PAIR = ("-d", "GPU,CPU")
EXACT = ("--config", '{"INFERENCE_PRECISION_HINT": "f32"}')


@pytest.fixture
def ir(tmp_path: Path) -> Path:
    path = tmp_path / "encoder.xml"
    ov.save_model(encoder(), path, compress_to_fp16=False)
    return path


@pytest.fixture
def target(tmp_path: Path, core: ov.Core) -> Path:
    """A target profile whose numbers are assumed: measuring transfers has its own test."""
    path = tmp_path / "here.json"
    save_target(generic_target(core, ("GPU", "CPU")), path)
    return path


@pytest.fixture(autouse=True)
def only_real_devices(cli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line's own fixture registers an alias of the CPU; there are two devices here."""
    monkeypatch.delenv("AUTOPLACE_EXTRA_DEVICES")


def test_devices_lists_the_gpu_first(cli: Command) -> None:
    devices = cli("devices", "--json").json()["devices"]
    assert [device["name"] for device in devices] == ["GPU", "CPU"]
    assert {"FP32", "FP16"} <= set(devices[0]["precisions"])
    assert devices[0]["memory_bytes"] > 1 << 30


@pytest.mark.smoke
def test_annotated_files_run_on_both_devices(cli: Command, ir: Path, core: ov.Core) -> None:
    pins = ("--pin", "query0=GPU", "--pin", "outer0=CPU")
    report = cli("annotate", ir, *PAIR, "--mode", "zero-shot", *pins, "--json").json()

    affinities = json.loads(Path(report["affinity_file"]).read_text())
    assert set(affinities.values()) == {"GPU", "CPU"}
    annotated = core.read_model(report["annotated_model"])
    compiled = core.compile_model(annotated, "AUTOPLACE:GPU,CPU")
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == report["subgraphs"]
    inputs = random_inputs(annotated, seed=5)
    expected = outputs_of(core.compile_model(ir, "CPU"), inputs)
    assert relative_error(outputs_of(compiled, inputs), expected) < 5e-4
    # Without the package, the file beside it says the same.
    model = compiled_with(core, core.read_model(ir), affinities)
    assert model.get_property("HETERO_NUMBER_OF_SUBMODELS") == report["subgraphs"]


def test_annotate_measures_the_gpu(cli: Command, ir: Path, target: Path) -> None:
    report = cli("annotate", ir, *PAIR, *EXACT, "--target", target, "--json").json()
    assert report["mode"] == "PROFILE"
    found = candidates_of(report)
    assert all(found[device]["predicted_ms"] > 0 for device in ("GPU", "CPU"))
    assert found[report["chosen"]]["measured"]["steady"]["median_ms"] > 0


def test_bench_has_rows_of_each_device_and_of_their_mixes(cli: Command, ir: Path, target: Path) -> None:
    budget = ("--time-budget-ms", "100", "--seconds", "0.5", "--target", target)
    report = cli("bench", ir, *PAIR, *EXACT, *budget, "--json").json()
    names = {row["name"] for row in report["rows"]}
    assert {"GPU", "CPU"} <= names
    assert any("HETERO" in name for name in names)
    assert any("AUTOPLACE" in name for name in names)


def test_explain_names_the_gpu(cli: Command, ir: Path) -> None:
    outcome = cli("explain", ir, *PAIR, "--mode", "zero-shot", "--pin", "query0=GPU", "--pin", "outer0=CPU")
    assert outcome.code == 0, outcome.err
    assert "GPU" in outcome.out
    assert "CPU" in outcome.out
