"""What our own work costs: the profiler's on every run, the executor, a second compilation, the import.

*Profiler*: three ways to run the same model of one op are interleaved: the C++ profiler's timed loop, a
Python loop over ``InferRequest.infer()``, and a bare C++ loop with no clock inside, which is the lower bound
that both are compared with.

*Executor*: one small tower on one thread, as it is and as the only submodel of a schedule; the difference is
the op's. Two such towers on two lanes: what they take longer than one is the hand-over to the other lane and
back, half of which is one hand-over.

*Second compilation*: AUTOPLACE and HETERO with the same affinities compile the same file with their own warm
``CACHE_DIR``, alternating. HETERO's side does what a user without this package does: read the model, set the
affinities from a file, compile.

*Import*: each round starts two fresh interpreters in random order, one that imports openvino alone and one
that imports both, and takes the difference of the times that they report themselves.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as opset

import zoo
from harness.environment import core_of
from harness.process import Pieces
from harness.race import session_of
from harness.result import Case, Claim, Ratio, Result, Table, interval_cell, measured_ratio
from networks.builder import NetworkBuilder
from ov_autoplace._base.statistics import median_interval, paired_ratio
from ov_autoplace._core import Profiler
from ov_autoplace.decide.divisions import lanes_for
from ov_autoplace.decide.machine import Machine
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.partition import completed
from ov_autoplace.plan.plan import LanePlan, WholePlan, read_plan
from ov_autoplace.plan.schedulable import Role, ops_of

_SHARE, _COMPILATION, _IMPORT_MS = 0.5, 1.1, 50.0  # wanted at most
_OP_US, _HAND_OVER_US = 8.0, 3.0
_LAYERS, _WIDTH = 2, 16  # of a tower: next to nothing to compute
_ROUNDS, _RUNS = {True: 50, False: 200}, 500
_COMPILATIONS = {True: 5, False: 15}
_IMPORTS = {True: 5, False: 20}
_CODE = "import time; t = time.perf_counter(); import {imported}; print(time.perf_counter() - t)"


def run(
    quick: bool,
    seed: int,
    models: tuple[str, ...] = ("inception_v3", "resnet50", "bert_base", "mobilenet_v2"),
    size: str = "full",
) -> Result:
    """All four.

    Args:
        quick: A quarter of the rounds, small models.
        seed: Of orders.
        models: Of the zoo, to be compiled.
        size: Theirs, ``small`` or ``full``.
    """
    pieces = Pieces()
    size = "small" if quick else size
    what: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "profiler": (profiler_seconds, {"rounds": _ROUNDS[quick], "runs": _RUNS}),
        "executor": (executor_seconds, {"rounds": _ROUNDS[quick], "seed": seed}),
        "import": (import_seconds, {"rounds": _IMPORTS[quick], "seed": seed}),
    }
    for name in models:
        arguments = {"name": name, "size": size, "rounds": _COMPILATIONS[quick]}
        what[f"second compilation, {name}"] = (second_compilations, arguments)
    outcomes = {title: pieces(title, function, **given) for title, (function, given) in what.items()}
    found = {
        title: {way: np.array(seconds) for way, seconds in ways.items()}
        for title, ways in outcomes.items()
        if ways is not None
    }
    rows = [row for title, ways in found.items() for row in _rows(title, ways)]
    columns = ("what", "way", "us", "added to the first way, us", "rounds")
    ratios: list[Ratio] = []
    cases: list[Case] = []
    for title, ways in found.items():
        if title.startswith("second"):
            ratio = paired_ratio(ways["AUTOPLACE"], ways["HETERO"])
            ratios.append(measured_ratio(f"{title} over HETERO's", ratio, len(ways["HETERO"])))
    if (ways := found.get("profiler")) is not None:
        over = paired_ratio(ways["profiler"], ways["bare"])
        ratios.append(measured_ratio("C++ profiler over the bare loop", over, len(ways["bare"])))
        against = paired_ratio(ways["profiler"], ways["python"])
        title = "one inference of one op with its clock"
        cases.append(Case(title, "Python infer loop", against.median, interval_cell(against)))
    return Result(
        title="Overhead of profiling, compiling and importing",
        tables=(Table("Medians and 95 % intervals", columns, rows),),
        ratios=tuple(ratios),
        cases=tuple(cases),
        remarks=tuple(pieces.remarks),
        claims=tuple(_claims(found, ratios, is_full=size == "full")),
        data={title: {way: s.tolist() for way, s in ways.items()} for title, ways in found.items()},
    )


def _rows(title: str, ways: dict[str, np.ndarray]) -> list[tuple[Any, ...]]:
    first = next(iter(ways.values()))
    return [
        (
            title,
            way,
            _microseconds(seconds),
            "-" if seconds is first else _microseconds(seconds - first),
            len(seconds),
        )
        for way, seconds in ways.items()
    ]


def _claims(found: dict[str, dict[str, np.ndarray]], ratios: Sequence[Ratio], is_full: bool) -> list[Claim]:
    """What the documents say, beside what was reached."""
    claims = []
    if (ways := found.get("profiler")) is not None:
        added = [float(np.median(ways[way] - ways["bare"])) for way in ("profiler", "python")]
        claims.append(Claim("the profiler's share of what a Python loop adds", _SHARE, added[0] / added[1]))
    if (ways := found.get("executor")) is not None:
        extra = float(np.median(ways["one lane"] - ways["plain"]))
        claims.append(Claim("the op over a plain model, us", _OP_US, 1e6 * extra))
        handed = float(np.median(ways["two lanes"] - ways["one lane"])) / 2
        claims.append(Claim("a hand-over between lanes, us", _HAND_OVER_US, 1e6 * handed))
    if is_full:  # small models show what every compilation costs
        claims += [Claim(r.name, _COMPILATION, r.value) for r in ratios if r.name.startswith("second")]
    if (ways := found.get("import")) is not None:
        alone, both = ways.values()
        claims.append(Claim("importing ov_autoplace, ms", _IMPORT_MS, 1e3 * float(np.median(both - alone))))
    return claims


def _microseconds(seconds: np.ndarray) -> str:
    median, low, high = (1e6 * value for value in median_interval(seconds))
    return f"{median:.3f} [{low:.3f}, {high:.3f}]"


def profiler_seconds(rounds: int, runs: int) -> dict[str, list[float]]:
    """Seconds of one inference in each round, by the way in which it was run."""
    data = opset.parameter([1, 16], np.float32, name="data")
    model = ov.Model([opset.result(opset.relu(data), name="out")], [data], "one_op")
    core = ov.Core()
    request = core.compile_model(model, "CPU").create_infer_request()
    with tempfile.TemporaryDirectory() as folder:
        executable = profiler_for(core, ["CPU"]).compile(str(save_ir(model, Path(folder))), "CPU")
    seconds: dict[str, list[float]] = {"bare": [], "profiler": [], "python": []}
    for _ in range(rounds):
        seconds["bare"].append(float(executable.run(1, warmup=1, inferences=runs)[0]))
        start = time.perf_counter()
        executable.run(runs, warmup=0)
        seconds["profiler"].append((time.perf_counter() - start) / runs)
        request.infer()
        start = time.perf_counter()
        for _ in range(runs):
            request.infer()
        seconds["python"].append((time.perf_counter() - start) / runs)
    return seconds


def executor_seconds(rounds: int, seed: int) -> dict[str, list[float]]:
    """Seconds of one tower on one thread, of the same on the executor, and of two on two lanes."""
    machine = Machine(ov.Core(), ("CPU",))
    executables = []
    with ExitStack() as resources:
        sessions = [
            resources.enter_context(session_of(machine.core, _towers(sides), ("CPU",), seed))
            for sides in (1, 2)
        ]
        (width,) = {lanes.width for lanes in lanes_for(machine, "CPU", sessions[0].model) if lanes.count == 2}
        executables.append(WholePlan("CPU", width).compile(sessions[0]))
        for count, session in enumerate(sessions, 1):
            known = ops_of(session.model)
            runs = [n for n, role in zip(known.names, known.roles, strict=True) if role is Role.RUNS]
            submodel_of = {name: int(name.split("/")[0]) for name in runs}
            lanes = (Lane.of("CPU", width.properties),) * count
            plan = LanePlan(lanes, submodel_of, tuple(range(count)), tuple(range(count)))
            executables.append(plan.compile(session))
        # In samples of many inferences, so that the other lane is awake.
        how = {"min_rounds": rounds, "max_rounds": rounds, "min_sample_seconds": 5e-3}
        entries = Profiler.race(executables, 60.0, seed=seed, **how).entries
        return dict(
            zip(("plain", "one lane", "two lanes"), (e.samples.tolist() for e in entries), strict=True)
        )


def _towers(sides: int) -> ov.Model:
    """Fully connected layers side by side; what is in tower i is named ``i/...``."""
    b = NetworkBuilder(0, np.float32)
    ends = {
        f"out{i}": b.mlp(b.input(f"x{i}", [1, _WIDTH]), [_WIDTH] * _LAYERS, f"{i}/") for i in range(sides)
    }
    return b.model("towers", ends)


def second_compilations(name: str, size: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of compilations with a warm cache, HETERO's and ours."""
    model = zoo.build(name, size)
    kinds = ("MatMul", "Convolution")
    heavy = [op.get_friendly_name() for op in model.get_ordered_ops() if op.get_type_name() in kinds]
    # A pin makes the placement a mixed one, so that both sides compile the same two devices.
    pins = {heavy[0]: "XCPU", heavy[-1]: "CPU"}
    core = core_of("alias")
    with tempfile.TemporaryDirectory() as folder:
        path, affinities = Path(folder, "model.xml"), Path(folder, "affinity.json")
        caches = {side: Path(folder, side) for side in ("ours", "theirs")}
        ov.save_model(model, path, compress_to_fp16=False)

        def ours() -> None:
            config = {"CACHE_DIR": str(caches["ours"]), "AUTOPLACE_PINS": pins}
            core.compile_model(path, "AUTOPLACE:XCPU,CPU", config)

        def theirs() -> None:
            plain = core.read_model(path)
            device_of = json.loads(affinities.read_text())
            for op in plain.get_ops():
                op.get_rt_info()["affinity"] = device_of[op.get_friendly_name()]
            core.compile_model(plain, "HETERO:XCPU,CPU", {"CACHE_DIR": str(caches["theirs"])})

        ours()
        stored = json.loads(next(caches["ours"].glob("autoplace-*.json")).read_text())
        plan = read_plan(stored["plan"])
        affinities.write_text(json.dumps(completed(model, plan.device_of)), encoding="utf-8")
        theirs()
        seconds: dict[str, list[float]] = {"HETERO": [], "AUTOPLACE": []}
        sides = [("AUTOPLACE", ours), ("HETERO", theirs)]
        for _ in range(rounds):
            for side, compile_it in sides:
                start = time.perf_counter()
                compile_it()
                seconds[side].append(time.perf_counter() - start)
            sides.reverse()
    return seconds


def import_seconds(rounds: int, seed: int) -> dict[str, list[float]]:
    """Seconds of importing openvino, and both."""
    order = random.Random(seed)
    found: dict[str, list[float]] = {"openvino": [], "openvino, ov_autoplace": []}
    for i in range(rounds + 1):
        for imported in order.sample(list(found), k=2):
            command = [sys.executable, "-c", _CODE.format(imported=imported)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            if i:  # the first round fills the file cache
                found[imported].append(float(said))
    return found
