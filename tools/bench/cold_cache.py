"""Processes that compile one model on AUTOPLACE at once with one cold ``CACHE_DIR``: all live, one decides.

Plain OpenVINO 2026.4.1 loses some of the processes to SIGBUS: they map a blob that another one is writing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from common import machine_line, unequal_pair

import zoo

_SEARCHED = "searched"


def _compile(folder: str) -> None:
    """What each process does: says whether it made the decision itself."""
    import ov_autoplace
    from ov_autoplace.decide.placer import Placer

    searched = []
    place = Placer.place
    Placer.place = lambda self, model: (searched.append(1), place(self, model))[1]
    model = zoo.build("two_tower")
    first, *_, last = [
        op.get_friendly_name() for op in model.get_ordered_ops() if op.get_type_name() == "MatMul"
    ]
    config = {
        "CACHE_DIR": folder,
        "AUTOPLACE_POLICY": ov_autoplace.policy.card.NO_POLICY,
        "AUTOPLACE_PINS": {first: "XCPU", last: "CPU"},
    }
    compiled = unequal_pair().compile_model(model, "AUTOPLACE:XCPU,CPU", config)
    compiled.create_infer_request().infer()
    print(_SEARCHED if searched else "used", end="")


def _round(processes: int) -> tuple[int, int, Counter[int]]:
    """Decisions and entries that one round made, and how its processes ended."""
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        command = [sys.executable, __file__, "--compile", folder]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        answers = [process.communicate()[0] for process in running]
        entries = len(list(Path(folder).glob("autoplace-*.json")))
        return answers.count(_SEARCHED), entries, Counter(process.returncode for process in running)


def main() -> int:
    """Print a line for each round; 1 when a process died or a second decision was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--compile", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compile:
        _compile(arguments.compile)
        return 0
    print(machine_line())
    failed = 0
    for number in range(arguments.rounds):
        decisions, entries, codes = _round(arguments.processes)
        died = sum(count for code, count in codes.items() if code)
        print(f"round {number + 1}: {died} died, {decisions} decision{'s' * (decisions != 1)} {dict(codes)}")
        failed += died > 0 or decisions != 1 or entries != 1
    well = f"{arguments.rounds - failed} of {arguments.rounds}"
    print(f"{well} rounds of {arguments.processes} processes went well")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
