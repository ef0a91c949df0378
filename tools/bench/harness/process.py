"""Pieces of work in processes of their own: one that crashes is recorded, and the others go on.

A piece is a function of a module that takes keyword arguments and gives something JSON can hold.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Started as a script: what is imported from here on are the benchmarks and not this folder's files.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from harness import ROOT
from ov_autoplace._base.files import write_text_atomically

_TRIES = 2  # where a process died by a signal
_WRITTEN = ("benchmarks.json", "docs/measured.md", "docs/_static/gains.svg")
_SHOWN = 400  # characters of why a piece failed
_KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a piece has no outcome."""

    reason: str


def in_child(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    variables: Mapping[str, str] | None = None,
    timeout: float | None = None,
    tries: int = _TRIES,
) -> Any:
    """Call a function in a new process.

    A process that dies by a signal is started once more: plugins crash now and then, and a second death says
    that it is this piece.

    Args:
        function: Of a module that can be imported.
        arguments: Its keyword arguments.
        variables: Of the environment, besides this process's own.
        timeout: Seconds.
        tries: Of a process that dies by a signal.

    Returns:
        What it gave, or a :class:`Failure`.
    """
    name = f"{function.__module__}:{function.__name__}"
    outcome: Any = Failure("was not tried")
    start = time.perf_counter()
    for attempt in range(tries):
        outcome, is_signal = _call(name, arguments, variables, timeout)
        if not is_signal:
            break
        _tell(f"attempt {attempt + 1} {outcome.reason}", name, arguments, start)
    _tell(outcome.reason if isinstance(outcome, Failure) else "", name, arguments, start)
    return outcome


class Pieces:
    """The pieces of one section: what fails becomes a remark, and nothing is started after the end.

    Args:
        timeout: Seconds of one piece.
        whole: Seconds of all of them; a piece gets less than its own where less is left.
        call: Runs a piece.

    Attributes:
        remarks: Why pieces are missing.
    """

    def __init__(
        self,
        timeout: float | None = None,
        whole: float = float("inf"),
        call: Callable[..., Any] = in_child,
    ) -> None:
        self.remarks: list[str] = []
        self._timeout, self._call = timeout, call
        self._end = time.perf_counter() + whole

    def __call__(self, title: str, function: Callable[..., Any], **arguments: Any) -> Any:
        """What the piece gave; ``None`` and a remark that begins with its title where it failed."""
        left = self._end - time.perf_counter()
        limits = [limit for limit in (self._timeout, left) if limit is not None and limit < float("inf")]
        outcome: Any = Failure("no time was left for it")
        if left > 0:
            outcome = self._call(function, arguments, timeout=min(limits, default=None))
        if isinstance(outcome, Failure):
            self.remarks.append(f"{title}: not measured: {outcome.reason}")
            return None
        return outcome


def shared_folder() -> Path:
    """Files that pieces read besides their arguments."""
    folder = ROOT / "build" / "bench" / "files"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def seconds_since_start() -> float:
    """The age of this process: starting Python and loading its modules included."""
    ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def _call(
    name: str, arguments: Mapping[str, Any], variables: Mapping[str, str] | None, timeout: float | None
) -> tuple[Any, bool]:
    """The outcome, and whether the process died by a signal that nobody here sent."""
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        answer = Path(folder) / "answer.json"
        try:
            # What a section prints is in its result.
            process = subprocess.run(
                [sys.executable, __file__, name, str(answer)],
                env={**os.environ, **(variables or {})},
                input=json.dumps(dict(arguments)),
                stdout=subprocess.DEVNULL,
                text=True,
                cwd=ROOT,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Failure(f"took longer than {timeout:.0f} s"), False
        if process.returncode < 0:
            return Failure(f"died by {signal.Signals(-process.returncode).name}"), True
        if not answer.exists():
            return Failure(f"exit status {process.returncode}"), False
        told = json.loads(answer.read_text(encoding="utf-8"))
        return (Failure(told["failure"]) if "failure" in told else told["outcome"]), False


def _git(*arguments: str) -> str:
    told = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout.strip()


def commit() -> str:
    """The commit of this checkout, marked where tracked files differ from it; empty outside of a checkout.

    What the suite itself writes is no difference.
    """
    others = (".", *(f":(exclude){name}" for name in _WRITTEN))
    try:
        shown = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *others)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{shown}-dirty" if changed else shown


def _tell(what: str, name: str, arguments: Mapping[str, Any], start: float) -> None:
    """Progress, for a run that takes long."""
    unsaid = ("quick", "seed", "command")
    named = ", ".join(str(value)[:_SHOWN] for key, value in arguments.items() if value and key not in unsaid)
    words = [name, f"({named})" if named else "", what, f"{time.perf_counter() - start:.0f} s"]
    print("done:", *filter(None, words), file=sys.stderr, flush=True)


def _main() -> None:
    # Nothing that measures may outlive whoever asked for it, however that one ended.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_KILL_WITH_PARENT, signal.SIGKILL)
    name, path = sys.argv[1:]
    arguments = json.loads(sys.stdin.read())
    module, _, function = name.partition(":")
    try:
        told = {"outcome": getattr(importlib.import_module(module), function)(**arguments)}
    except Exception as cause:
        traceback.print_exc()
        told = {"failure": " ".join(f"{type(cause).__name__}: {cause}".split())[:_SHOWN]}
    write_text_atomically(Path(path), json.dumps(told))


if __name__ == "__main__":
    _main()
