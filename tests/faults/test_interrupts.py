"""Ctrl-C ends a command with status 130 and leaves nothing behind: no file, no process, no thread."""

from __future__ import annotations

import random
import signal
import threading
import time
from pathlib import Path

import pytest
from interrupts import HIDE, commands, interrupt

from ov_autoplace.cli import main
from ov_autoplace.policy import runner


@pytest.mark.parametrize("name", ["annotate", "bench", "explain", "calibrate", "devices"])
def test_ctrl_c_at_a_random_moment_leaves_nothing(name: str, small_ir: Path, tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    after = random.Random(seed).uniform(0.0, 1.0 if name == "devices" else 4.0)
    left = interrupt(commands(small_ir, tmp_path / "out")[name], after)
    assert not left.faults((130,) if left.interrupted else (0,)), (seed, after, left.output[-2000:])


def test_ctrl_c_twice_leaves_nothing(small_ir: Path, tmp_path: Path) -> None:
    left = interrupt(commands(small_ir, tmp_path / "out")["annotate"], HIDE, presses=3)
    assert left.interrupted
    assert not left.faults(), left.output[-2000:]


@pytest.fixture
def slow_policy(monkeypatch: pytest.MonkeyPatch) -> runner.PolicyRunner:
    """A policy whose compilation takes two seconds, whatever was compiled before."""
    monkeypatch.setattr(runner, "compile_network", lambda *_: time.sleep(2.0) or ())
    monkeypatch.setattr(runner, "_compiled", type(runner._compiled)())
    return runner.PolicyRunner("base")


@pytest.mark.parametrize("presses", [1, 3])
def test_no_number_of_interrupts_leaves_the_thread_that_compiles_behind(
    slow_policy: runner.PolicyRunner, presses: int
) -> None:
    def press() -> None:
        for _ in range(presses):
            time.sleep(0.1)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    keyboard = threading.Thread(target=press)

    def wait() -> None:
        with slow_policy.compiled_ahead():
            keyboard.start()

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert slow_policy.card.digest in runner._compiled  # it was compiled to the end
    keyboard.join()


def test_an_interrupt_that_an_extension_module_turned_into_an_error_is_one(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    monkeypatch.setattr("ov_autoplace.devices.names.core_with_extra_devices", interrupted)
    assert main(["devices"]) == 130
    assert "initialization failed" not in capfd.readouterr().err
