"""Solvers on lanes that work at once: what they reach, how far from the bound that is, and what it takes.

Networks of the zoo that branch, as groups on the processor of a catalogue machine, and drawn graphs of five
branching families, in which an operation takes 10 or 40 us in the median. All lanes have one width and take
as long as the whole processor does, so what is shown is what working at once is worth, without the gain or
loss of the width. Latencies are simulated (objective ``overlap``): no executor runs them here.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

import zoo
from harness.result import Result, Table
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.solvers import solve
from ov_autoplace.solvers.list_schedulers import LIST_SCHEDULERS
from problems.graphs import BRANCHING, LAUNCH_SECONDS, branching_table
from problems.tables import coarse_graph

__all__ = ["run"]

_TARGET = "core-ultra-7-155h"
_SOLVERS = ("chains", "local", *LIST_SCHEDULERS, "portfolio")
_MEDIANS = (10e-6, 40e-6)


def run(
    quick: bool,
    seed: int,
    networks: tuple[str, ...] = (
        "two_tower",
        "inception_v3",
        "mixture_of_experts",
        "amoebanet",
        "ssdlite",
        "gnmt",
        "bert_base",
    ),
    families: tuple[str, ...] = tuple(BRANCHING),
    ops: tuple[int, ...] = (40, 200, 783),
    lanes: tuple[int, ...] = (2, 4),
) -> Result:
    """One row per network and number of lanes.

    Args:
        quick: Two networks, small graphs, two lanes.
        seed: Of graphs and solvers.
        networks: Of the zoo, at full size.
        families: Of drawn graphs.
        ops: Of drawn graphs.
        lanes: How many.
    """
    if quick:
        networks, ops, lanes = networks[:2], ops[:1], lanes[:1]
    tables = {}
    for name in networks:
        table = _processor(name)
        tables |= {f"{name}, {count} lanes": with_lanes(table, "CPU", count) for count in lanes}
    for family in families:
        for size in ops:
            for median in _MEDIANS:
                title = f"{family} {size} x {1e6 * median:.0f} us"
                tables |= {
                    f"{title}, {count} lanes": branching_table(family, size, count, median, seed)
                    for count in lanes
                }
    rows, ratios = [], []
    for name, table in tables.items():
        cells, ratio = _compared(table, seed)
        rows.append((name, len(table), *cells))
        ratios.append(ratio)
    columns = (
        "graph",
        "groups",
        "one lane us",
        *_SOLVERS,
        "bound",
        "above bound %",
        "submodels",
        "portfolio s",
    )
    remarks = (
        f"Geometric mean of portfolio over one lane: {np.exp(np.mean(np.log(ratios))):.3f}; "
        f"not above 0.98: {np.mean(np.array(ratios) <= 0.98):.0%} of {len(ratios)}.",
    )
    title = "Latency over that of the best lane (lower is better), simulated"
    return Result("Lanes that work at once", (Table(title, columns, rows),), remarks=remarks)


def _processor(name: str) -> CostTable:
    """A network's groups on the processor alone."""
    graph = coarse_graph(zoo.build(name, "full", weights="untouched"))
    table = analytic_table(graph, load_target(_TARGET), ("CPU",))
    return replace(table, launch_seconds=np.array([LAUNCH_SECONDS]))


def _compared(table: CostTable, seed: int) -> tuple[tuple[str, ...], float]:
    single = solve(table, "single", objective="overlap").latency_seconds
    shares = []
    for solver in _SOLVERS:
        begin = time.perf_counter()
        answer = solve(table, solver, objective="overlap", seed=seed)
        took = time.perf_counter() - begin
        shares.append(answer.latency_seconds / single)
    bound = answer.lower_bound_seconds or 0.0
    cells = (
        f"{1e6 * single:,.0f}",
        *(f"{share:.3f}" for share in shares),
        f"{bound / single:.3f}",
        f"{100 * (answer.latency_seconds / bound - 1):.1f}",
        str(simulate(table, answer, "overlap").subgraphs),
        f"{took:.2f}",
    )
    return cells, shares[-1]
