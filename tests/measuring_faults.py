"""A measuring process that breaks as it is told; a plugin of the tests of isolation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ov_autoplace.measure.isolation import process
from ov_autoplace.measure.isolation.child import HANG_VARIABLE


@pytest.fixture
def inject(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has every measuring process from now on break as told; see ``faults/faulty_worker.py``."""
    real = process.WORKER
    monkeypatch.setenv("REAL_WORKER", str(real))
    monkeypatch.setenv(HANG_VARIABLE, "2")

    def set_faults(faults: str) -> None:
        monkeypatch.setenv("FAULTS", faults)
        monkeypatch.setattr(process, "WORKER", Path(__file__).parent / "faults" / "faulty_worker.py")

    return set_faults
