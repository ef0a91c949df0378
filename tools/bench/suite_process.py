"""Pieces of work in processes of their own: one that crashes is recorded, one that is done is not done again.

A piece is a function of a module in this folder, named ``module:function``, that takes keyword arguments
and gives something JSON can hold.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import ROOT

from ov_autoplace._base.files import write_text_atomically

__all__ = ["CACHE_VARIABLE", "Failure", "commit", "in_child"]

CACHE_VARIABLE = "OV_AUTOPLACE_BENCH_CACHE"
"""Folder of finished pieces; :func:`in_child` keeps nothing where it is not set."""

_TRIES = 2  # where a process died by a signal
_SHOWN = 400  # characters of what a process said last
_PROGRESS = "done: "
_KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a piece has no outcome."""

    reason: str


def in_child(
    function: str,
    arguments: Mapping[str, Any],
    variables: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> Any:
    """Call a function in a new process.

    A process that dies by a signal is started once more: plugins crash now and then, and a second death says
    that it is this piece.

    Args:
        function: ``module:function``.
        arguments: Its keyword arguments.
        variables: Of the environment, besides this process's own.
        timeout: Seconds.

    Returns:
        What it gave, or a :class:`Failure`.
    """
    kept = _kept(function, arguments)
    if kept is not None and kept.exists():
        return json.loads(kept.read_text(encoding="utf-8"))
    outcome: Any = Failure("was not tried")
    start = _clocks()
    for attempt in range(_TRIES):
        outcome, is_signal = _call(function, arguments, variables, timeout)
        if not is_signal:
            break
        _tell(f"attempt {attempt + 1} {outcome.reason}", function, arguments, start)
    _tell(outcome.reason if isinstance(outcome, Failure) else "", function, arguments, start)
    if kept is not None and not isinstance(outcome, Failure):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(kept, json.dumps(outcome))
    return outcome


def _call(
    function: str, arguments: Mapping[str, Any], variables: Mapping[str, str] | None, timeout: float | None
) -> tuple[Any, bool]:
    """The outcome, and whether the process died by a signal that nobody here sent."""
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, __file__, function, json.dumps(dict(arguments)), str(answer)]
        environment = {**os.environ, **(variables or {})}
        # What a section prints is in its result; lines that tell of progress are handed on.
        with subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=ROOT,
        ) as process:
            assert process.stderr is not None
            is_late = threading.Event()
            clock = threading.Timer(timeout or threading.TIMEOUT_MAX, _end, (process, is_late))
            clock.daemon = True
            clock.start()
            last: deque[str] = deque(maxlen=20)
            try:
                for line in process.stderr:
                    if line.startswith(_PROGRESS):
                        print(line, end="", file=sys.stderr, flush=True)
                    else:
                        last.append(line)
                process.wait()
            except BaseException:
                process.kill()  # this process is being ended, and the child with it
                raise
            finally:
                clock.cancel()
        if is_late.is_set():
            return Failure(f"took longer than {timeout:.0f} s"), False
        if process.returncode < 0:
            return Failure(f"died by {signal.Signals(-process.returncode).name}"), True
        if process.returncode or not answer.exists():
            said = " ".join("".join(last).split())[-_SHOWN:]
            return Failure(said or f"exit status {process.returncode}"), False
        return json.loads(answer.read_text(encoding="utf-8")), False


def _end(process: subprocess.Popen[str], is_late: threading.Event) -> None:
    is_late.set()
    process.kill()


def commit() -> str:
    """The commit of this checkout, marked where tracked files differ from it; empty outside of a checkout."""
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return shown.stdout.strip()


def _kept(function: str, arguments: Mapping[str, Any]) -> Path | None:
    folder = os.environ.get(CACHE_VARIABLE)
    if not folder:
        return None
    key = json.dumps([function, dict(arguments)], sort_keys=True)
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return Path(folder) / f"{function.replace(':', '.')}-{digest}.json"


def _clocks() -> tuple[float, float]:
    """Seconds of the wall clock, and of the processor in processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def _tell(what: str, function: str, arguments: Mapping[str, Any], start: tuple[float, float]) -> None:
    """Progress, for a run that takes long."""
    wall, processor = (now - then for now, then in zip(_clocks(), start, strict=True))
    named = ", ".join(
        str(value) for key, value in arguments.items() if key not in ("quick", "seed", "target")
    )
    words = [function, f"({named})" if named else "", what, f"{wall:.0f} s ({processor:.0f} of processor)"]
    print(_PROGRESS + " ".join(word for word in words if word), file=sys.stderr, flush=True)


def _main() -> None:
    # Nothing that measures may outlive whoever asked for it, however that one ended.
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_KILL_WITH_PARENT, signal.SIGKILL)
    name, arguments, path = sys.argv[1:]
    module, _, function = name.partition(":")
    outcome = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    write_text_atomically(Path(path), json.dumps(outcome))


if __name__ == "__main__":
    _main()
