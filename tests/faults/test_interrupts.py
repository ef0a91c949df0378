"""Ctrl-C ends a command with status 130 and leaves nothing behind: no file, no process, no thread."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from interrupts import HIDE, commands, interrupt

from ov_autoplace.cli import main


@pytest.mark.parametrize("name", ["annotate", "bench", "explain", "calibrate", "devices"])
def test_ctrl_c_at_a_random_moment_leaves_nothing(name: str, small_ir: Path, tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    after = random.Random(seed).uniform(0.0, 1.0 if name == "devices" else 2.0)
    left = interrupt(commands(small_ir, tmp_path / "out")[name], after)
    wanted = 130 if left.interrupted and not left.was_over else 0
    assert not left.faults((wanted,)), (seed, after, left.output[-2000:])


def test_ctrl_c_twice_leaves_nothing(small_ir: Path, tmp_path: Path) -> None:
    left = interrupt(commands(small_ir, tmp_path / "out")["annotate"], HIDE, presses=3)
    assert left.interrupted
    assert not left.faults(), left.output[-2000:]


def test_an_interrupt_that_an_extension_module_turned_into_an_error_is_one(
    fail_with: Callable[[BaseException], None], capfd: pytest.CaptureFixture[str]
) -> None:
    error = ImportError("initialization failed")
    error.__cause__ = KeyboardInterrupt()
    fail_with(error)
    assert main(["fail"]) == 130
    assert "initialization failed" not in capfd.readouterr().err
