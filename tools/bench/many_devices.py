"""How close ``auto`` comes to its bound, and how long it takes, with many devices that all differ.

    python tools/bench/many_devices.py [--devices 16] [--ops 221] [--seeds 5 6 7]

Three families of graphs: chains of residual blocks, ladders of two chains that exchange tensors, and random
graphs whose ops read up to three of the last dozen. Each op is fast on a few devices; a hand-over costs what
leaving its sender and entering its receiver cost.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from common import machine_line, print_table

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.cost.table import CostTable
from ov_autoplace.solvers import solve

Readers = list[list[int]]


def residual(ops: int, rng: np.random.Generator) -> Readers:
    """Blocks of four ops, the first of which is also read by the next block."""
    return [[g + 1] + ([g + 4] if g % 4 == 0 and g + 4 < ops else []) for g in range(ops - 1)]


def ladder(ops: int, rng: np.random.Generator) -> Readers:
    """Two chains, one op in eight of each read by the other as well."""
    return [
        [g + 2] * (g + 2 < ops) + ([g + 3] if rng.random() < 0.125 and g + 3 < ops else [])
        for g in range(ops - 1)
    ]


def random_graph(ops: int, rng: np.random.Generator) -> Readers:
    """Every op but the first reads one to three of the twelve before it."""
    readers: Readers = [[] for _ in range(ops - 1)]
    for g in range(1, ops):
        near = np.arange(max(0, g - 12), g)
        for producer in rng.choice(near, min(len(near), int(rng.integers(1, 4))), replace=False):
            readers[producer].append(g)
    return readers


FAMILIES: dict[str, Callable[[int, np.random.Generator], Readers]] = {
    "residual": residual,
    "ladder": ladder,
    "random": random_graph,
}


def make_table(family: str, ops: int, devices: int, seed: int) -> CostTable:
    rng = np.random.default_rng((seed, list(FAMILIES).index(family)))
    readers = FAMILIES[family](ops, rng)
    producers = [g for g, r in enumerate(readers) if r]
    offsets, consumers = csr_from_lists([readers[g] for g in producers])
    leave, enter = rng.uniform(2e-6, 2e-5, (2, devices))
    leave_rate, enter_rate = rng.uniform(0.2e-10, 2e-10, (2, devices))
    return CostTable(
        devices=tuple(f"DEV{d}" for d in range(devices)),
        names=tuple(f"op{g}" for g in range(ops)),
        op_seconds=rng.lognormal(-10, 1, (ops, 1)) * rng.lognormal(0, 0.7, (ops, devices)),
        tensor_producer=np.array(producers, dtype=np.int32),
        tensor_bytes=rng.lognormal(11, 1, len(producers)),
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        tensor_is_constant=np.zeros(len(producers), dtype=bool),
        tensor_uncuttable=np.zeros(len(producers), dtype=bool),
        transfer_latency=leave[:, None] + enter,
        transfer_seconds_per_byte=leave_rate[:, None] + enter_rate,
        launch_seconds=rng.uniform(1e-6, 5e-6, devices),
        memory_bytes=np.zeros(ops),
        memory_capacity=np.full(devices, np.inf),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=16)
    parser.add_argument("--ops", type=int, default=221)
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 6, 7])
    arguments = parser.parse_args()
    print(machine_line())
    solve(make_table("residual", 20, 3, 0))  # imports what is imported late
    rows = []
    for family in FAMILIES:
        for seed in arguments.seeds:
            table = make_table(family, arguments.ops, arguments.devices, seed)
            wall, processor = time.perf_counter(), time.process_time()
            answer = solve(table)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            above = 100 * (answer.latency_seconds / answer.lower_bound_seconds - 1)
            milliseconds = f"{1e3 * answer.latency_seconds:.4f}"
            rows.append([family, seed, milliseconds, f"{above:.1f}", f"{wall:.1f}", f"{processor:.1f}"])
    columns = ["graph", "seed", "answer ms", "above bound %", "took s", "processor s"]
    print_table(f"auto, {arguments.devices} devices, {arguments.ops} ops", columns, rows)


if __name__ == "__main__":
    main()
