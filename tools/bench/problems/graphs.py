"""Synthetic problems for single parts: many devices that differ, branching graphs on lanes, flow networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable

__all__ = [
    "BRANCHING",
    "FAMILIES",
    "LAUNCH_SECONDS",
    "NETWORKS",
    "Network",
    "branching_table",
    "flow_network",
    "many_device_table",
]

LAUNCH_SECONDS = 6e-6
"""Of a submodel on a lane, measured on two cores."""

Readers = list[list[int]]


def _residual(ops: int, rng: np.random.Generator) -> Readers:
    """Blocks of four ops, the first of which is also read by the next block."""
    return [[g + 1] + ([g + 4] if g % 4 == 0 and g + 4 < ops else []) for g in range(ops - 1)]


def _ladder(ops: int, rng: np.random.Generator) -> Readers:
    """Two chains, one op in eight of each read by the other as well."""
    return [
        [g + 2] * (g + 2 < ops) + ([g + 3] if rng.random() < 0.125 and g + 3 < ops else [])
        for g in range(ops - 1)
    ]


def _random(ops: int, rng: np.random.Generator) -> Readers:
    """Every op but the first reads one to three of the twelve before it."""
    readers: Readers = [[] for _ in range(ops - 1)]
    for g in range(1, ops):
        near = np.arange(max(0, g - 12), g)
        for producer in rng.choice(near, min(len(near), int(rng.integers(1, 4))), replace=False):
            readers[producer].append(g)
    return readers


FAMILIES: dict[str, Callable[[int, np.random.Generator], Readers]] = {
    "residual": _residual,
    "ladder": _ladder,
    "random": _random,
}
"""Who reads each op, by family of graphs."""


def many_device_table(family: str, ops: int, devices: int, seed: int) -> CostTable:
    """Each op is fast on a few devices; a transfer costs leaving its sender and entering its receiver."""
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


def _chains(first: int, starts: list[int], lengths: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Edges of chains that begin behind given ops, and the last op of each."""
    edges, ends = [], []
    for start, length in zip(starts, lengths, strict=True):
        chain = [start, *range(first, first + length)]
        edges += list(pairwise(chain))
        ends.append(chain[-1])
        first += length
    return edges, ends


def _towers(ops: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Two to four chains of unequal length that meet at the end."""
    share = rng.dirichlet(np.full(int(rng.integers(2, 5)), 6.0)) * (ops - 2)
    edges, ends = _chains(1, [0] * len(share), [max(1, int(s)) for s in share])
    return [*edges, *((end, max(ends) + 1) for end in ends)]


def _ensemble(ops: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Four to eight equal chains whose results are averaged."""
    count = int(rng.integers(4, 9))
    edges, ends = _chains(1, [0] * count, [(ops - 2) // count] * count)
    return [*edges, *((end, max(ends) + 1) for end in ends)]


def _experts(ops: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Blocks of a gate and four experts, of which each block waits for all of the one before."""
    edges, last = [], 0
    length = int(rng.integers(2, 5))
    while last + 4 * length + 2 < ops:
        added, ends = _chains(last + 1, [last] * 5, [1, *[length] * 4])
        last = max(ends) + 1
        edges += [*added, *((end, last) for end in ends)]
    return edges


def _pyramid(ops: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A backbone that is read at several depths, each time by a head of its own."""
    stages = int(rng.integers(3, 6))
    stage, head = ops // (2 * stages), ops // (2 * stages) - 1
    edges, ends = _chains(1, [0], [stages * stage])
    heads, ends = _chains(ends[0] + 1, [stage * (i + 1) for i in range(stages)], [head] * stages)
    return [*edges, *heads, *((end, max(ends) + 1) for end in ends)]


def _nested(ops: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Branches in branches, drawn: an edge becomes two in a row, or two side by side."""
    edges, last = [(0, 1)], 1
    while last + 2 < ops:
        tail, head = edges.pop(int(rng.integers(len(edges))))
        edges += [(tail, last + 1), (last + 1, head)]
        last += 1
        if rng.random() < 0.5:
            edges += [(tail, last + 1), (last + 1, head)]
            last += 1
    return edges


BRANCHING: dict[str, Callable[[int, np.random.Generator], list[tuple[int, int]]]] = {
    "towers": _towers,
    "ensemble": _ensemble,
    "experts": _experts,
    "pyramid": _pyramid,
    "nested": _nested,
}
"""Producer and consumer of each edge, by family of branching graphs."""


def branching_table(family: str, ops: int, lanes: int, seconds: float, seed: int) -> CostTable:
    """A branching graph on lanes of a processor; ops take ``seconds`` in the median."""
    rng = np.random.default_rng((seed, list(BRANCHING).index(family)))
    edges = np.array(BRANCHING[family](ops, rng), dtype=np.int32)
    # Numbers in topological order, and one tensor per producer.
    order = np.argsort(_core.merge_cycles(np.arange(edges.max() + 1, dtype=np.int32), edges), kind="stable")
    position = np.argsort(order)
    edges = np.unique(position[edges], axis=0)
    producers, counts = np.unique(edges[:, 0], return_counts=True)
    count = len(order)
    table = CostTable(
        devices=("CPU",),
        names=tuple(f"op{g}" for g in range(count)),
        op_seconds=seconds * rng.lognormal(0, 0.8, (count, 1)),
        tensor_producer=producers.astype(np.int32),
        tensor_bytes=rng.lognormal(11, 1, len(producers)),
        tensor_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        tensor_consumers=edges[:, 1].astype(np.int32),
        tensor_is_constant=np.zeros(len(producers), dtype=bool),
        tensor_uncuttable=np.zeros(len(producers), dtype=bool),
        transfer_latency=np.zeros((1, 1)),
        transfer_seconds_per_byte=np.zeros((1, 1)),
        launch_seconds=np.array([LAUNCH_SECONDS]),
        memory_bytes=np.zeros(count),
        memory_capacity=np.array([np.inf]),
    )
    return with_lanes(table, "CPU", lanes)


NETWORKS = ("chain", "random", "wide", "mesh")
"""Kinds of networks to cut, all with a price per node and side and prices on the edges of a DAG.

A chain feeds the next node and now and then a later one; ``random`` has two consumers per node, anywhere
behind it; ``wide`` has layers of 1,000 nodes, each read by three of the next layer, with edges about as dear
as nodes, what makes augmenting paths long and many; a mesh is a square grid with prices both ways, as in
images."""

Network = tuple[int, int, int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Nodes, source, sink; tail, head, forward and backward capacity of each edge."""

_LARGEST = 1_000_000


def flow_network(kind: str, nodes: int, seed: int) -> Network:
    """A network whose prices on edges are of the size of those on nodes."""
    rng = np.random.default_rng(seed)
    edges = np.unique(_edges(kind, nodes, rng), axis=0)
    gain = rng.normal(0, 1, nodes) * _LARGEST
    source, sink = nodes, nodes + 1
    here = np.arange(nodes)
    price = rng.integers(1, _LARGEST, len(edges))
    tail = np.concatenate([np.where(gain > 0, source, here), edges[:, 0]])
    head = np.concatenate([np.where(gain > 0, here, sink), edges[:, 1]])
    forward = np.concatenate([np.abs(gain).astype(np.int64), price])
    back = price if kind == "mesh" else price // 3
    backward = np.concatenate([np.zeros(nodes, dtype=np.int64), back])
    return nodes + 2, source, sink, tail.astype(np.int32), head.astype(np.int32), forward, backward


def _edges(kind: str, nodes: int, rng: np.random.Generator) -> np.ndarray:
    """Directed edges, ``int[E, 2]``."""
    here = np.arange(nodes)
    if kind == "chain":
        skips = rng.integers(0, nodes - 20, nodes // 10)
        jumps = np.stack([skips, skips + rng.integers(2, 20, len(skips))], axis=1)
        return np.concatenate([np.stack([here[:-1], here[1:]], axis=1), jumps])
    if kind == "random":
        tail = np.repeat(here[:-1], 2)
        return np.stack([tail, tail + 1 + (rng.random(len(tail)) * (nodes - 1 - tail)).astype(int)], axis=1)
    if kind == "wide":
        width = min(1000, nodes // 3)
        tail = np.repeat(here[: nodes - 2 * width], 3)
        return np.stack([tail, (tail // width + 1) * width + rng.integers(0, width, len(tail))], axis=1)
    side = math.isqrt(nodes)
    grid = np.arange(side * side).reshape(side, side)
    across = np.stack([grid[:, :-1].ravel(), grid[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([grid[:-1].ravel(), grid[1:].ravel()], axis=1)])
