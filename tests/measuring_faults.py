"""Measuring processes that break as they are told and keep a record; a plugin of the tests that measure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ov_autoplace.measure.isolation import process
from ov_autoplace.measure.isolation.child import HANG_VARIABLE

__all__ = ["Compilations", "Inject", "RaceTakes"]

Inject = Callable[[str], None]
RaceTakes = Callable[..., None]
Compilations = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def _told_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every measuring process from now on does as it is told; see ``faults/faulty_worker.py``."""
    monkeypatch.setenv("REAL_WORKER", str(process.WORKER))
    monkeypatch.setattr(process, "WORKER", Path(__file__).parent / "faults" / "faulty_worker.py")


@pytest.fixture
def inject(_told_worker: None, monkeypatch: pytest.MonkeyPatch) -> Inject:
    """Has every measuring process from now on break as told."""
    monkeypatch.setenv(HANG_VARIABLE, "2")
    return lambda faults: monkeypatch.setenv("FAULTS", faults)


@pytest.fixture
def race_takes(_told_worker: None, monkeypatch: pytest.MonkeyPatch) -> RaceTakes:
    """Tells what candidates take in every race from now on, in seconds; nothing is run."""
    return lambda *seconds: monkeypatch.setenv("RACE", json.dumps([list(own) for own in seconds]))


@pytest.fixture
def compilations(_told_worker: None, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> Compilations:
    """What measuring processes have compiled so far: device, affinities, bytes of constants, process."""
    record = tmp_path_factory.mktemp("compiled") / "record"
    record.touch()
    monkeypatch.setenv("COMPILED", str(record))
    return lambda: [json.loads(line) for line in record.read_text().splitlines()]
