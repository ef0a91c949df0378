"""How fast one placement, and a batch of them, is simulated.

Tables: random ones (each group feeds one to three of the next eight, some of them twice), and the co-location
groups of zoo models at full size. Placements: one device, two halves, runs of about fifty and about ten
groups, and every group drawn independently, which is the worst case: hundreds of subgraphs, most of them in
cycles. Under the objective ``overlap`` the two devices are lanes that work at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import reference_hetero
import zoo
from harness.result import Result, Table
from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.plan.simulator import OBJECTIVES, simulator_of
from problems.tables import coarse_graph

_TARGET = "core-ultra-7-155h"
# Share of groups that are on another device than the one before.
_CHANGES = {"runs of 50": 0.02, "runs of 10": 0.1, "independent": 0.5}
_STYLES = ("one device", "two halves", *_CHANGES)


def run(
    quick: bool,
    seed: int,
    groups: tuple[int, ...] = (100, 783, 50_000),
    models: tuple[str, ...] = ("resnet50", "bert_base"),
    batch: int = 10_000,
    repeats: int = 300,
    objectives: tuple[str, ...] = tuple(OBJECTIVES),
) -> Result:
    """One table per objective, one row per table and kind of placement.

    Args:
        quick: A tenth of the repeats and of the batch, and no table of 50,000 groups.
        seed: Of tables and placements.
        groups: Of random tables.
        models: Of the zoo, at full size, or ``all``.
        batch: Placements in a batch.
        repeats: Single simulations per row.
        objectives: Of the simulator.
    """
    if quick:
        batch, repeats, groups = batch // 10, repeats // 10, groups[:2]
    random = np.random.default_rng(seed)
    tables = {f"random {n}": reference_hetero.random_table(random, n, 2) for n in groups}
    for name in zoo.NAMES if "all" in models else models:
        graph = coarse_graph(zoo.build(name, "full", weights="untouched"))
        tables[name] = analytic_table(graph, load_target(_TARGET), ("GPU", "CPU"))
    columns = ("table", "groups", "placement", "subgraphs", "us", "5-95 % us", "batch / s")
    results = []
    for objective in objectives:
        rows = [
            (name, len(table), style, *_measure(table, style, random, repeats, batch, objective))
            for name, table in tables.items()
            for style in _STYLES
        ]
        title = f"{objective}: simulating one placement (median) and a batch (all cores)"
        results.append(Table(title, columns, rows))
    return Result("Speed of the simulator", tuple(results))


def _draw(random: np.random.Generator, style: str, groups: int) -> IntArray:
    if style == "one device":
        return np.zeros(groups, dtype=np.int32)
    if style == "two halves":
        return (np.arange(groups) >= random.integers(groups)).astype(np.int32)
    return (np.cumsum(random.random(groups) < _CHANGES[style]) % 2).astype(np.int32)


def _measure(
    table: CostTable, style: str, random: np.random.Generator, repeats: int, batch: int, objective: str
) -> tuple[str, ...]:
    if OBJECTIVES[objective].at_once:
        # What cannot run where a draw puts it is known at once; here every draw is to be scheduled.
        table = replace(
            table,
            tensor_uncuttable=np.zeros_like(table.tensor_uncuttable),
            op_seconds=np.where(
                table.supported, table.op_seconds, np.median(table.op_seconds[table.supported])
            ),
        )
    groups, simulator = len(table), simulator_of(table, objective)
    repeats = max(5, min(repeats, 300_000 // groups))
    placements = [_draw(random, style, groups) for _ in range(repeats)]
    subgraphs = np.median([simulator.breakdown(p).subgraphs for p in placements])
    samples = [_seconds(simulator.simulate, p) for p in placements]
    # A batch of 50,000 groups is cut to what fits into memory.
    rows = np.stack([_draw(random, style, groups) for _ in range(max(16, min(batch, 40_000_000 // groups)))])
    rate = len(rows) / min(_seconds(simulator.simulate_batch, rows) for _ in range(3))
    low, median, high = np.quantile(samples, [0.05, 0.5, 0.95]) * 1e6
    return f"{subgraphs:.0f}", f"{median:.1f}", f"{low:.1f}-{high:.1f}", f"{rate:,.0f}"


def _seconds(call: Callable[..., object], *arguments: Any) -> float:
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start
