"""How long the policy takes and how much memory, each time in a fresh process that cannot import torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from common import ROOT, print_table
from policy_inference import PHASES, SEED
from policy_request import Bar, Request, Section

import zoo
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.workload import Workload
from workloads import network_workload

__all__ = ["speed"]

SMALL, LARGE = 783, 50_000
TARGET = "core-ultra-7-155h"
GRAPHS, IMPORTED = ROOT / "tests" / "data" / "dnn-partitioning", ("resnet50", "gnmt")
LARGE_GRAPH = "GNMT, 8 layers"
SMALL_MS, LARGE_SECONDS, LARGE_GIGABYTES, ANNOTATE_SECONDS = 30.0, 1.5, 2.0, 8.0
# Whatever needs one of these fails.
_WITHOUT_TORCH = "import sys; sys.modules.update(dict.fromkeys(('torch', 'dgl', 'safetensors')))"

Runs = list[dict[str, Any]]


def speed(request: Request) -> Section:
    """Inference on small and large graphs, and ``annotate`` of a large one."""
    repeats = request.count(5)
    checkpoint = str(request.policy.card.folder)
    gnmt = zoo.build_scaled("gnmt", LARGE, SEED, layers=8)
    small = {"BERT": network_workload("bert", SMALL, SEED)}
    for shape in ("chain_skips", "layered"):
        small[f"random {shape.replace('_', ' with ')}"] = random_workload(f"random_{shape}", SMALL, SEED)
    large = {
        LARGE_GRAPH: _workload_of(gnmt),
        "random layered, an op per group": random_workload("random_layered", LARGE, SEED),
    }
    with tempfile.TemporaryDirectory() as name:
        stage = Path(name)
        files = {f"dnn-partitioning {graph}": GRAPHS / f"{graph}_inference.json" for graph in IMPORTED}
        for i, (title, workload) in enumerate((small | large).items()):
            files[title] = stage / f"{i}.npz"
            workload.save(files[title])
        measured = {
            title: [_fresh(path, checkpoint) for _ in range(repeats)] for title, path in files.items()
        }
        annotated = _annotate(gnmt, stage, checkpoint, repeats)
    _print_inference(measured)
    _print_annotate(annotated, len(gnmt.get_ops()))
    gnmt_runs = measured[LARGE_GRAPH]
    slowest = max(_median(measured[title], "warm_seconds") for title in small)
    peak = max(run["peak_bytes"] for run in gnmt_runs)
    bars = [
        Bar(f"inference on {SMALL} groups, slowest kind of graph, ms", SMALL_MS, 1e3 * slowest),
        Bar("first inference on GNMT-8, s", LARGE_SECONDS, _median(gnmt_runs, "first_seconds")),
        Bar("peak memory of that process, GB", LARGE_GIGABYTES, peak / 1e9),
        Bar("annotate GNMT-8, whole process, s", ANNOTATE_SECONDS, _median(annotated, "wall_seconds")),
    ]
    return Section({"inference": measured, "annotate": annotated}, bars)


def _workload_of(model: ov.Model) -> Workload:
    folded = model.clone()
    fold_static_shapes(folded)
    return Workload.of(coarsen(extract(folded)), "gnmt", "gnmt")


def _fresh(path: Path, checkpoint: str) -> dict[str, Any]:
    """One run of policy_inference.py."""
    script = Path(__file__).with_name("policy_inference.py")
    command = [sys.executable, str(script), str(path), "--checkpoint", checkpoint]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def _annotate(model: ov.Model, stage: Path, checkpoint: str, repeats: int) -> Runs:
    """``ov-autoplace annotate`` of a model, the start of the interpreter included."""
    path = stage / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    program = f"{_WITHOUT_TORCH}; from ov_autoplace.cli import main; main()"
    command = [sys.executable, "-c", program, "annotate", str(path), "--mode", "zero-shot", "--json"]
    command += ["--target", TARGET, "--policy", checkpoint, "--output", str(stage)]
    runs = []
    for _ in range(repeats):
        start = time.perf_counter()
        with (stage / "report.json").open("w") as report:
            process = subprocess.Popen(command, stdout=report)
            _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"annotate ended with exit code {process.returncode}")
        said = json.loads((stage / "report.json").read_text(encoding="utf-8"))
        kept = {key: said[key] for key in ("seconds", "chosen", "decision", "devices", "subgraphs")}
        runs.append({"wall_seconds": wall, "peak_bytes": usage.ru_maxrss * 1024, **kept})
    return runs


def _median(runs: Runs, key: str) -> float:
    return float(np.median([run[key] for run in runs]))


def _print_inference(measured: dict[str, Runs]) -> None:
    rows = []
    for title, runs in measured.items():
        warm = [1e3 * run["warm_seconds"] for run in runs]
        phases = [1e3 * np.median([run["warm_phases"][phase] for run in runs]) for phase in PHASES]
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
    processes = len(next(iter(measured.values())))
    columns = ("graph", "ops", "groups", "warm ms", "min-max", " + ".join(PHASES), "first ms")
    columns += ("load and compile ms", "peak MB", "before it MB")
    print_table(f"Policy inference without torch; {processes} fresh processes each", columns, rows)


def _print_annotate(runs: Runs, ops: int) -> None:
    wall = [run["wall_seconds"] for run in runs]
    phases = {
        phase: float(np.median([run["seconds"][phase] for run in runs])) for phase in runs[0]["seconds"]
    }
    rest = float(np.median(wall)) - sum(phases.values())
    print_table(
        f"annotate of GNMT-8 with {ops:,} ops, ZERO_SHOT on {TARGET}; {len(runs)} fresh processes",
        ("process s", "min-max", *(f"{p} s" for p in phases), "start and rest s", "peak MB", "chosen"),
        [
            (
                f"{np.median(wall):.2f}",
                f"{min(wall):.2f}-{max(wall):.2f}",
                *(f"{seconds:.2f}" for seconds in phases.values()),
                f"{rest:.2f}",
                f"{max(run['peak_bytes'] for run in runs) / 1e6:.0f}",
                runs[0]["chosen"],
            )
        ],
    )
