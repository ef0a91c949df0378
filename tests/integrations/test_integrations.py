"""AUTOPLACE gives what the CPU gives, alone and mixed, in the libraries that people run models with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Program

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


def test_a_causal_language_model_is_placed(program: Program, exported: Path) -> None:
    alone = program("generate.py", exported / "causal_lm", device="CPU", KV_CACHE_PRECISION="f32")
    options = {"KV_CACHE_PRECISION": "f32"}

    decided = program("generate.py", exported / "causal_lm", device=AUTOPLACE, **DECIDED, **options)
    mixed = program("generate.py", exported / "causal_lm", device=AUTOPLACE, **MIXED, **options)

    assert len(alone["answer"][0]) == 4 + 10
    assert decided["answer"] == alone["answer"]
    assert set(mixed["devices"]) == {"YCPU", "CPU"}
    assert mixed["answer"] == alone["answer"]


def test_torch_compiles_for_it(program: Program) -> None:
    found = program("compile_torch.py", device=AUTOPLACE, **DECIDED)

    assert f"compile successful on device {AUTOPLACE}" in found["said"], found["said"]
    assert "Failed in OpenVINO" not in found["said"]
    np.testing.assert_allclose(found["answer"], found["expected"], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("kind", "traces"), [("weights", "compressed"), ("quantized", "quantizers")])
def test_a_model_that_nncf_made_smaller_is_placed(
    kind: str, traces: str, program: Program, exported: Path
) -> None:
    model = exported / "classifier" / "openvino_model.xml"
    alone = program("compress.py", model, kind, device="CPU")

    decided = program("compress.py", model, kind, device=AUTOPLACE, **DECIDED)
    mixed = program("compress.py", model, kind, device=AUTOPLACE, **MIXED)

    assert alone[traces] > 10
    assert_close(decided, alone)
    assert set(mixed["devices"]) == {"YCPU", "CPU"}
    assert_close(mixed, alone)
