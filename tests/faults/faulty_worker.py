"""A measuring process that does as it is told: the real one, with a profiler that breaks and keeps a record.

``FAULTS`` holds entries ``PHASE:PATTERN:FAULT@CALLS``, separated by spaces. The phase is ``create``,
``compile``, ``run``, ``nodes`` or ``race``; the pattern is compared with the device and its configuration;
the fault is a signal's name, ``abort``, ``spin``, ``memory``, ``exit``, ``error`` for an exception, or
``steady`` for a run of which all inferences take as long as the median one. It happens at every call that
matches, or, of these, at those that are numbered behind the ``@``: ``@1,3`` or, from the second on, ``@2+``.
A race breaks while the candidate whose device the pattern matches runs.

The file ``COMPILED`` gets a line of JSON for each model that is compiled. Where ``RACE`` holds lists of
seconds, one per candidate, these are the result of every race.
"""

from __future__ import annotations

import _thread
import ctypes
import fnmatch
import importlib.util
import json
import os
import re
import resource
import signal
import statistics
import sys
import time
from array import array
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

_REAL = os.environ["REAL_WORKER"]
_SPEC = importlib.util.spec_from_file_location("worker", _REAL)
assert _SPEC is not None
assert _SPEC.loader is not None
real = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(real)

ENTRY = re.compile(r"(\w+):(.+):(\w+)(?:@([\d,]+\+?))?")  # a device may hold a colon
FAULTS = [ENTRY.fullmatch(entry).groups() for entry in os.environ.get("FAULTS", "").split()]
calls = [0] * len(FAULTS)


def break_(fault: str) -> None:
    """What really happens when a plugin goes wrong."""
    if fault == "error":
        raise RuntimeError("Exception from src/plugin.cpp:1:\nout of resources")
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


def is_due(numbers: str | None, call: int) -> bool:
    if numbers is None or numbers.endswith("+"):
        return call >= int((numbers or "0").rstrip("+"))
    return str(call) in numbers.split(",")


def fault_of(phase: str, what: str) -> bool:
    """Break where that was asked for; whether the times shall be steady."""
    is_steady = False
    for i, (where, pattern, fault, numbers) in enumerate(FAULTS):
        if where != phase or not fnmatch.fnmatch(what, pattern):
            continue
        calls[i] += 1
        if not is_due(numbers, calls[i]):
            continue
        if fault == "steady":
            is_steady = True
        else:
            break_(fault)
    return is_steady


def record(recipe: dict[str, Any]) -> None:
    """Tell what is compiled: in which process, where, and the bytes of each constant, from the very file."""
    layers = ElementTree.parse(recipe["xml_path"]).getroot().find("layers")
    constants = {x.get("name"): int(x.find("data").get("size")) for x in layers if x.get("type") == "Const"}
    entry = {"pid": os.getpid(), "constants": constants}
    entry |= {name: recipe[name] for name in ("device", "properties", "affinities")}
    with open(os.environ["COMPILED"], "a") as file:
        file.write(json.dumps(entry) + "\n")


class Executable:
    """A compiled model that breaks when it is run."""

    def __init__(self, executable: Any, device: str) -> None:
        self.executable = executable
        self.device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self.executable, name)

    def run_bytes(self, **how: Any) -> bytes:
        is_steady = fault_of("run", self.device)
        seconds = array("d", self.executable.run_bytes(**how))
        return array("d", [statistics.median(seconds)] * len(seconds) if is_steady else seconds).tobytes()

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
        if "COMPILED" in os.environ:
            record(recipe)
        return Executable(self.profiler.compile(**recipe), recipe["device"] + counting)

    def race(self, executables: list[Executable], current: memoryview, **options: Any) -> Any:
        if "RACE" in os.environ:
            return told_race(json.loads(os.environ["RACE"]), len(executables))
        numbers = {i: e.device for i, e in enumerate(executables)}

        def watch() -> None:
            while True:
                fault_of("race", numbers.get(current[0], ""))
                time.sleep(1e-4)

        if any(phase == "race" for phase, *_ in FAULTS):
            _thread.start_new_thread(watch, ())
        return self.profiler.race([e.executable for e in executables], current=current, **options)


def told_race(seconds: list[list[float]], candidates: int) -> Any:
    """The result of a race that nobody has run."""
    assert len(seconds) == candidates
    parts = [array("d", own).tobytes() for own in seconds]
    entries = [SimpleNamespace(sample_bytes=part, dropped="", dropped_seconds=0.0) for part in parts]
    return SimpleNamespace(entries=entries, best=0, rounds=len(seconds[0]), seconds=0.0, stopped="budget")


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
