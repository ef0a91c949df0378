"""How fast one placement, and a batch of them, is simulated; beside a straightforward Python simulator.

    python tools/bench/simulator.py [--groups 783 50000] [--zoo] [--batch 10000] [--repeats 300] [--seed 0]

Tables: random ones of the given sizes (each group feeds one to three of the next eight, some of them
twice), and the co-location groups of zoo models at full size. Placements: one device, two halves, runs of
about fifty and about ten groups, and every group drawn independently, which is the worst case: hundreds of
subgraphs, most of them in circles. The Python simulator is the one that the tests compare with
(``tests/reference_hetero.py``).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
from common import ROOT, machine_line, print_table

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.placement.simulator import problem_of
from zoo import NAMES, build

sys.path.insert(0, str(ROOT / "tests"))
import reference_hetero

CATALOGUE = ROOT / "ov_autoplace" / "cost" / "catalogue"
# Share of groups that stand on another device than the one before.
CHANGES = {"runs of 50": 0.02, "runs of 10": 0.1, "independent": 0.5}
# The Python simulator is quadratic and worse.
LARGEST_FOR_PYTHON = 300


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, nargs="*", default=[100, 783, 50_000], help="of random tables")
    parser.add_argument("--zoo", action="store_true", help="also the zoo's models at full size")
    parser.add_argument("--batch", type=int, default=10_000, help="placements in a batch")
    parser.add_argument("--repeats", type=int, default=300, help="single simulations per row")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    random = np.random.default_rng(arguments.seed)
    tables = {f"random {n}": reference_hetero.random_table(random, n, 2) for n in arguments.groups}
    if arguments.zoo:
        tables |= {name: zoo_table(name) for name in NAMES}
    rows = [
        (name, *measure(table, style, random, arguments.repeats, arguments.batch))
        for name, table in tables.items()
        for style in ("one device", "two halves", *CHANGES)
    ]
    print(machine_line())
    columns = ("table", "groups", "placement", "subgraphs", "us", "5-95 % us", "batch / s", "Python us")
    print_table("Simulating one placement (median) and a batch (all cores)", columns, rows)


def zoo_table(name: str) -> CostTable:
    devices = ("GPU", "CPU")
    return analytic_table(
        coarsen(extract(build(name, "full"))), load_target(CATALOGUE / "core-ultra-7-155h.json"), devices
    )


def draw(random: np.random.Generator, style: str, groups: int) -> IntArray:
    if style == "one device":
        return np.zeros(groups, dtype=np.int32)
    if style == "two halves":
        return (np.arange(groups) >= random.integers(groups)).astype(np.int32)
    return (np.cumsum(random.random(groups) < CHANGES[style]) % 2).astype(np.int32)


def measure(
    table: CostTable, style: str, random: np.random.Generator, repeats: int, batch: int
) -> tuple[int, str, str, str, str, str, str]:
    groups, problem = len(table), problem_of(table)
    repeats = max(5, min(repeats, 300_000 // groups))
    placements = [draw(random, style, groups) for _ in range(repeats)]
    subgraphs = np.median([problem.breakdown(p).subgraphs for p in placements])
    samples = [seconds(problem.simulate, p) for p in placements]
    # A batch of 50,000 groups is cut to what fits into memory.
    rows = np.stack([draw(random, style, groups) for _ in range(max(16, min(batch, 40_000_000 // groups)))])
    rate = len(rows) / min(seconds(problem.simulate_batch, rows) for _ in range(3))
    python = "-"
    if groups <= LARGEST_FOR_PYTHON:
        python = f"{seconds(reference_hetero.latency_seconds, table, placements[0].tolist()) * 1e6:,.0f}"
    low, median, high = np.quantile(samples, [0.05, 0.5, 0.95]) * 1e6
    return groups, style, f"{subgraphs:.0f}", f"{median:.1f}", f"{low:.1f}-{high:.1f}", f"{rate:,.0f}", python


def seconds(call: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
