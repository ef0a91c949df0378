"""A measuring process that breaks on demand: the real one, with a profiler that does what it is told.

``FAULTS`` holds entries ``PHASE:PATTERN:FAULT``, separated by spaces. The phase is ``create``, ``compile``,
``run``, ``nodes`` or ``race``; the pattern is compared with the device and its configuration; the fault is a
signal's name, ``abort``, ``spin``, ``memory`` or ``exit``. A race breaks while the candidate whose number is
the pattern runs.
"""

from __future__ import annotations

import _thread
import ctypes
import fnmatch
import importlib.util
import os
import re
import resource
import signal
import sys
import time
from typing import Any

_REAL = os.environ["REAL_WORKER"]
_SPEC = importlib.util.spec_from_file_location("worker", _REAL)
assert _SPEC is not None
assert _SPEC.loader is not None
real = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(real)

ENTRY = re.compile(r"(\w+):(.+):(\w+)")  # a device may hold a colon
FAULTS = [ENTRY.fullmatch(entry).groups() for entry in os.environ.get("FAULTS", "").split()]


def break_(fault: str) -> None:
    """What really happens when a plugin goes wrong."""
    if fault == "SIGSEGV":
        ctypes.string_at(0)
    elif fault == "abort":
        os.abort()
    elif fault == "spin":
        while True:
            pass
    elif fault == "memory":
        # The first allocation that does not fit ends the process, as the kernel would.
        limit = 256 << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        kept = []
        try:
            while True:
                kept.append(bytearray(16 << 20))
        except MemoryError:
            os.kill(os.getpid(), signal.SIGKILL)
    elif fault == "exit":
        os._exit(3)
    else:
        os.kill(os.getpid(), getattr(signal, fault))
        time.sleep(3600)


def fault_of(phase: str, what: str) -> None:
    for where, pattern, fault in FAULTS:
        if where == phase and fnmatch.fnmatch(what, pattern):
            break_(fault)


class Executable:
    """A compiled model that breaks when it is run."""

    def __init__(self, executable: Any, device: str) -> None:
        self.executable = executable
        self.device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self.executable, name)

    def run_bytes(self, **how: Any) -> bytes:
        fault_of("run", self.device)
        return self.executable.run_bytes(**how)

    def node_times(self) -> Any:
        fault_of("nodes", self.device)
        return self.executable.node_times()


class Profiler:
    """A profiler that breaks when it is made, compiles or races."""

    def __init__(self, real_profiler: Any) -> None:
        fault_of("create", "")
        self.profiler = real_profiler

    def compile(self, **recipe: Any) -> Executable:
        counting = " PERF_COUNT" if recipe["properties"].get("PERF_COUNT") else ""
        fault_of("compile", recipe["device"] + counting)
        return Executable(self.profiler.compile(**recipe), recipe["device"] + counting)

    def race(self, executables: list[Executable], current: memoryview, **options: Any) -> Any:
        numbers = {i: e.device for i, e in enumerate(executables)}

        def watch() -> None:
            while True:
                fault_of("race", numbers.get(current[0], ""))
                time.sleep(1e-4)

        if any(phase == "race" for phase, _, _ in FAULTS):
            _thread.start_new_thread(watch, ())
        return self.profiler.race([e.executable for e in executables], current=current, **options)


class Core:
    """``_core`` with that profiler."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def Profiler(self, *arguments: Any) -> Profiler:  # noqa: N802  the name that it stands for
        return Profiler(self.core.Profiler(*arguments))


class Worker(real.Worker):
    """The real worker with the faulty core."""

    def __init__(self, core: Any, link: int, board: memoryview) -> None:
        super().__init__(Core(core), link, board)


if __name__ == "__main__":
    real.main(sys.argv[1:], Worker)
