"""Hard cases for the solvers: memory limits that bind, many devices that all differ, large minimum cuts.

Memory limits: the graphs of dnn-partitioning with their published limits and 1 to 6 accelerators. "Best
known" is the least value that any run of this project has found, whatever it took; ``*`` marks values that
HiGHS proved optimal on the whole program within 60 s. Devices: chains of residual blocks, ladders of two
chains that exchange tensors, and random graphs whose ops read up to three of the last dozen. Cuts: the core's
push-relabel beside SciPy's maximum flow on the same integers, which for SciPy must stay below 2**31.

What solvers are worth and take on usual tables is in the section ``placement``, how they grow in ``scaling``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from harness import GRAPHS
from harness.result import Result, Table
from ov_autoplace import _core
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.errors import CostTableError
from ov_autoplace.solvers import solve
from problems.graphs import FAMILIES, NETWORKS, flow_network, many_device_table

__all__ = ["run"]

# Seconds by graph and number of accelerators, from 1 on; True = proven.
_BEST_KNOWN: dict[str, tuple[tuple[float, bool], ...]] = {
    "bert24": ((0.571359, False), (0.221803, True), (0.100219, True), (0.100219, False), (0.100219, False)),
    "gnmt": (
        (1.064150, False),
        (0.536493, True),
        (0.304771, False),
        (0.226927, False),
        (0.226927, False),
        (0.226927, False),
    ),
    "bert_l-3": ((0.577000, False), (0.414430, True), (0.401647, True), (0.401647, False)),
    "resnet50": (
        (3.707596, False),
        (2.900161, False),
        (2.176061, False),
        (1.560911, False),
        (0.996886, False),
        (0.651120, False),
    ),
}


def run(
    quick: bool,
    seed: int,
    cases: tuple[str, ...] = ("memory", "devices", "cuts"),
    time_limit: float = 20.0,
    graphs: tuple[str, ...] = tuple(_BEST_KNOWN),
    accelerators: tuple[int, ...] = (1, 2, 3, 4, 5, 6),
    devices: int = 16,
    ops: int = 221,
    seeds: tuple[int, ...] = (5, 6, 7),
    nodes: int = 50_000,
) -> Result:
    """One table per kind of case.

    Args:
        quick: One graph with two accelerators, one seed, a tenth of the nodes and of the time.
        seed: Not used: the cases have theirs.
        cases: Which tables.
        time_limit: Seconds for each case of memory limits.
        graphs: Of dnn-partitioning.
        accelerators: How many of each file's.
        devices: Of the tables with many of them.
        ops: Of these tables.
        seeds: Of these tables.
        nodes: Of each network to cut.
    """
    if quick:
        graphs, accelerators, time_limit, seeds, nodes = (
            ("bert_l-3",),
            (2,),
            time_limit / 10,
            (5,),
            nodes // 10,
        )
    tables = {
        "memory": lambda: _memory(graphs, accelerators, time_limit),
        "devices": lambda: _devices(devices, ops, seeds),
        "cuts": lambda: _cuts(nodes),
    }
    return Result("Hard cases for the solvers", tuple(tables[case]() for case in cases))


def _memory(graphs: tuple[str, ...], accelerators: tuple[int, ...], time_limit: float) -> Table:
    rows = []
    for name in graphs:
        for count in accelerators:
            try:
                table = load_dnn_partitioning(GRAPHS / f"{name}_inference.json", count)
            except CostTableError:
                continue  # the file names fewer accelerators
            begin = time.perf_counter()
            answer = solve(table, time_limit=time_limit)
            took = time.perf_counter() - begin
            value, bound = answer.latency_seconds, answer.lower_bound_seconds
            best, is_proven = _BEST_KNOWN[name][count - 1]
            row = (name, count, f"{value:.5f}", f"{bound:.5f}", f"{100 * (value / bound - 1):.1f}")
            above = f"{100 * (value / best - 1):+.2f}"
            rows.append((*row, f"{best:.5f}{'*' * is_proven}", above, f"{took:.1f}"))
    columns = ("graph", "acc.", "answer s", "bound s", "above bound %", "best known", "above it %", "took s")
    return Table(f"Memory limits: portfolio, {time_limit:g} s", columns, rows)


def _devices(devices: int, ops: int, seeds: tuple[int, ...]) -> Table:
    solve(many_device_table("residual", 20, 3, 0))  # imports what is imported late
    rows = []
    for family in FAMILIES:
        for seed in seeds:
            table = many_device_table(family, ops, devices, seed)
            wall, processor = time.perf_counter(), time.process_time()
            answer = solve(table)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            above = 100 * (answer.latency_seconds / answer.lower_bound_seconds - 1)
            milliseconds = f"{1e3 * answer.latency_seconds:.4f}"
            rows.append((family, seed, milliseconds, f"{above:.1f}", f"{wall:.1f}", f"{processor:.1f}"))
    columns = ("graph", "seed", "answer ms", "above bound %", "took s", "processor s")
    return Table(f"Many devices: portfolio, {devices} devices, {ops} ops", columns, rows)


def _cuts(nodes: int) -> Table:
    rows = []
    for kind in NETWORKS:
        for seed in range(2):
            network = flow_network(kind, nodes, seed)
            value, took = _timed(lambda n=network: _core.minimum_cut(*n)[0], 3)
            other, scipys = _timed(lambda n=network: _by_scipy(*n), 1)
            if other != value:
                raise AssertionError(f"SciPy's flow on {kind} {seed} is {other}, the core's {value}")
            rows.append((kind, seed, value, took, scipys))
    return Table(f"Minimum cuts, {nodes:,} nodes", ("network", "seed", "flow", "core s", "SciPy s"), rows)


def _by_scipy(nodes: int, source: int, sink: int, tail: Any, head: Any, forward: Any, backward: Any) -> int:
    """The flow's value by SciPy's Dinic, its default."""
    ends = (np.concatenate([tail, head]), np.concatenate([head, tail]))
    matrix = coo_array((np.concatenate([forward, backward]).astype(np.int32), ends), shape=(nodes, nodes))
    return int(maximum_flow(csr_array(matrix), source, sink).flow_value)


def _timed(call: Any, repeats: int) -> tuple[int, str]:
    """The value, and the median and range of the seconds that it took."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - begin)
    spread = f" ({min(seconds):.3f} to {max(seconds):.3f})" if repeats > 1 else ""
    return value, f"{np.median(seconds):.3f}{spread}"
