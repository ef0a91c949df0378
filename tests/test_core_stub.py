"""The committed type stub of the C++ core says what the built extension says."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

STUB = Path(__file__).resolve().parent.parent / "ov_autoplace" / "_core.pyi"


def test_committed_stub_is_the_generated_one(tmp_path: Path) -> None:
    pytest.importorskip("nanobind", reason="nanobind, which writes the stub, is a build requirement only")
    generated = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-m", "ov_autoplace._core", "-o", str(generated)]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True)
    # The committed one is formatted, so the contents are compared, docstrings included.
    committed, built = (ast.dump(ast.parse(path.read_text()), indent=1) for path in (STUB, generated))
    assert committed == built, "the stub is stale: run `make stub`"
