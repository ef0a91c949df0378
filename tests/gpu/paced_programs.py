"""Running functions in processes whose virtual GPU is paced: a process cannot change its mind about that."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.process import Failure, in_child

__all__ = ["SHIM", "in_process"]

SHIM = pytest.mark.skipif(
    "VIRTUAL_GPU_DRIVER" not in os.environ, reason="only the virtual GPU can be paced; run `make test-gpu`"
)
"""Mark of tests that need the virtual GPU and no other."""

_HERE = Path(__file__).resolve().parent
_PATH = os.pathsep.join(map(str, (_HERE, _HERE.parent, _HERE.parents[1] / "tools")))


def in_process(function: Callable[..., Any], paced: str, **arguments: Any) -> Any:
    """What a function of a module beside this one gives in a process with ``VIRTUAL_GPU_PACED=paced``."""
    outcome = in_child(function, arguments, {"VIRTUAL_GPU_PACED": paced, "PYTHONPATH": _PATH}, timeout=600)
    assert not isinstance(outcome, Failure), outcome.reason
    return outcome
