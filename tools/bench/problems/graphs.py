"""Synthetic problems for single parts: many devices that differ, flow networks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.cost.table import CostTable

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
