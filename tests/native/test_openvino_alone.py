"""Python programs that import OpenVINO and nothing of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotated_models import Annotated, answer_of
from processes import run_python

HETERO = "HETERO:CPU,XCPU"


class Program:
    """``programs/run_openvino.py`` on one picture."""

    def __init__(self, folder: Path) -> None:
        self._input, self._output = folder / "input.npy", folder / "output.npy"
        self.inputs = np.random.default_rng(3).normal(size=(1, 3, 16, 16)).astype(np.float32)
        np.save(self._input, self.inputs)

    def __call__(self, model: Path, **options: Any) -> dict[str, Any]:
        report = run_python(
            "run_openvino.py", model, self._input, self._output, json.dumps({"device": HETERO} | options)
        )
        assert report["modules"] == []
        return report

    def answer(self) -> np.ndarray:
        return np.load(self._output)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.mark.smoke
@pytest.mark.parametrize("by_path", [False, True])
def test_the_library_makes_a_program_follow_the_annotation(
    program: Program, annotated: Annotated, extension: str, by_path: bool
) -> None:
    assert annotated.submodels == 3
    assert program(annotated.model, by_path=by_path)["submodels"] == 1

    report = program(annotated.model, by_path=by_path, extension=extension)

    assert report["submodels"] == annotated.submodels
    assert set(report["devices"]) == {"CPU", "XCPU"}
    np.testing.assert_allclose(program.answer(), answer_of(annotated.plain, program.inputs), atol=1e-5)


def test_a_model_without_annotation_runs_as_it_would_without_the_library(
    program: Program, annotated: Annotated, extension: str
) -> None:
    without = program(annotated.plain)
    expected = program.answer()

    assert program(annotated.plain, extension=extension) == without
    np.testing.assert_array_equal(program.answer(), expected)


@pytest.mark.parametrize("by_path", [False, True])
def test_a_cached_blob_of_the_annotated_model_keeps_its_devices(
    program: Program, annotated: Annotated, extension: str, by_path: bool, tmp_path: Path
) -> None:
    options = {"extension": extension, "by_path": by_path, "config": {"CACHE_DIR": str(tmp_path / "cache")}}

    first, second = program(annotated.model, **options), program(annotated.model, **options)

    assert (first["from_cache"], second["from_cache"]) == (False, True)
    assert second["submodels"] == annotated.submodels
    np.testing.assert_allclose(program.answer(), answer_of(annotated.plain, program.inputs), atol=1e-5)


@pytest.mark.parametrize("by_path", [False, True])
def test_what_a_program_without_the_library_left_in_a_cache_is_passed_over(
    program: Program, annotated: Annotated, extension: str, by_path: bool, tmp_path: Path
) -> None:
    options = {"by_path": by_path, "config": {"CACHE_DIR": str(tmp_path / "cache")}}
    assert program(annotated.model, **options)["submodels"] == 1
    reports = [program(annotated.model, extension=extension, **options) for _ in range(2)]

    assert [report["from_cache"] for report in reports] == [False, True]
    assert {report["submodels"] for report in reports} == {annotated.submodels}
