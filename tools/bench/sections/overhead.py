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
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as opset

import ov_autoplace
import zoo
from harness.copies import race_copies
from harness.environment import core_of
from harness.process import Pieces
from harness.result import Case, Ratio, Result, Table, bar, interval_cell, measured_ratio, milliseconds
from ov_autoplace._base.statistics import Interval, median_interval, paired_ratio
from ov_autoplace._core import Profiler
from ov_autoplace.decide.divisions import lanes_for
from ov_autoplace.decide.machine import Machine
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.lane import Lane
from ov_autoplace.placement.partition import completed
from ov_autoplace.placement.plan import LanePlan, WholePlan
from ov_autoplace.placement.schedulable import Role, ops_of

__all__ = ["import_seconds", "profiler_seconds", "run", "second_compilations"]

_SHARE, _COMPILATION, _IMPORT_MS = 0.5, 1.1, 50.0  # wanted at most
_OP_US, _HAND_OVER_US = 8.0, 3.0
_TOWER = (2, 16, 1)  # layers, width and rows: next to nothing to compute
_ROUNDS, _RUNS = {True: 50, False: 200}, 500
_COMPILATIONS = {True: 5, False: 15}
_IMPORTS = {True: 5, False: 20}
_CODE = "import time; t = time.perf_counter(); import openvino{extra}; print(time.perf_counter() - t)"


def run(
    quick: bool,
    seed: int,
    models: tuple[str, ...] = ("inception_v3", "resnet50", "bert_base", "mobilenet_v2"),
    size: str = "full",
) -> Result:
    """All four.

    Args:
        quick: A quarter of the rounds, small models.
        seed: Of the order of imports.
        models: Of the zoo, to be compiled.
        size: Theirs, ``small`` or ``full``.
    """
    pieces = Pieces()
    tables: list[Table] = []
    ratios: list[Ratio] = []
    cases: list[Case] = []
    remarks: list[str] = []
    if (ways := pieces("profiler", profiler_seconds, rounds=_ROUNDS[quick], runs=_RUNS)) is not None:
        table, ratio, case, remark = _profiler({way: np.array(s) for way, s in ways.items()})
        tables, ratios, cases, remarks = [table], [ratio], case, [remark]
    if (ran := pieces("executor", executor_seconds, seed=seed, seconds=2.0 if quick else 6.0)) is not None:
        plain, one, two = (np.array(ran[who]) for who in ("plain", "one lane", "two lanes"))
        parts = (("the op over a plain model", one - plain), ("a hand-over between lanes", (two - one) / 2))
        rows = [(what, *_microseconds(extra)) for what, extra in parts]
        tables.append(Table("The executor, microseconds", ("what", "median", "interval"), rows))
        for (what, extra), most in zip(parts, (_OP_US, _HAND_OVER_US), strict=True):
            remarks.append(bar(f"{what}, us", most, 1e6 * float(np.median(extra))))
    compiled = {}
    for name in models:
        arguments = {"name": name, "size": "small" if quick else size, "rounds": _COMPILATIONS[quick]}
        if (found := pieces(name, second_compilations, **arguments)) is not None:
            compiled[name] = found
    rows = []
    for name, found in compiled.items():
        ours, theirs = np.array(found["ours"]), np.array(found["theirs"])
        ratio = paired_ratio(ours, theirs)
        ratios.append(measured_ratio(f"{name}: second compilation over HETERO's", ratio, len(ours)))
        rows.append(
            (name, found["ops"], milliseconds(ours), milliseconds(theirs), interval_cell(ratio), len(ours))
        )
        if not quick and size == "full":  # small models show what every compilation costs
            remarks.append(bar(f"{name}: second compilation over HETERO's", _COMPILATION, ratio.median))
    if rows:
        columns = ("model", "ops", "AUTOPLACE ms", "HETERO ms", "ratio", "rounds")
        tables.append(Table("Second compile_model with a warm CACHE_DIR", columns, rows))
    if (seconds := pieces("import", import_seconds, rounds=_IMPORTS[quick], seed=seed)) is not None:
        alone, both = np.array(seconds)
        rows = [
            ("openvino", milliseconds(alone), len(alone)),
            ("openvino + ov_autoplace", milliseconds(both), len(both)),
            ("difference", _signed(median_interval(both - alone)), len(both)),
        ]
        tables.append(Table("Import", ("import", "ms", "rounds"), rows))
        remarks.append(bar("importing ov_autoplace, ms", _IMPORT_MS, 1e3 * float(np.median(both - alone))))
    return Result(
        title="Overhead of profiling, compiling and importing",
        tables=tuple(tables),
        ratios=tuple(ratios),
        cases=tuple(cases),
        remarks=(*remarks, *pieces.remarks),
        data={"profiler": ways, "executor": ran, "compilations": compiled, "imports": seconds},
    )


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


def executor_seconds(seed: int, seconds: float) -> dict[str, list[float]]:
    """Seconds of one tower on one thread, of the same on the executor, and of two on two lanes.

    Args:
        seed: Of the order.
        seconds: How long to measure.
    """
    machine = Machine(ov.Core(), ("CPU",))
    with ExitStack() as resources:
        sessions = [
            resources.enter_context(ProfilingSession(machine.core, _towers(sides), ("CPU",), isolation=False))
            for sides in (1, 2)
        ]
        (width,) = {lanes.width for lanes in lanes_for(machine, "CPU", sessions[0].model) if lanes.count == 2}
        lane = Lane.of("CPU", width.properties)
        executables = {"plain": [WholePlan("CPU", width).compile(sessions[0])]}
        for session, name in zip(sessions, ("one lane", "two lanes"), strict=True):
            known = ops_of(session.model)
            runs = [n for n, role in zip(known.names, known.roles, strict=True) if role is Role.RUNS]
            submodel_of = {name: int(name.split("/")[0]) for name in runs}
            count = 1 + max(submodel_of.values())
            plan = LanePlan((lane,) * count, submodel_of, tuple(range(count)), tuple(range(count)))
            executables[name] = [plan.compile(session)]
        # In samples of many inferences, so that the other lane is awake.
        race = partial(Profiler.race, min_sample_seconds=5e-3)
        raced = race_copies(executables, seconds, seed, failures := {}, race)
    if failures:
        raise AutoplaceError("; ".join(failures.values()))
    return {who: samples.tolist() for who, samples in raced.samples.items()}


def _towers(sides: int) -> ov.Model:
    """Fully connected layers side by side; what is in tower i is named ``i/...``."""
    layers, width, rows = _TOWER
    random = np.random.default_rng(0)
    inputs, results = [], []
    for side in range(sides):
        x = data = opset.parameter([rows, width], np.float32, name=f"x{side}")
        inputs.append(data)
        for layer in range(layers):
            weights = opset.constant(random.normal(0, width**-0.5, (width, width)).astype(np.float32))
            x = opset.relu(
                opset.matmul(x, weights, False, False, name=f"{side}/dense{layer}"),
                name=f"{side}/relu{layer}",
            )
        results.append(opset.result(x, name=f"out{side}"))
    return ov.Model(results, inputs, f"towers{sides}")


def _profiler(seconds: dict[str, np.ndarray]) -> tuple[Table, Ratio, list[Case], str]:
    bare, profiled, python = (seconds[way] for way in ("bare", "profiler", "python"))
    rounds = len(bare)
    titles = {"bare": "bare C++ loop", "profiler": "C++ profiler", "python": "Python infer loop"}
    rows = [
        (title, *_microseconds(seconds[way]), *_microseconds(seconds[way] - bare))
        for way, title in titles.items()
    ]
    columns = ("way", "per run", "interval", "added to the bare loop", "interval")
    title = f"One inference of one op, microseconds: medians over {rounds} interleaved rounds, 95 % intervals"
    against = paired_ratio(profiled, python)
    what = "one inference of one op with its clock"
    case = Case(what, "Python infer loop", against.median, interval_cell(against))
    share = float(np.median(profiled - bare) / np.median(python - bare))
    return (
        Table(title, columns, rows),
        measured_ratio("C++ profiler over the bare loop", paired_ratio(profiled, bare), rounds),
        [] if against.low <= 1 <= against.high else [case],
        bar("the profiler's share of what a Python loop adds", _SHARE, share),
    )


def _microseconds(seconds: np.ndarray) -> tuple[str, str]:
    """Median and interval."""
    median, low, high = (1e6 * value for value in median_interval(seconds))
    return f"{median:.3f}", f"{low:.3f} to {high:.3f}"


def _signed(seconds: Interval) -> str:
    median, low, high = (1e3 * value for value in seconds)
    return f"{median:.1f} [{low:.1f}, {high:.1f}]"


def second_compilations(name: str, size: str, rounds: int) -> dict[str, object]:
    """Seconds of compilations with a warm cache, ours and HETERO's, and the number of ops."""
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
        placement = ov_autoplace.Placement.from_dict(completed(model, stored["placement"]))
        placement.save(affinities)
        theirs()
        seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
        sides = [("ours", ours), ("theirs", theirs)]
        for _ in range(rounds):
            for side, compile_it in sides:
                start = time.perf_counter()
                compile_it()
                seconds[side].append(time.perf_counter() - start)
            sides.reverse()
    return {"ops": len(placement.to_dict()), **seconds}


def import_seconds(rounds: int, seed: int) -> list[list[float]]:
    """Seconds of importing openvino, and both, ``[2, rounds]``."""
    order = random.Random(seed)
    found: dict[str, list[float]] = {"": [], ", ov_autoplace": []}
    for i in range(rounds + 1):
        for extra in order.sample(list(found), k=2):
            command = [sys.executable, "-c", _CODE.format(extra=extra)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            if i:  # the first round fills the file cache
                found[extra].append(float(said))
    return list(found.values())
