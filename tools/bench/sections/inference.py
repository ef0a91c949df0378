"""How long the policy takes and how much memory, each time in a fresh process that cannot import torch.

Inference is everything between a cost table and scores: features, the network.
Graphs: workloads of the zoo and random ones on a random machine with two devices, and dnn-partitioning graphs
with one accelerator. Besides, ``ov-autoplace annotate`` of a large model, the start of the interpreter
included.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import zoo
from harness import GRAPHS
from harness.process import Pieces, shared_folder
from harness.result import Result, Table, bar
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.solvers import Problem
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.targets import RandomTargets, random_task
from ov_autoplace.training.workload import Workload
from problems.tables import coarse_graph
from workloads import network_workload

__all__ = ["annotate", "infer", "run"]

_PHASES = ("features", "network")
_SEED = 5
_REPEATS, _REPEATS_LARGE, _LARGE = 15, 3, 2_000
_SMALL_GROUPS, _LARGE_GROUPS = 783, 50_000
_PUBLISHED = ("resnet50", "gnmt")
_GNMT = "GNMT, 8 layers"
_TARGET = "core-ultra-7-155h"
_SMALL_MS, _LARGE_SECONDS, _LARGE_GIGABYTES, _ANNOTATE_SECONDS = 10.0, 1.5, 2.0, 8.0  # wanted at most
# Whatever needs one of these fails.
_TORCH = ("torch", "dgl", "safetensors")

Runs = Sequence[Mapping[str, Any]]


def run(quick: bool, seed: int, checkpoint: str = "", ops: int = _LARGE_GROUPS) -> Result:
    """Inference on small and large graphs, and ``annotate`` of a large one.

    Args:
        quick: Two processes of each instead of five.
        seed: Not used: graphs and machines have their own.
        checkpoint: Folder of the policy; the one that is shipped when empty.
        ops: Of the large graphs.
    """
    processes = 2 if quick else 5
    pieces = Pieces()
    gnmt = zoo.build_scaled("gnmt", ops, _SEED, layers=8)
    small = {"BERT": network_workload("bert", _SMALL_GROUPS, _SEED)}
    for shape in ("chain_skips", "layered"):
        title = f"random {shape.replace('_', ' with ')}"
        small[title] = random_workload(f"random_{shape}", _SMALL_GROUPS, _SEED)
    large = {
        _GNMT: Workload.of(coarse_graph(gnmt.clone()), "gnmt", "gnmt"),
        "random layered, an op per group": random_workload("random_layered", ops, _SEED),
    }
    measured: dict[str, list[dict[str, Any]]] = {}
    folder = shared_folder()
    files = {f"dnn-partitioning {graph}": GRAPHS / f"{graph}_inference.json" for graph in _PUBLISHED}
    for i, (title, workload) in enumerate((small | large).items()):
        files[title] = folder / f"inference-{i}.npz"
        workload.save(files[title])
    model = folder / "inference.xml"
    ov.save_model(gnmt, model, compress_to_fp16=False)
    for title, path in files.items():
        for i in range(processes):
            found = pieces(title, infer, path=str(path), checkpoint=checkpoint, process=i)
            if found is not None:
                measured.setdefault(title, []).append(found)
    annotated = []
    for i in range(processes):
        found = pieces("annotate", annotate, model=str(model), checkpoint=checkpoint, process=i)
        if found is not None:
            annotated.append(found)
    remarks = list(pieces.remarks)
    if measured.keys() >= small.keys():
        slowest = max(_median(measured[title], "warm_seconds") for title in small)
        what = f"inference on {_SMALL_GROUPS} groups, slowest kind of graph, ms"
        remarks.append(bar(what, _SMALL_MS, 1e3 * slowest))
    if runs := measured.get(_GNMT):
        peak = max(run["peak_bytes"] for run in runs)
        remarks.append(bar("first inference on GNMT-8, s", _LARGE_SECONDS, _median(runs, "first_seconds")))
        remarks.append(bar("peak memory of that process, GB", _LARGE_GIGABYTES, peak / 1e9))
    tables = [_inference_table(measured, processes)]
    if annotated:
        tables.append(_annotate_table(annotated, len(gnmt.get_ops())))
        wall = _median(annotated, "wall_seconds")
        remarks.append(bar("annotate GNMT-8, whole process, s", _ANNOTATE_SECONDS, wall))
    data = {"inference": measured, "annotate": annotated}
    return Result("The policy without torch", tuple(tables), remarks=tuple(remarks), data=data)


def infer(path: str, checkpoint: str, process: int) -> dict[str, Any]:
    """The first inference on a table, and later ones, each with features made anew.

    Args:
        path: A workload (``.npz``), or a graph of the dnn-partitioning format (``.json``).
        checkpoint: Folder of the policy; the one that is shipped when empty.
        process: Tells this one from others that do the same.
    """
    sys.modules.update(dict.fromkeys(_TORCH))  # type: ignore[arg-type]
    table, ops = _table(Path(path))
    before = _peak_bytes()
    start = time.perf_counter()
    policy = PolicyRunner(checkpoint or None)
    # Any graph makes the runner compile its network.
    policy.scores(policy_graph(Problem.of(_machine(random_workload("random_tree", 8, _SEED)))))
    compile_seconds = time.perf_counter() - start
    first = _infer(policy, table)
    runs = [_infer(policy, table) for _ in range(_REPEATS if len(table) <= _LARGE else _REPEATS_LARGE)]
    return {
        "groups": len(table),
        "ops": ops,
        "compile_seconds": compile_seconds,
        "first_seconds": sum(first.values()),
        "warm_seconds": float(np.median([sum(run.values()) for run in runs])),
        "warm_phases": {phase: float(np.median([run[phase] for run in runs])) for phase in _PHASES},
        "peak_bytes": _peak_bytes(),
        "peak_bytes_before": before,
    }


def _infer(policy: PolicyRunner, table: CostTable) -> dict[str, float]:
    """Seconds of each phase."""
    times = [time.perf_counter()]
    graph = policy_graph(Problem.of(table))
    times.append(time.perf_counter())
    policy.scores(graph)
    times.append(time.perf_counter())
    return dict(zip(_PHASES, np.diff(times).tolist(), strict=True))


def _table(path: Path) -> tuple[CostTable, int]:
    """The table, and how many ops its model had."""
    if path.suffix == ".json":
        table = load_dnn_partitioning(path, 1, memory=False)
        return table, len(table)
    workload = Workload.load(path)
    return _machine(workload), workload.num_ops


def _machine(workload: Workload) -> CostTable:
    targets = RandomTargets(estimate=0.0, untyped=0.0, unsupported=0.0)
    return random_task(workload, np.random.default_rng(_SEED), targets, devices=2).true


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def annotate(model: str, checkpoint: str, process: int) -> dict[str, Any]:
    """``ov-autoplace annotate`` of a model in one more process, and what it said."""
    block = f"import sys; sys.modules.update(dict.fromkeys({_TORCH}))"
    command = [sys.executable, "-c", f"{block}; from ov_autoplace.cli import main; main()", "annotate", model]
    command += ["--mode", "zero-shot", "--json", "--target", _TARGET]
    command += ["--policy", checkpoint] if checkpoint else []
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile("w+", encoding="utf-8") as report,
    ):
        start = time.perf_counter()
        child = subprocess.Popen([*command, "--output", folder], stdout=report)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"annotate ended with exit code {child.returncode}")
        report.seek(0)
        said = json.load(report)
    kept = {key: said[key] for key in ("seconds", "chosen", "devices", "subgraphs")}
    return {"wall_seconds": wall, "peak_bytes": usage.ru_maxrss * 1024, **kept}


def _median(runs: Runs, key: str) -> float:
    return float(np.median([run[key] for run in runs]))


def _inference_table(measured: Mapping[str, Runs], processes: int) -> Table:
    rows = []
    for title, runs in measured.items():
        warm = [1e3 * run["warm_seconds"] for run in runs]
        phases = [1e3 * np.median([run["warm_phases"][phase] for run in runs]) for phase in _PHASES]
        rows.append(
            (
                title,
                f"{runs[0]['ops']:,}",
                f"{runs[0]['groups']:,}",
                f"{np.median(warm):.1f}",
                f"{min(warm):.1f}-{max(warm):.1f}",
                " + ".join(f"{ms:.1f}" for ms in phases),
                f"{1e3 * _median(runs, 'first_seconds'):.1f}",
                f"{1e3 * _median(runs, 'compile_seconds'):.0f}",
                f"{max(run['peak_bytes'] for run in runs) / 1e6:.0f}",
                f"{max(run['peak_bytes_before'] for run in runs) / 1e6:.0f}",
            )
        )
    columns = ("graph", "ops", "groups", "warm ms", "min-max", " + ".join(_PHASES), "first ms")
    columns += ("load and compile ms", "peak MB", "before it MB")
    return Table(f"Inference without torch; {processes} fresh processes each", columns, rows)


def _annotate_table(runs: Runs, ops: int) -> Table:
    wall = [run["wall_seconds"] for run in runs]
    phases = {
        phase: float(np.median([run["seconds"][phase] for run in runs])) for phase in runs[0]["seconds"]
    }
    row = (
        f"{np.median(wall):.2f}",
        f"{min(wall):.2f}-{max(wall):.2f}",
        *(f"{seconds:.2f}" for seconds in phases.values()),
        f"{float(np.median(wall)) - sum(phases.values()):.2f}",
        f"{max(run['peak_bytes'] for run in runs) / 1e6:.0f}",
        runs[0]["chosen"],
    )
    columns = ("process s", "min-max", *(f"{p} s" for p in phases), "start and rest s", "peak MB", "chosen")
    title = f"annotate of GNMT-8 with {ops:,} ops, ZERO_SHOT on {_TARGET}; {len(runs)} fresh processes"
    return Table(title, columns, [row])
