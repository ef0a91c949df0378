"""Functions of units that do what tests want of them, on the nodes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from ov_autoplace.errors import OptionError, ProfilingError


def answer(request: Any, data: Any) -> Any:
    return request


def interval(request: Any, data: Any) -> Any:
    """From when to when it ran."""
    begin = time.monotonic()
    time.sleep(float(request))
    return [begin, time.monotonic()]


def once_only(request: Any, data: Any) -> Any:
    """Does what is asked for where nobody did so before, else says that it is there."""
    done = Path(request["mark"])
    if done.exists():
        return "second"
    done.write_text(str(os.getpid()))
    if request["fault"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if request["fault"] == "fail":
        raise ProfilingError("the device does not answer")
    if request["fault"] == "refuse":
        raise OptionError("no such thing")
    time.sleep(3600)
    return "first"
