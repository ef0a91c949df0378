"""Two processes with a model each: a joint plan beside OpenVINO's default, and beside one thread for each.

A pair is decided by ``ov-autoplace application --processes``, and each program started by ``ov-autoplace
application run``, as users do both; the rivals' programs are started by themselves. All are started and
ready, then those of one setting run together for a while, and the settings take turns. Programs are started
anew several times, because a compiled model is some percent faster or slower for as long as it lives. The
rate of a model counts relative to that of OpenVINO's default with nothing beside it, so that neither counts
more.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from harness.applications import DEFAULT, each
from harness.process import Pieces
from harness.result import Case, Claim, Result, Table, geometric_mean, interval_cell, measured_ratio
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace.devices.widths import Width
from problems.applications import CLOSED
from problems.models import MODELS

_TIMEOUT = 180.0
_STARTS, _ROUNDS, _SECONDS, _REQUESTS = 3, 5, 0.25, 8  # seconds at least, and requests of the slower model
_WANTED = 1.5
_PLAN, _NARROW = "plan", "one thread each"
_PAIRS = (
    "two of 0.1 ms",
    "two classifiers",
    "detector and classifier",
    "encoder and decoder",
    "squeezenet and bert",
    "full resnet and small",
)
_COMMAND = (sys.executable, "-m", "ov_autoplace", "application")
_PROGRAM = (sys.executable, str(Path(__file__).parents[1] / "harness" / "program.py"))


def run(quick: bool, seed: int, applications: tuple[str, ...] = ()) -> Result:
    """A row for each of six pairs; about three minutes.

    Args:
        quick: One of them, with programs that are started once.
        seed: Of deciding.
        applications: Parts of their names; all when empty.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names, starts = (_PAIRS[:1], 1) if quick else (_PAIRS, _STARTS)
    return result_of(
        each(pieces, names, applications, decide_and_run, seed=seed, starts=starts), pieces.remarks
    )


def decide_and_run(name: str, seed: int, starts: int) -> dict[str, Any]:
    """Decide for a pair, and run its programs in turns.

    Args:
        name: Of the pair.
        seed: Of deciding.
        starts: How often the programs are started.

    Returns:
        Of each setting ``rates``, a list for each model, in the same rounds; ``alone`` of the default.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{letter}.xml" for letter in "ab"]
        for file, network in zip(files, CLOSED[name], strict=True):
            ov.save_model(MODELS[network](), file)
        plan = Path(folder) / "plan.json"
        start = time.perf_counter()
        asked = [*map(str, files), "--processes", "-d", "CPU", "--seed", str(seed), "-o", str(plan), "--json"]
        decided = subprocess.run([*_COMMAND, *asked], stdout=subprocess.PIPE, text=True, check=True)
        seconds = time.perf_counter() - start
        rates: dict[str, list[list[float]]] = {who: [[], []] for who in (_PLAN, DEFAULT, _NARROW, "alone")}
        for _ in range(starts):
            with ExitStack() as running:
                programs = {
                    who: [running.enter_context(_Program(command)) for command in commands]
                    for who, commands in _commands(files, plan).items()
                }
                _take_turns(programs, rates)
    return {"chosen": json.loads(decided.stdout)["chosen"], "decision_seconds": seconds, "rates": rates}


def _commands(files: Sequence[Path], plan: Path) -> dict[str, list[list[str]]]:
    """What starts the program of each model, by setting."""

    def started(file: Path, device: str, properties: Mapping[str, str]) -> list[str]:
        return [*_PROGRAM, str(file), device, json.dumps(properties)]

    return {
        _PLAN: [
            [
                *(*_COMMAND, "run", str(plan), file.stem, "--"),
                *started(file, "AUTOPLACE:CPU", {"AUTOPLACE_APPLICATION": f"{plan}#{file.stem}"}),
            ]
            for file in files
        ],
        DEFAULT: [started(file, "CPU", {}) for file in files],
        _NARROW: [started(file, "CPU", Width(1).properties) for file in files],
    }


class _Program:
    """A started program; a context manager, which it does not outlive."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def __enter__(self) -> _Program:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, seconds: float) -> None:
        """Have it run for so long."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """The next line that it prints.

        Raises:
            RuntimeError: It has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"a program ended: {' '.join(self._command)}")
        return line


def _together(programs: Sequence[_Program], seconds: float) -> list[float]:
    """Requests per second of each, all at once."""
    for program in programs:
        program.tell(seconds)
    return [float(program.answer()) for program in programs]


def _take_turns(programs: Mapping[str, Sequence[_Program]], rates: Mapping[str, list[list[float]]]) -> None:
    """Run settings in turns, and add what each did to ``rates``."""
    for program in (program for pair in programs.values() for program in pair):
        program.answer()  # that it is ready
    default = programs[DEFAULT]
    seconds = max(_SECONDS, _REQUESTS / min(_together(default, _SECONDS)))
    for turn in range(_ROUNDS):
        for who in list(programs) if turn % 2 == 0 else reversed(programs):
            for kept, rate in zip(rates[who], _together(programs[who], seconds), strict=True):
                kept.append(rate)
        for kept, program in zip(rates["alone"], default, strict=True):
            kept += _together([program], _SECONDS)


def result_of(found: Mapping[str, Mapping[str, Any]], failures: Sequence[str]) -> Result:
    """What was found of all pairs, and whether it is as wanted."""
    rows, cases, ratios, gains = [], [], [], []
    for name, one in found.items():
        rates = {who: np.array(values) for who, values in one["rates"].items()}
        sums = {who: (values / rates["alone"]).sum(axis=0) for who, values in rates.items()}
        cells = []
        for rival in (DEFAULT, _NARROW):
            gain = paired_ratio(sums[_PLAN], sums[rival])
            each_model = ", ".join(f"{m:.2f}" for m in np.median(rates[_PLAN] / rates[rival], axis=1))
            cells += [interval_cell(gain, 2), each_model]
            cases.append(Case(name, rival, 1 / gain.median, f"plan: {one['chosen']}"))
            if rival == DEFAULT:
                gains.append(gain.median)
                inverse = paired_ratio(sums[rival], sums[_PLAN])
                ratios.append(measured_ratio(f"{name}: default's sum over ours", inverse, len(sums[rival])))
        shares = ", ".join(f"{np.median(sums[who]):.2f}" for who in (_PLAN, DEFAULT, _NARROW))
        rows.append((name, one["chosen"], *cells, shares, f"{one['decision_seconds']:.1f}"))
    columns = (
        "pair",
        "plan",
        *("over the default", "each model"),
        *(f"over {_NARROW}", "each model"),
        "sums: plan, default, one thread",
        "decision s",
    )
    claims = []
    if gains:
        mean = geometric_mean(gains)
        claims.append(Claim("sum of two processes with the default over ours", 1 / _WANTED, 1 / mean))
    table = Table("Sum of the rates of two processes, each over that of the default alone", columns, rows)
    data = {"found": dict(found)}
    return Result(
        "Two processes", (table,), tuple(ratios), tuple(cases), tuple(failures), data, tuple(claims)
    )
