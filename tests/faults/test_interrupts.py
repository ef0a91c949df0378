"""Ctrl-C ends a command with status 130 and leaves nothing behind: no file, no process, no thread."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from interrupts import HIDE, commands, interrupt

from ov_autoplace.cli import main


@pytest.mark.parametrize("name", ["annotate", "bench", "explain", "calibrate", "devices"])
def test_ctrl_c_at_a_random_moment_leaves_nothing(name: str, small_ir: Path, tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    after = random.Random(seed).uniform(0.0, 1.0 if name == "devices" else 4.0)
    left = interrupt(commands(small_ir, tmp_path / "out")[name], after)
    wanted = 130 if left.interrupted and not left.was_over else 0
    assert not left.faults((wanted,)), (seed, after, left.output[-2000:])


def test_ctrl_c_twice_leaves_nothing(small_ir: Path, tmp_path: Path) -> None:
    left = interrupt(commands(small_ir, tmp_path / "out")["annotate"], HIDE, presses=3)
    assert left.interrupted
    assert not left.faults(), left.output[-2000:]


# Signals are raised in processes of their own: where plugins have run, a process may not survive one.
_COMPILES_FOR_LONG = """
import signal, sys, threading, time
from ov_autoplace.policy import runner

signal.signal(signal.SIGINT, signal.default_int_handler)
started = threading.Event()

def compile_slowly(*_):
    started.set()
    time.sleep(1.0)
    return ()

def press():
    started.wait()
    for _ in range(int(sys.argv[1])):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.1)

runner.compile_network = compile_slowly
policy = runner.PolicyRunner("base")
keyboard = threading.Thread(target=press)
try:
    with policy.compiled_ahead():
        keyboard.start()
    print("not interrupted")
except KeyboardInterrupt:
    print(f"compiled to the end: {policy.is_compiled}")
keyboard.join()
"""


@pytest.mark.parametrize("presses", [1, 3])
def test_no_number_of_interrupts_leaves_the_thread_that_compiles_behind(presses: int) -> None:
    command = [sys.executable, "-c", _COMPILES_FOR_LONG, str(presses)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "compiled to the end: True\n", done.stderr


def test_an_interrupt_that_an_extension_module_turned_into_an_error_is_one(
    fail_with: Callable[[BaseException], None], capfd: pytest.CaptureFixture[str]
) -> None:
    error = ImportError("initialization failed")
    error.__cause__ = KeyboardInterrupt()
    fail_with(error)
    assert main(["fail"]) == 130
    assert "initialization failed" not in capfd.readouterr().err
