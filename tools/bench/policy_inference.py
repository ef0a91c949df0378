"""Measures one inference of a policy, in a process that cannot import torch, and prints JSON.

    python tools/bench/policy_inference.py TABLE [--checkpoint DIR]

A table is a workload (``.npz``), which is put on a random machine with two devices, or a graph of the
dnn-partitioning format (``.json``) with one accelerator. Inference is everything between a cost table and
scores: features, coarser levels, probes, the network. It is run by the section
``speed`` of tools/bench/policy.py.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Before anything else is imported: whatever needs one of these fails.
    sys.modules.update(dict.fromkeys(("torch", "dgl", "safetensors")))  # type: ignore[arg-type]

import numpy as np

from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.probes import probe_features
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.targets import RandomTargets, random_task
from ov_autoplace.training.workload import Workload

__all__ = ["PHASES", "measure"]

PHASES = ("features", "levels and probes", "network")
SEED = 5
_REPEATS, _REPEATS_LARGE, _LARGE = 15, 3, 2_000


def measure(path: Path, checkpoint: str | None) -> dict[str, Any]:
    """The first inference on a table, and later ones, each with features and levels made anew."""
    table, ops = _table(path)
    before = _peak_bytes()
    start = time.perf_counter()
    policy = PolicyRunner(checkpoint)
    # Any graph makes the runner compile its network.
    policy.scores(policy_graph(_machine(random_workload("random_tree", 8, SEED))))
    compile_seconds = time.perf_counter() - start
    first = _infer(policy, table)
    runs = [_infer(policy, table) for _ in range(_REPEATS if len(table) <= _LARGE else _REPEATS_LARGE)]
    totals = [sum(run.values()) for run in runs]
    assert all(sys.modules.get(name) is None for name in ("torch", "dgl", "safetensors"))
    return {
        "groups": len(table),
        "ops": ops,
        "compile_seconds": compile_seconds,
        "first_seconds": sum(first.values()),
        "warm_seconds": float(np.median(totals)),
        "warm_quartiles": np.quantile(totals, [0.25, 0.75]).tolist(),
        "warm_phases": {phase: float(np.median([run[phase] for run in runs])) for phase in PHASES},
        "peak_bytes": _peak_bytes(),
        "peak_bytes_before": before,
    }


def _infer(policy: PolicyRunner, table: CostTable) -> dict[str, float]:
    """Seconds of each phase."""
    times = [time.perf_counter()]
    graph = policy_graph(table)
    times.append(time.perf_counter())
    assert graph.levels
    assert len(probe_features(graph))
    times.append(time.perf_counter())
    policy.scores(graph)
    times.append(time.perf_counter())
    return dict(zip(PHASES, np.diff(times).tolist(), strict=True))


def _table(path: Path) -> tuple[CostTable, int]:
    """The table, and how many ops its model had."""
    if path.suffix == ".json":
        table = load_dnn_partitioning(path, 1, memory=False)
        return table, len(table)
    workload = Workload.load(path)
    return _machine(workload), workload.num_ops


def _machine(workload: Workload) -> CostTable:
    targets = RandomTargets(estimate=0.0, untyped=0.0, unsupported=0.0)
    return random_task(workload, np.random.default_rng(SEED), targets, devices=2).true


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--checkpoint", help="folder of the policy; default: the one that is shipped")
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.table, arguments.checkpoint)))


if __name__ == "__main__":
    main()
