"""Annotated networks of ``transformers`` in a program that has loaded the native library."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

import extension_checks
import transformers_kinds

pytestmark = pytest.mark.torch

# ViLT draws random numbers.
NAMES = [name for name in transformers_kinds.NAMES if name != "vilt"]


@pytest.fixture(scope="module")
def both() -> tuple[ov.Core, ov.Core]:
    return extension_checks.cores()


@pytest.mark.seeds(NAMES, argument="name", cost=4)
def test_mixes_are_followed(both, name: str, tmp_path: Path) -> None:
    outcomes = extension_checks.check_runnable_mix(both, transformers_kinds.build(name), 52_011, tmp_path)

    assert set(outcomes) == {"as intended"}
