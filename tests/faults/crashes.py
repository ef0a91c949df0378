"""Breaks the measuring process many times, in every way and phase, and looks at what its caller sees.

``python tests/faults/crashes.py --count 1000``. Whatever the caller does not survive ends this program.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.isolation import process
from ov_autoplace.measure.isolation.child import HANG_VARIABLE
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.session import ProfilingSession

PHASES = ("compile", "run", "nodes", "race")
FAULTS = {
    "SIGSEGV": "died of SIGSEGV",
    "abort": "died of SIGABRT",
    "SIGBUS": "died of SIGBUS",
    "SIGKILL": "was killed by SIGKILL",
    "memory": "was killed by SIGKILL",
    "SIGSTOP": "hung",
    "spin": "hung",
}
WEIGHTS = (5, 5, 2, 5, 3, 1, 1)  # hangs take the longest


def small_model() -> ov.Model:
    """One matrix multiplication."""
    data = opset.parameter([2, 16], np.float32, name="data")
    node = opset.matmul(data, opset.constant(np.eye(16, dtype=np.float32)), False, False)
    return ov.Model([opset.result(node)], [data], "small")


def break_once(session: ProfilingSession, phase: str, fault: str) -> str:
    """Measure two devices, of which XCPU breaks; what is wrong with what the caller sees, or nothing."""
    assert isinstance(session.profiler, IsolatedProfiler)
    os.environ["FAULTS"] = f"{phase}:XCPU*:{fault}"
    session.profiler.restart()
    session.forget()
    said = ""
    if phase == "race":
        both = [session.compile_device(device) for device in ("XCPU", "CPU")]
        entries = session.race(both, 0.05, min_rounds=3).entries
        said = entries[0].dropped
        if not len(entries[1].samples):
            return "the other candidate was not raced"
    else:
        try:
            executable = session.compile_device("XCPU", count_nodes=phase == "nodes")
            executable.run(2)
            executable.node_times()
        except (ProfilingError, RuntimeError) as cause:
            said = str(cause)
        if not (session.compile_device("CPU").run(2) > 0).all():
            return "the other device cannot be run"
    return "" if FAULTS[fault] in said else f"what broke is not named: {said!r}"


def main() -> int:
    """Break it many times, print how often in which way, and fail if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args()
    os.environ["REAL_WORKER"] = str(process.WORKER)
    os.environ[HANG_VARIABLE] = "3"
    process.WORKER = Path(__file__).with_name("faulty_worker.py")
    core = ov.Core()
    plugin = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"
    core.register_plugin(str(plugin), "XCPU")
    random_ = random.Random(options.seed)
    counts: Counter[tuple[str, str]] = Counter()
    wrong = 0
    end = time.monotonic() + options.seconds
    with ProfilingSession(core, small_model(), ["XCPU", "CPU"]) as session:
        while sum(counts.values()) < options.count and time.monotonic() < end:
            phase = PHASES[sum(counts.values()) % len(PHASES)]
            known = [f for f in FAULTS if phase != "race" or f not in ("memory", "spin")]
            weights = [weight for f, weight in zip(FAULTS, WEIGHTS, strict=True) if f in known]
            fault = random_.choices(known, weights)[0]
            said = break_once(session, phase, fault)
            counts[phase, fault] += 1
            if said:
                wrong += 1
                print(f"{phase} {fault}: {said}", flush=True)
            if not sum(counts.values()) % 50:
                print(f"{sum(counts.values())} faults", flush=True)
    for (phase, fault), count in sorted(counts.items()):
        print(f"{phase:8} {fault:8} {count}")
    print(f"{sum(counts.values())} faults, the caller is alive, {wrong} times something was wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
