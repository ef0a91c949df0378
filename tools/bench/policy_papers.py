"""The three models of the HSDAG paper on a simulated machine that runs them as fast as the paper's did.

The machine is the catalogue's Core i9-12900K with a Flex 170. For each model, all rates and overheads of a
device are scaled by one factor, such that the simulated latency on this device alone is that of the paper's
CPU-only or GPU-only row (arXiv 2405.14185, table 2). What lies between the two rows is then a prediction of
the simulator and nothing else: which ops gain where, and what crossing costs, are the catalogue's public
figures and assumptions.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from common import print_table
from policy_problems import PAIRS, Problem, solve_all
from policy_request import Request, Section
from policy_zero_shot import policy_answer

import zoo
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.placement.simulator import simulate

__all__ = ["calibrated_to", "papers"]

PUBLISHED_MS = {
    "inception_v3": {
        "CPU-only": 12.8,
        "GPU-only": 12.0,
        "OpenVINO-CPU": 12.8,
        "OpenVINO-GPU": 13.8,
        "Placeto": 11.6,
        "RNN-based": 12.8,
        "HSDAG": 10.5,
    },
    "resnet50": {
        "CPU-only": 16.0,
        "GPU-only": 7.81,
        "OpenVINO-CPU": 23.4,
        "OpenVINO-GPU": 8.76,
        "Placeto": 9.32,
        "RNN-based": 8.75,
        "HSDAG": 7.66,
    },
    "bert_base": {
        "CPU-only": 6.38,
        "GPU-only": 2.77,
        "OpenVINO-CPU": 6.57,
        "OpenVINO-GPU": 2.84,
        "Placeto": 6.51,
        "RNN-based": None,  # out of memory
        "HSDAG": 2.67,
    },
}
"""Table 2 of the paper, in milliseconds."""


def papers(request: Request) -> Section:
    """One column per model."""
    (target_name, devices), *_ = PAIRS[2]
    target = load_target(target_name)
    rows: dict[str, dict[str, float | None]] = {}
    problems = []
    for name, published in PUBLISHED_MS.items():
        model = zoo.build(name, "full", weights="untouched")
        fold_static_shapes(model)
        table = analytic_table(coarsen(extract(model)), target, devices)
        wanted = np.array([published[f"{device}-only"] for device in devices], dtype=float) * 1e-3
        problems.append(Problem(name, name, calibrated_to(table, wanted), table))
    solved = solve_all(problems, request.seconds, request.workers, request.cache)
    for s in solved:
        table, published = s.problem.true, PUBLISHED_MS[s.problem.name]
        column: dict[str, float | None] = {f"paper, measured: {k}": ms for k, ms in published.items()}
        for d, device in enumerate(devices):
            alone = np.full(len(table), d, dtype=np.int32)
            column[f"simulated: {device} only"] = 1e3 * simulate(table, alone).latency_seconds
        schedule = simulate(table, policy_answer(request.policy, table))
        proposals = propose(table, ProposalSource(policy=request.policy))
        column |= {
            "simulated: policy alone, zero-shot": 1e3 * schedule.latency_seconds,
            "simulated: whole pipeline": 1e3 * min(p.predicted_seconds for p in proposals),
            "simulated: no placement is faster than": 1e3 * s.best.bound,
            "subgraphs of the policy's answer": float(schedule.subgraphs),
        }
        rows[s.problem.name] = column
    print_table(
        f"The HSDAG paper's models on {target_name}, scaled to its single-device rows; ms",
        ("", *rows),
        [
            (title, *("-" if (ms := column[title]) is None else f"{ms:.3g}" for column in rows.values()))
            for title in next(iter(rows.values()))
        ],
    )
    return Section({"target": target_name, "models": rows})


def calibrated_to(table: CostTable, seconds: np.ndarray) -> CostTable:
    """A table as if each device were faster or slower by one factor at all it does.

    Args:
        table: Estimated costs.
        seconds: What the whole model takes on each device alone, ``float64[D]``.
    """
    alone = [
        simulate(table, np.full(len(table), d, dtype=np.int32)).latency_seconds
        for d in range(table.num_devices)
    ]
    launches = np.asarray(alone) - table.op_seconds.sum(axis=0)
    factor = (seconds - launches) / table.op_seconds.sum(axis=0)
    return replace(table, op_seconds=table.op_seconds * factor, source="profiled")
