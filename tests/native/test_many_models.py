"""Mixes of all networks of the zoo, and many models that are none of ours."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

import extension_checks
import zoo


@pytest.fixture(scope="module")
def both() -> tuple[ov.Core, ov.Core]:
    return extension_checks.cores()


@pytest.mark.parametrize("name", zoo.NAMES)
def test_mixes_are_followed(both, name: str, tmp_path: Path) -> None:
    outcomes = extension_checks.check_runnable_mix(both, zoo.build(name), 52_011, tmp_path)
    assert set(outcomes) == {"as intended"}


def test_models_without_annotation_are_read_and_run_alike(both, tmp_path: Path) -> None:
    faults = {
        name: fault
        for name, path in extension_checks.foreign_models(60, 52_012, tmp_path)
        if (fault := extension_checks.check_foreign(both, path, 52_012))
    }
    assert not faults
