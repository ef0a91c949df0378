"""Runs scenarios in forked processes in which one write fails; started by ``injection.py`` with the library.

Everything is imported once; each request then costs a fork. A request is a line of JSON, and so is its
answer.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

for folder in (Path(__file__).parents[1], Path(__file__).parents[2] / "tools"):
    sys.path.insert(0, str(folder))

_LONGEST_SECONDS, _POLL_SECONDS = 120, 0.02
# What the commands import when they need it.
_IMPORTS = (
    "ov_autoplace.cli.app",
    "ov_autoplace.cli.annotate",
    "ov_autoplace.plugin.annotated_files",
    "ov_autoplace.plugin.decision_cache",
    "ov_autoplace.solvers",
    "scipy.optimize",
)
# What scenarios that need torch import: it takes seconds, and the rest of them a fraction of one.
_SLOW_IMPORTS = (
    "torch._dynamo",  # 800 modules that an optimizer imports when it is made
    "ov_autoplace.policy.networks.network",
    "ov_autoplace.policy.networks.checkpoint",
    "ov_autoplace.training.finetuning.files",
    "ov_autoplace.cli.pretrain",
    "ov_autoplace.training.costs",
)


def serve(given: Path, root: Path, log: Path) -> None:
    """Answer requests until the input ends."""
    from faults.scenarios import SCENARIOS, prepare

    for name in (*_IMPORTS, *(_SLOW_IMPORTS if find_spec("torch") else ())):
        import_module(name)

    shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
    shim.write_faults_arm.argtypes = [ctypes.c_long, ctypes.c_char]
    shim.write_faults_count.restype = ctypes.c_long
    # A process of its own: OpenVINO's threads would not survive the forks.
    child = os.fork()
    if not child:
        prepare(given)
        os._exit(0)
    os.waitpid(child, 0)
    gc.freeze()  # what is there is left where it is, or each process would copy it all when it ends
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _become_command(log)
            shim.write_faults_arm(request["at"], request["kind"].encode())
            sys.exit(SCENARIOS[request["scenario"]](given, root))
        status = _wait(child)
        answer = {
            "status": status,
            "changes": shim.write_faults_count(),
            "output": log.read_text(errors="replace"),
        }
        print(json.dumps(answer), flush=True)


def _wait(child: int, longest_seconds: float = _LONGEST_SECONDS) -> int:
    """Wait for a process, and kill it when it hangs: its exit code, or minus a signal.

    Polls are counted and not seconds, which pass too while the whole machine is paused.
    """
    for _ in range(round(longest_seconds / _POLL_SECONDS)):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_POLL_SECONDS)
    os.kill(child, signal.SIGABRT)  # not SIGKILL, which is what an injected kill looks like
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become_command(log: Path) -> None:
    """Send what is printed to a file."""
    null, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for target, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, target)
    os.close(null), os.close(output)
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    serve(*(Path(argument) for argument in sys.argv[1:]))
