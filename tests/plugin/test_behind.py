"""Decisions that are made behind a program's back: what it has at once, what comes later, and who ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from ov_autoplace.decide import outlook
from ov_autoplace.errors import OptionError
from ov_autoplace.plugin import behind
from ov_autoplace.plugin.compilation import DECISION

PINS = {"first": "XCPU", "second": "CPU"}
SOON = {"AUTOPLACE_DECIDE": "BEHIND", "AUTOPLACE_TIME_BUDGET_MS": 200}
BEHIND = {**SOON, "AUTOPLACE_PINS": PINS}
DEVICES = {"AUTOPLACE_EXTRA_DEVICES": "XCPU=CPU"}
PATIENCE = 300.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cache folder of a user; nothing is being decided before or after a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("AUTOPLACE_CACHE")
    yield tmp_path / "ov-autoplace"
    assert ov_autoplace.wait(PATIENCE)


def model(name: str = "second") -> ov.Model:
    x = ops.parameter([1, 64], np.float32, name="x")
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    first = ops.matmul(x, ops.constant(weights, name="w"), False, False, name="first")
    second = ops.tanh(first, name=name)
    result = ops.result(second, name="y")
    return ov.Model([result], [x], "small")


def compile_behind(core: ov.Core, **config: object) -> ov.CompiledModel:
    return core.compile_model(model(), "AUTOPLACE:XCPU,CPU", BEHIND | config)


def decision(compiled: ov.CompiledModel) -> str:
    return str(compiled.get_property(DECISION))


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def watching(program: int) -> list[int]:
    """The processes that a program started to have decisions made."""
    found = [pid for pid in children(program) if not is_gone(pid)]
    return [pid for pid in found if b"deciding.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def watching_and_deciding(program: int, others: Collection[int] = ()) -> tuple[int, int]:
    """Both processes that decide for a program; ``others`` may still be ending."""
    eventually(lambda: bool(set(watching(program)) - set(others)))
    (watcher,) = set(watching(program)) - set(others)
    eventually(lambda: bool(children(watcher)))
    (decider,) = children(watcher)
    return watcher, decider


def eventually(happens: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.02)


def state(pid: int) -> str:
    """As ``ps`` says it; a process that is gone is a zombie that somebody waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except OSError:
        return "Z"


def is_gone(pid: int) -> bool:
    return state(pid) == "Z"


def test_the_estimate_runs_at_once_and_the_next_compile_gets_the_decision(unequal_pair, home):
    x = np.random.default_rng(1).normal(size=(1, 64)).astype(np.float32)
    first = compile_behind(unequal_pair)
    assert "by an estimate" in decision(first)
    assert set(first.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}  # pins hold at once
    assert ov_autoplace.wait(PATIENCE)
    assert "the next compile gets" in decision(first)
    assert len([*home.glob("decisions/*.json")]) == 1
    now = unequal_pair.compile_model(model(), "AUTOPLACE:XCPU,CPU", BEHIND | {"AUTOPLACE_DECIDE": "NOW"})
    assert decision(now) in decision(first)
    np.testing.assert_allclose(now([x])[0], first([x])[0], rtol=1e-5)


def test_an_answer_of_a_cpu_alone_is_a_width_or_the_default(home, two_cores):
    compiled = ov.Core().compile_model(model(), "AUTOPLACE:CPU", SOON)
    assert decision(compiled).startswith("CPU")
    assert ov_autoplace.wait(PATIENCE)
    again = ov.Core().compile_model(model(), "AUTOPLACE:CPU", SOON)
    assert "by an estimate" not in decision(again)


def test_a_model_that_has_nothing_to_gain_is_compiled_and_nobody_is_asked(home, monkeypatch, two_cores):
    monkeypatch.setattr(behind, "decide_behind", lambda *_: pytest.fail("there is nothing to decide"))
    monkeypatch.setattr(outlook, "settled", lambda *_: None)
    config = SOON | {"AUTOPLACE_TIME_BUDGET_MS": 0}
    for _ in range(2):
        compiled = ov.Core().compile_model(model(), "AUTOPLACE:CPU", config)
        assert decision(compiled) == "CPU: there is nothing to choose"
    assert len([*home.glob("decisions/*.json")]) == 1


def test_decisions_that_nobody_keeps_are_not_made_behind(unequal_pair, monkeypatch):
    with pytest.raises(OptionError, match="AUTOPLACE_DECIDE is BEHIND"):
        compile_behind(unequal_pair, AUTOPLACE_CACHE="NO")
    compiled = compile_behind(unequal_pair, AUTOPLACE_CACHE="NO", AUTOPLACE_MODE="ZERO_SHOT")
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}  # nothing is to be measured


def test_one_decision_is_made_for_all_who_ask_for_it(unequal_pair, home):
    compiled = [compile_behind(unequal_pair) for _ in range(4)]
    assert len([path for path in behind._state.jobs if home in path.parents]) == 1
    assert ov_autoplace.wait(PATIENCE)
    assert len({decision(one) for one in compiled}) == 1


@pytest.mark.parametrize("whose", ["watching", "deciding"])
def test_a_process_that_is_killed_costs_the_decision_and_nothing_else(unequal_pair, home, whose):
    others = watching(os.getpid())
    compiled = compile_behind(unequal_pair)
    watcher, decider = watching_and_deciding(os.getpid(), others)
    os.kill({"watching": watcher, "deciding": decider}[whose], signal.SIGKILL)
    assert ov_autoplace.wait(PATIENCE)
    assert "no decision can be made behind" in decision(compiled)
    eventually(lambda: is_gone(decider))
    again = compile_behind(unequal_pair)
    assert ov_autoplace.wait(PATIENCE)
    assert "the next compile gets" in decision(again)


def test_what_cannot_be_kept_is_said(unequal_pair, home):
    home.write_text("no folder")
    compiled = compile_behind(unequal_pair)
    assert ov_autoplace.wait(PATIENCE)
    assert "cannot be kept" in decision(compiled)


def test_what_is_decided_for_a_process_is_no_business_of_its_forks(unequal_pair, home):
    compiled = compile_behind(unequal_pair)
    pid = os.fork()
    if not pid:
        os._exit(0 if ov_autoplace.wait(0) and not behind._state.jobs else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ov_autoplace.wait(PATIENCE)
    assert "the next compile gets" in decision(compiled)


PROGRAM = f"""
import sys, time
import openvino as ov, ov_autoplace
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_behind import SOON, model
core = ov.Core()
compiled = core.compile_model(model(), "AUTOPLACE:XCPU,CPU", SOON)
print("compiled", flush=True)
sys.stdin.readline()
while True:
    pass
"""


WAITING = f"""
import sys
import openvino as ov, ov_autoplace
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_behind import SOON, model
compiled = ov.Core().compile_model(model(), "AUTOPLACE:XCPU,CPU", SOON)
assert ov_autoplace.wait({PATIENCE})
print(compiled.get_property("AUTOPLACE_DECISION").partition("the next compile gets: ")[2])
"""


def test_two_programs_at_once_keep_one_decision(home):
    """The second one decides anew only where the first one was disturbed."""
    how = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | DEVICES}
    programs = [subprocess.Popen([sys.executable, "-c", WAITING], **how) for _ in range(2)]
    answers = [program.communicate(timeout=2 * PATIENCE)[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0]
    (entry,) = home.glob("decisions/*.json")
    assert json.loads(entry.read_text())["decision"] in [answer.strip() for answer in answers]


@pytest.fixture
def program(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A program for which a decision is to be made; it works once it gets a line."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | DEVICES,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "compiled\n"
        yield process
        process.kill()


def test_nobody_stays_behind_a_program_that_is_killed(program):
    both = watching_and_deciding(program.pid)
    program.kill()
    eventually(lambda: all(map(is_gone, both)))


def test_nothing_is_measured_while_the_program_works(program):
    _, decider = watching_and_deciding(program.pid)
    assert program.stdin is not None
    program.stdin.write("work\n")
    program.stdin.flush()
    eventually(lambda: state(decider) == "T")
    os.kill(program.pid, signal.SIGSTOP)  # which uses no processor
    eventually(lambda: state(decider) != "T")
    os.kill(program.pid, signal.SIGCONT)
