"""How long the solvers take and how good they are, side by side, and against trying everything.

    python tools/bench/solvers.py [--repeats 15]

Every timed call solves a fresh copy of its table, so that building the network, the C++ copy of the table
and the final simulation are in the time; importing SciPy is not. The rivals are the solvers themselves and,
where the graph is small enough, a loop over all placements.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from common import ROOT, machine_line, print_table

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.solvers import SOLVERS, solve

BLOCK = 65  # ops of one transformer block: 12 blocks and 3 more ops are the 783 of BERT-base
GRAPHS = ROOT / "tests" / "data" / "dnn-partitioning"


def transformer_table(ops: int, seed: int = 0) -> CostTable:
    """A synthetic table: blocks of a chain with four branches each, on two devices of unequal strengths.

    One op in five is heavy and ten times as fast on ACC; the others take 2 to 20 us, on ACC rather longer.
    """
    rng = np.random.default_rng(seed)
    consumers: list[list[int]] = [[g + 1] for g in range(ops - 1)] + [[]]
    for first in range(0, ops - BLOCK, BLOCK):
        for _ in range(4):
            begin, end = sorted(int(i) for i in rng.choice(BLOCK, 2, replace=False))
            if first + end not in consumers[first + begin]:
                consumers[first + begin].append(first + end)
    consumers.pop()
    offsets, flat = csr_from_lists(consumers)
    cpu = rng.uniform(2e-6, 20e-6, ops)
    acc = cpu * rng.uniform(0.8, 3.0, ops)
    heavy = np.arange(ops) % 5 == 0
    cpu[heavy], acc[heavy] = 400e-6, 40e-6
    no_acc = rng.random(ops) < 0.01
    acc[no_acc] = np.inf
    return CostTable(
        devices=("CPU", "ACC"),
        names=tuple(f"op{g}" for g in range(ops)),
        op_seconds=np.stack([cpu, acc], axis=1),
        tensor_producer=np.arange(ops - 1, dtype=np.int32),
        tensor_bytes=rng.uniform(1e4, 1e6, ops - 1),
        tensor_offsets=offsets,
        tensor_consumers=flat,
        tensor_is_constant=np.zeros(ops - 1, dtype=bool),
        tensor_uncuttable=np.zeros(ops - 1, dtype=bool),
        transfer_latency=np.array([[1e-6, 10e-6], [15e-6, 1e-6]]),
        transfer_seconds_per_byte=np.array([[0, 1e-10], [1.2e-10, 0]]),
        launch_seconds=np.array([3e-6, 12e-6]),
        memory_bytes=np.zeros(ops),
        memory_capacity=np.full(2, np.inf),
    )


def tables() -> Iterator[tuple[str, CostTable, bool]]:
    """Name, table, and whether it is large (few repeats)."""
    yield "synthetic 12 ops", transformer_table(12), False
    yield "synthetic 783 ops", transformer_table(783), False
    for name in ("bert_l-3", "resnet50", "bert24", "gnmt"):
        path = GRAPHS / f"{name}_inference.json"
        yield f"{name}, 1 accelerator", load_dnn_partitioning(path, 1, memory=False), False
    for name in ("bert_l-3", "resnet50"):
        path = GRAPHS / f"{name}_inference.json"
        yield f"{name}, all, memory limits", load_dnn_partitioning(path), True
    yield "synthetic 50,000 ops", transformer_table(50_000), True


def try_everything(table: CostTable) -> float:
    """The best latency over all placements."""
    every = np.array(list(itertools.product(range(table.num_devices), repeat=len(table))), dtype=np.int32)
    return float(np.min(simulate_batch(table, every)))


def timed(call: Callable[[CostTable], object], table: CostTable, repeats: int) -> np.ndarray:
    """Wall-clock seconds of calls, each on a fresh copy of the table."""
    samples = []
    for _ in range(repeats):
        copy = replace(table)
        begin = time.perf_counter()
        call(copy)
        samples.append(time.perf_counter() - begin)
    return np.array(samples)


def row(name: str, latency: float, best: float, bound: float | None, samples: np.ndarray) -> list[str]:
    low, median, high = np.percentile(samples, [25, 50, 75]) * 1e3
    proven = "-" if bound is None else f"{latency / bound:.4f}"
    return [
        name,
        f"{latency * 1e3:.4f}",
        f"{latency / best:.4f}",
        proven,
        f"{median:.2f}",
        f"{low:.2f}-{high:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    print(machine_line())
    for title, table, large in tables():
        count = max(1, repeats // 5) if large else repeats
        answers = {}
        for name in SOLVERS:
            if name == "mincut" and table.num_devices > 2:
                continue
            if name == "single" and not np.isfinite(table.op_seconds).all(axis=0).any():
                continue
            answers[name] = solve(table, name)
        best = min(answer.latency_seconds for answer in answers.values())
        rows = []
        for name, answer in answers.items():
            samples = timed(lambda t, name=name: solve(t, name), table, count)
            rows.append(row(name, answer.latency_seconds, best, answer.lower_bound_seconds, samples))
        if table.num_devices ** len(table) <= 2**14:
            samples = timed(try_everything, table, count)
            rows.append(row("(every placement)", optimum := try_everything(table), best, optimum, samples))
        columns = ["solver", "latency ms", "/ best", "/ bound", "median ms", "quartiles ms"]
        print_table(f"{title} ({len(table)} groups, {count} runs)", columns, rows)


if __name__ == "__main__":
    main()
