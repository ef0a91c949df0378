"""The command line as a test calls it, on two devices that are always there."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

from command_line import EXTRA_DEVICES, Command, Outcome, two_layers
from ov_autoplace.cli import main


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in this process; XCPU is there beside CPU."""
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", EXTRA_DEVICES)

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capfd.readouterr())

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small IR in a folder that holds nothing else."""
    folder = tmp_path / "models"
    folder.mkdir()
    path = folder / "net.xml"
    ov.save_model(two_layers([1, 3, 16, 16]), path, compress_to_fp16=False)
    return path
