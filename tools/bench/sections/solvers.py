"""Cases by which solvers are judged on tables alone: what they reach, how far from the bound, what it takes.

* ``memory``: the graphs of dnn-partitioning with their published limits and 1 to 6 accelerators. "Best known"
  is the least value that any run of this project has found, whatever it took; ``*`` marks values that HiGHS
  proved optimal on the whole program within 60 s.
* ``devices``: many that all differ; chains of residual blocks, ladders of two chains that exchange tensors,
  and random graphs whose ops read up to three of the last dozen.
* ``cuts``: the core's push-relabel beside SciPy's maximum flow on the same integers, which for SciPy must
  stay below 2**31.
* ``mixtures``: many requests by several placements (``solve_mixture``), whose rate is held against the bound,
  proven by the same call, the best device, all devices side by side with a copy of the model each (what
  MULTI, and AUTO under CUMULATIVE_THROUGHPUT, do by themselves), and the best placement that all requests
  share.

What solvers are worth on usual tables is in the section ``placement``, how they grow in ``scaling``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from harness import GRAPHS
from harness.methods import Instance
from harness.result import Result, Table, geometric_mean
from ov_autoplace import _core
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.errors import CostTableError
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.solvers import Problem, solve, solve_mixture
from problems.graphs import (
    FAMILIES,
    flow_network,
    many_device_table,
)
from problems.graphs import NETWORKS as FLOWS
from problems.tables import SPLITS, networks, on_catalogue, on_random_machines

_OPS = 221  # of the tables with many devices
_WANTED = 0.9  # of the bound
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
    cases: tuple[str, ...] = ("memory", "devices", "cuts", "mixtures"),
    time_limit: float = 20.0,
    graphs: tuple[str, ...] = tuple(_BEST_KNOWN),
    accelerators: tuple[int, ...] = (1, 2, 3, 4, 5, 6),
    devices: int = 16,
    seeds: tuple[int, ...] = (5, 6, 7),
    nodes: int = 50_000,
    machines: int = 1,
) -> Result:
    """One table per kind of case.

    Args:
        quick: One graph with two accelerators, one seed, a tenth of the nodes and of the time; networks of
            moderate size, each on one machine of the catalogue.
        seed: Of random machines, and of solvers there; the other cases have theirs.
        cases: Which tables.
        time_limit: Seconds for each case of memory limits.
        graphs: Of dnn-partitioning.
        accelerators: How many of each file's.
        devices: Of the tables with many of them, of 221 ops.
        seeds: Of the tables with many devices.
        nodes: Of each network to cut.
        machines: Random machines of two devices for each network of mixtures.
    """
    if quick:
        graphs, accelerators, time_limit, seeds = ("bert_l-3",), (2,), time_limit / 10, (5,)
        nodes //= 10
    tables = {
        "memory": lambda: _memory(graphs, accelerators, time_limit),
        "devices": lambda: _devices(devices, seeds),
        "cuts": lambda: _cuts(nodes),
        "mixtures": lambda: _mixtures(quick, machines, seed),
    }
    return Result("Cases for the solvers", tuple(tables[case]() for case in cases))


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


def _devices(devices: int, seeds: tuple[int, ...]) -> Table:
    solve(many_device_table("residual", 20, 3, 0))  # imports what is imported late
    rows = []
    for family in FAMILIES:
        for seed in seeds:
            table = many_device_table(family, _OPS, devices, seed)
            wall, processor = time.perf_counter(), time.process_time()
            answer = solve(table)
            wall, processor = time.perf_counter() - wall, time.process_time() - processor
            above = 100 * (answer.latency_seconds / answer.lower_bound_seconds - 1)
            milliseconds = f"{1e3 * answer.latency_seconds:.4f}"
            rows.append((family, seed, milliseconds, f"{above:.1f}", f"{wall:.1f}", f"{processor:.1f}"))
    columns = ("graph", "seed", "answer ms", "above bound %", "took s", "processor s")
    return Table(f"Many devices: portfolio, {devices} devices, {_OPS} ops", columns, rows)


def _cuts(nodes: int) -> Table:
    rows = []
    for kind in FLOWS:
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


def _mixtures(quick: bool, machines: int, seed: int) -> Table:
    rows, over_bound, over_replication = [], [], []
    for instance in _rated(quick, machines, seed):
        begin = time.perf_counter()
        mixture = solve_mixture(instance.table, seed=seed)
        took = time.perf_counter() - begin
        problem = Problem.of(instance.table, objective="rate")
        singles = [
            simulate(instance.table, problem.units.to_groups(device), "rate").rate_per_second
            for device in problem.evaluator.singles().values()
        ]
        whole = 1 / solve(instance.table, objective="rate", seed=seed).latency_seconds
        rivals = [max(singles, default=np.nan), np.nan, whole]
        if len(singles) == instance.table.num_devices:
            rivals[1] = sum(singles)
            over_replication.append(mixture.rate_per_second / rivals[1])
        over_bound.append(mixture.rate_per_second / mixture.bound_per_second)
        cells = [f"{mixture.rate_per_second / rival:.3f}" for rival in (mixture.bound_per_second, *rivals)]
        rows.append((instance.name, len(instance.table), *cells, len(mixture.placements), f"{took:.2f}"))
    within = sum(share >= _WANTED for share in over_bound)
    mean = geometric_mean(over_replication)
    note = (
        f"Within 10 % of the bound on {within} of {len(rows)}; over replication {mean:.3f} in the geometric "
        f"mean, {max(over_replication):.3f} at best."
    )
    columns = ("over bound", "over best device", "over replication", "over one placement")
    title = "Mixtures: rates, simulated (higher is better)"
    return Table(title, ("table", "groups", *columns, "placements", "s"), rows, note)


def _rated(quick: bool, machines: int, seed: int) -> Iterator[Instance]:
    """Networks on the catalogue's machines of two devices, then on random ones."""
    for families in list(SPLITS.values())[: 1 if quick else None]:
        known = list(networks(families, quick))
        yield from on_catalogue(known, 2, quick)
        yield from on_random_machines(known, machines, seed)
