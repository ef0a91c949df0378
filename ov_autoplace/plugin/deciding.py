"""The processes that decide behind a program: one that decides, and a small one that keeps it out of the way.

The small one, which is this file run as a program, needs nothing but Python's standard library. It starts the
other one, and

* the other one, and what it starts to measure, run when nobody else wants the processor (``SCHED_IDLE``);
* while the program works, the others are stopped, because measuring would disturb both. They are stopped
  together, so that nobody among them takes another one for hung. Of a program that never rests they get a
  hundredth of the time;
* when the program ends, whichever way, they are ended.

Of the processes that decide on a machine, one decides at a time. What was stopped in the middle of a decision
had less time for it than it knows, so it decides anew; after some tries the decision is kept with the mark
that it was disturbed.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

__all__ = ["decide"]

# Its arguments: the process that watches it, the file of the count of stops, and where modules of Python are.
# The kernel ends it with the process that watches it (PR_SET_PDEATHSIG), unless that has ended before.
_DECIDE = """
import contextlib, ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
with contextlib.suppress(OSError):
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
if os.getppid() == int(sys.argv[1]):
    sys.path[:] = sys.argv[3:]
    from ov_autoplace.plugin.deciding import decide
    decide(int(sys.argv[2]))
"""
_COUNT, _NICE = struct.Struct("q"), 19
_STEP_SECONDS = 0.01
# Cores that a program keeps busy when it works; steps after which it does not; of so many steps one is lent.
_BUSY, _QUIET_STEPS, _LENT = 0.01, 2, 100
_LOCK, _PATIENCE, _TRIES = "deciding.lock", 24 * 3600.0, 3


def watch(paths: list[str]) -> None:
    """Start the process that decides, and keep it out of the way of the parent of this one.

    Args:
        paths: Where modules of Python are.
    """
    program = os.getppid()
    os.nice(_NICE)
    file = os.memfd_create("ov-autoplace stops")
    os.ftruncate(file, _COUNT.size)
    stops = mmap.mmap(file, _COUNT.size)
    arguments = [str(os.getpid()), str(file), *paths]
    decider = subprocess.Popen([sys.executable, "-c", _DECIDE, *arguments], pass_fds=(file,))
    for stream in (0, 1):  # which are the decider's now
        os.close(stream)
    used, quiet, worked = _processor_seconds(program), 0, 0
    while decider.poll() is None:
        time.sleep(_STEP_SECONDS)
        before, used = used, _processor_seconds(program)
        if os.getppid() != program:
            break
        quiet = 0 if used - before > _BUSY * _STEP_SECONDS else quiet + 1
        worked = 0 if quiet >= _QUIET_STEPS else worked + 1
        if quiet in (0, _QUIET_STEPS):
            is_free = quiet > 0 or worked % _LENT == 0
            if not is_free:
                _COUNT.pack_into(stops, 0, _COUNT.unpack_from(stops)[0] + 1)
            _tell(decider.pid, signal.SIGCONT if is_free else signal.SIGSTOP)
    _tell(decider.pid, signal.SIGKILL)


def _processor_seconds(process: int) -> float:
    """What a process has used of all processors; infinite where it is gone."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # see clock_getcpuclockid(3)
    except OSError:
        return float("inf")


def _tell(process: int, number: signal.Signals) -> None:
    """Send a signal to a process and to all that it started."""
    for one in _tree(process):
        with suppress(OSError):
            os.kill(one, number)


def _tree(process: int) -> Iterator[int]:
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                yield from _tree(int(child))


def decide(file: int) -> None:
    """Make the decisions that are asked for, each in a line of JSON, and answer in such lines.

    Args:
        file: Holds how often this process was stopped.
    """
    stops = mmap.mmap(file, _COUNT.size)
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # whatever libraries print
        for line in sys.stdin:
            answer = _answer(json.loads(line), lambda: int(_COUNT.unpack_from(stops)[0]))
            print(json.dumps(answer), file=answers, flush=True)


def _answer(request: Mapping[str, Any], stops: Callable[[], int]) -> dict[str, str]:
    """How the decision is said, or why there is none.

    Args:
        request: What is to be decided.
        stops: How often this process was stopped.
    """
    import openvino as ov

    from ov_autoplace._base.locks import locked
    from ov_autoplace._base.user_cache import user_cache_folder
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.decide.options import PlacerOptions
    from ov_autoplace.plugin.compilation import found
    from ov_autoplace.plugin.decision_cache import DecisionCache, reason_of

    try:
        core = ov.Core()
        for name, path in request["libraries"]:
            core.register_plugin(path, name)
        for device, settings in request["settings"].items():
            core.set_property(device.split(".")[0], settings)
        for path in request["extensions"]:
            core.add_extension(path)
        machine = Machine.of(core, request["devices"], PlacerOptions.from_arguments(request["options"]))
        model = core.read_model(request["model"])
        cache = DecisionCache(Path(request["entry"]), machine.devices)
        with ExitStack() as stack:
            if (folder := user_cache_folder()) is not None:
                stack.enter_context(locked(folder / _LOCK, _PATIENCE))
            stored = cache.load([op.get_friendly_name() for op in model.get_ops()])
            if stored is not None and not stored.disturbed:  # another program's
                return {"reason": stored.reason}
            for _ in range(_TRIES):
                before = stops()
                placement = found(machine, model)
                if stops() == before:
                    break
            else:
                if placement.decision is not None:
                    disturbed = replace(placement.decision, disturbed=True)
                    placement = replace(placement, decision=disturbed)
            cache.store(placement)
    except Exception as cause:  # whatever it is, the program is told
        return {"failure": f"{type(cause).__name__}: {cause}"}
    if not cache.path.exists():
        return {"failure": f"the decision cannot be kept in {cache.path.parent}"}
    return {"reason": reason_of(placement.plan, placement.decision)}


if __name__ == "__main__":
    watch(sys.argv[1:])
