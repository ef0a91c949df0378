"""AUTOPLACE gives what the CPU gives, alone and mixed, in the libraries that people run models with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processes import Program

AUTOPLACE = "AUTOPLACE:YCPU,CPU"
# One layer on the other device, all else on CPU; nothing is measured.
MIXED = {"AUTOPLACE_MODE": "ZERO_SHOT", "AUTOPLACE_PINS": json.dumps({"*": "CPU", "*layer*.1*": "YCPU"})}
# As a user would have it, within a second.
DECIDED = {"AUTOPLACE_TIME_BUDGET_MS": "1000"}


def assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    np.testing.assert_allclose(found["answer"], expected["answer"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("library", ["classify.py", "tokenize_inside.py"])
def test_a_classifier_is_placed(library: str, program: Program, exported: Path) -> None:
    alone = program(library, exported / "classifier", device="CPU")

    decided = program(library, exported / "classifier", device=AUTOPLACE, **DECIDED)
    mixed = program(library, exported / "classifier", device=AUTOPLACE, **MIXED)

    assert set(decided["devices"]) <= {"YCPU", "CPU"}
    assert_close(decided, alone)
    assert set(mixed["devices"]) == {"YCPU", "CPU"}
    assert_close(mixed, alone)


@pytest.mark.smoke
def test_a_causal_language_model_is_placed(program: Program, exported: Path) -> None:
    alone = program("generate.py", exported / "causal_lm", device="CPU", KV_CACHE_PRECISION="f32")
    options = {"KV_CACHE_PRECISION": "f32"}

    decided = program("generate.py", exported / "causal_lm", device=AUTOPLACE, **DECIDED, **options)
    mixed = program("generate.py", exported / "causal_lm", device=AUTOPLACE, **MIXED, **options)

    assert len(alone["answer"][0]) == 4 + 10
    assert decided["answer"] == alone["answer"]
    assert set(mixed["devices"]) == {"YCPU", "CPU"}
    assert mixed["answer"] == alone["answer"]


@pytest.mark.smoke
def test_torch_compiles_for_it(program: Program) -> None:
    found = program("compile_torch.py", device=AUTOPLACE, **DECIDED)

    assert f"compile successful on device {AUTOPLACE}" in found["said"], found["said"]
    assert "Failed in OpenVINO" not in found["said"]
    np.testing.assert_allclose(found["answer"], found["expected"], rtol=1e-3, atol=1e-4)


def test_a_model_whose_weights_nncf_made_smaller_is_placed(program: Program, exported: Path) -> None:
    alone, decided, mixed = compressed_answers("weights", program, exported)

    assert alone["compressed"] > 10
    assert_close(decided, alone)
    assert set(mixed["devices"]) == {"YCPU", "CPU"}
    assert_close(mixed, alone)


@pytest.mark.smoke
def test_a_model_that_nncf_quantized_is_placed(program: Program, exported: Path) -> None:
    # Each submodel decides by itself which operations run in int8, and which on rounded floats. So a mix may
    # differ by some rounding, which depends on the processor, but not by as much as quantizing changed.
    exact = program("compress.py", exported / "classifier" / "openvino_model.xml", "nothing", device="CPU")
    alone, decided, mixed = compressed_answers("quantized", program, exported)

    assert alone["quantizers"] > 10
    rounding = np.abs(np.subtract(alone["answer"], exact["answer"])).max()
    assert 0 < rounding < 0.25 * np.abs(exact["answer"]).max()
    np.testing.assert_allclose(decided["answer"], alone["answer"], rtol=0, atol=rounding)
    assert set(mixed["devices"]) == {"YCPU", "CPU"}
    np.testing.assert_allclose(mixed["answer"], alone["answer"], rtol=0, atol=rounding)


def compressed_answers(kind: str, program: Program, exported: Path) -> list[dict[str, Any]]:
    """What `compress.py` reports of the classifier on the CPU alone, as decided, and as a mix."""
    model = exported / "classifier" / "openvino_model.xml"
    return [
        program("compress.py", model, kind, device="CPU"),
        program("compress.py", model, kind, device=AUTOPLACE, **DECIDED),
        program("compress.py", model, kind, device=AUTOPLACE, **MIXED),
    ]
