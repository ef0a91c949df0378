"""AUTOPLACE in programs of other libraries that import this package; run by ``make test-integrations``.

Each program is a process of its own that knows the library it is about, ``import ov_autoplace``, and nothing
else of ours. Models have random weights, and the second device is that of ``AUTOPLACE_EXTRA_DEVICES``. No
test is skipped: a package that is missing fails those that use it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "native"))

from processes import Program, run_python

PROGRAMS = Path(__file__).resolve().parent / "programs"
# On one thread, OpenVINO crashes while it tokenises some small graphs.
EXTRA_DEVICES = "YCPU=CPU,INFERENCE_NUM_THREADS=1,SNIPPETS_MODE=DISABLE"
F32 = {"INFERENCE_PRECISION_HINT": "f32"}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Runs one of ``programs/`` with a device and properties, and returns what it reports."""
    monkeypatch.chdir(tmp_path)  # some libraries leave files where they are

    def run(name: str, *arguments: object, device: str, **properties: object) -> dict[str, Any]:
        given = [*arguments, device, json.dumps(F32 | properties)]
        return run_python(PROGRAMS / name, *given, AUTOPLACE_EXTRA_DEVICES=EXTRA_DEVICES)

    return run


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``classifier`` and ``causal_lm`` as ``optimum-cli export openvino`` would write them."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "causal_lm").mkdir()
    run_python("make_language_model.py", folder / "causal_lm")
    run_python(PROGRAMS / "make_classifier.py", folder / "classifier")
    return folder
