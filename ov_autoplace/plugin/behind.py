"""Decisions that are made behind the caller's back, as ``AUTOPLACE_DECIDE=BEHIND`` wants it.

The program has an answer at once, and goes on. A process of its own (``plugin/deciding.py``) makes the
decisions that the program asked for, one after the other, and keeps them where the next compile finds them.
It ends when nothing is left to decide.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from concurrent import futures
from contextlib import ExitStack, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeAlias

import openvino as ov

from ov_autoplace._base.files import temporary_folder
from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.extension import extensions_of
from ov_autoplace.devices.names import device_settings, libraries_of, property_text
from ov_autoplace.errors import AutoplaceError, ProfilingError
from ov_autoplace.measure.isolation.process import is_python
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.plugin.decision_cache import DecisionCache

__all__ = ["Job", "decide_behind", "wait"]

_log = logging.getLogger("ov_autoplace")

_PROGRAM = Path(__file__).with_name("deciding.py")
_NOT_ASKED = ("progress", "cache", "decide", "application", "calls", "shapes", "properties")


Job: TypeAlias = "futures.Future[str]"
"""A decision that is being made: the sentence that says it, or as an error why there will be none."""


class _Decider:
    """A process that decides, and the jobs that it was given and has not ended.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self) -> None:
        self._jobs: deque[tuple[bytes, Job, ExitStack]] = deque()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), *map(os.path.abspath, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        threading.Thread(target=self._listen, daemon=True, name="ov-autoplace decides behind").start()

    def give(self, request: Mapping[str, Any], job: Job, resources: ExitStack) -> None:
        """Have a decision made after those that were asked for before; the module's lock is held.

        Raises:
            OSError: The process is gone.
        """
        self._jobs.append((json.dumps(request, default=str).encode() + b"\n", job, resources))
        if len(self._jobs) == 1:
            self._ask()

    def _ask(self) -> None:
        """Send the first request; a process that is stopped takes no more than one."""
        assert self._process.stdin is not None
        self._process.stdin.write(self._jobs[0][0])
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with _state.lock:
                _, job, resources = self._jobs.popleft()
                with suppress(OSError):  # it is gone, as the end of this loop finds out
                    self._ask() if self._jobs else self._end()
            resources.close()
            _finish(job, **json.loads(line))
        code = self._process.wait()
        with _state.lock:
            self._end()
            left = list(self._jobs)
        for _, job, resources in left:
            resources.close()
            _finish(job, failure=f"the process that decides ended with exit code {code}")

    def _end(self) -> None:
        """Take no more jobs, upon which the process ends."""
        assert self._process.stdin is not None
        if _state.decider is self:
            _state.decider = None
        with suppress(OSError):
            self._process.stdin.close()


class _State:
    """Of this process: whoever decides for it, and the last job for each entry of a cache."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.decider: _Decider | None = None
        self.jobs: dict[Path, Job] = {}


_state = _State()


def _leave_to_parent() -> None:
    """In a fork, whose parent has the process that decides."""
    global _state
    for job in _state.jobs.values():
        if not job.done():
            _finish(job, failure="the process that this one is a fork of asked for it")
    _state = _State()


os.register_at_fork(after_in_child=_leave_to_parent)


def wait(seconds: float | None = None) -> bool:
    """Wait for the decisions that compiles with ``AUTOPLACE_DECIDE=BEHIND`` left to be made.

    Args:
        seconds: At most so long; ``None`` = until the last of them.

    Returns:
        Whether all of them are made, or cannot be.
    """
    return not futures.wait(list(_state.jobs.values()), seconds).not_done


def decide_behind(machine: Machine, model: ov.Model, cache: DecisionCache) -> Job:
    """Have a decision made by another process, and kept.

    Args:
        machine: The devices and the options.
        model: With its shape computations folded; it is written to a file for that process.
        cache: Where the decision goes.
    """
    job: Job = futures.Future()
    with _state.lock:
        known = _state.jobs.get(cache.path)
        if known is not None and not known.done():
            return known
        _state.jobs[cache.path] = job
    resources = ExitStack()
    try:
        if not is_python(sys.executable):
            raise OSError(f"{sys.executable!r} is not a Python interpreter")
        path = save_ir(model, resources.enter_context(temporary_folder()))
        request = _request(machine, path, cache)
        with _state.lock:
            _state.decider = _state.decider or _Decider()
            _state.decider.give(request, job, resources)
    except (AutoplaceError, OSError) as cause:
        resources.close()
        _log.info("no decision is made behind: %s", cause)
        _finish(job, failure=str(cause))
    return job


def _finish(job: Job, reason: str = "", failure: str = "") -> None:
    """Note how it ended: with a decision, or without one."""
    if failure:
        job.set_exception(ProfilingError(failure))
    else:
        job.set_result(reason)


def _request(machine: Machine, path: Path, cache: DecisionCache) -> dict[str, Any]:
    """What the other process needs to be told."""
    core, devices, options = machine.core, machine.devices, machine.options
    asked = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in _NOT_ASKED}
    asked["shapes"] = [asdict(call) for call in options.calls] or dict(options.shapes)
    asked["properties"] = _as_text(options.properties)
    return {
        "model": str(path),
        "devices": devices,
        "libraries": libraries_of(core, devices),
        "settings": device_settings(core, devices),
        "extensions": extensions_of(core),
        "options": {name: value for name, value in asked.items() if value is not None},
        "entry": str(cache.path),
    }


def _as_text(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of OpenVINO, those of single devices among them, as text."""
    return {
        key: _as_text(value) if isinstance(value, Mapping) else property_text(value)
        for key, value in properties.items()
    }
