"""The public dnn-partitioning format: cost graphs for equal accelerators beside one host CPU.

J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020;
https://github.com/msr-fiddle/dnn-partitioning. Latencies are milliseconds. An edge's ``cost`` is the time
to move its producer's output between an accelerator and the host's memory, so a tensor pays it once
between the CPU and an accelerator and twice between two accelerators. The format knows no bytes that
are moved, only times; a table keeps them as nominal bytes at one byte per nanosecond, without latency.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, csr_from_lists
from ov_autoplace._base.json_fields import Record, naming
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CostTableError

__all__ = [
    "BYTES_PER_MS",
    "HOST",
    "MS_PER_SECOND",
    "SECONDS_PER_NOMINAL_BYTE",
    "hops",
    "load_dnn_partitioning",
]

HOST = "CPU"
SECONDS_PER_NOMINAL_BYTE = 1e-9
BYTES_PER_MS = 1e6
MS_PER_SECOND = 1e3
# The published files name at most 9. A file naming millions would allocate a table of that width.
_MAX_ACCELERATORS = 1024


def load_dnn_partitioning(
    path: str | Path, accelerators: int | None = None, memory: bool = True
) -> CostTable:
    """Read a file as a table over ``ACC.0 ... ACC.(n-1)`` and ``CPU``.

    The CPU has no memory limit; ``maxCPUs`` (cores that the paper pools into one) is not used. Colour
    classes become co-location classes, those of one node none. Nodes are put into topological order.

    Args:
        path: The file.
        accelerators: How many accelerators to keep, up to the file's ``maxFPGAs``; ``None`` keeps all.
        memory: ``False`` lifts the accelerators' memory limit.

    Raises:
        CostTableError: The file is missing, not of this format, or its graph has a cycle.
    """
    top = Record.load(path, CostTableError, "a dnn-partitioning graph")
    available = top.integer("maxFPGAs", 0, _MAX_ACCELERATORS)
    if accelerators is None:
        accelerators = available
    if not 0 <= accelerators <= available:
        raise CostTableError(f"{path} has {available} accelerators; {accelerators} of them cannot be kept")
    nodes = list(top.records("nodes", "node"))
    successors, edge_ms = _edges(top, nodes)
    order = _topological_order(successors, str(path))
    rank = np.empty(len(nodes), dtype=np.int32)
    rank[order] = np.arange(len(nodes))
    names = _unique_names(nodes)
    nodes = [nodes[i] for i in order]

    producers = [i for i in order if successors[i]]
    offsets, consumers = csr_from_lists([sorted(rank[list(successors[i])].tolist()) for i in producers])
    devices = (*(f"ACC.{i}" for i in range(accelerators)), HOST)
    with naming(path, CostTableError):
        return CostTable(
            devices=devices,
            names=tuple(names[i] for i in order),
            op_seconds=_op_seconds(nodes, accelerators),
            tensor_producer=rank[producers],
            tensor_bytes=np.array([edge_ms[i] * BYTES_PER_MS for i in producers], dtype=np.float64),
            tensor_offsets=offsets,
            tensor_consumers=consumers,
            tensor_is_constant=np.zeros(len(producers), dtype=np.bool_),
            tensor_uncuttable=np.zeros(len(producers), dtype=np.bool_),
            transfer_latency=np.zeros((len(devices), len(devices))),
            transfer_seconds_per_byte=SECONDS_PER_NOMINAL_BYTE * hops(len(devices), host=accelerators),
            launch_seconds=np.zeros(len(devices)),
            memory_bytes=np.array([node.number("size") for node in nodes], dtype=np.float64),
            memory_capacity=_capacity(top, accelerators, memory),
            colocation=_colour_classes(nodes),
            source="imported",
        )


def hops(devices: int, host: int) -> FloatArray:
    """How often a tensor crosses between an accelerator and host memory, ``float64[D, D]``."""
    hops = np.full((devices, devices), 2.0)
    hops[host, :] = hops[:, host] = 1.0
    np.fill_diagonal(hops, 0.0)
    return hops


def _edges(top: Record, nodes: list[Record]) -> tuple[list[set[int]], list[float]]:
    """Successors of every node, and the milliseconds that moving its output costs."""
    position: dict[int, int] = {}
    for i, node in enumerate(nodes):
        identity = node.integer("id", -(2**63), 2**63)
        if identity in position:
            raise CostTableError(f"{node.where}: the id {identity} stands twice; ids must be unique")
        position[identity] = i
    successors: list[set[int]] = [set() for _ in nodes]
    edge_ms: list[float | None] = [None] * len(nodes)
    for edge in top.records("edges", "edge"):
        ends = []
        for key in ("sourceId", "destId"):
            identity = edge.integer(key, -(2**63), 2**63)
            if identity not in position:
                raise CostTableError(f"{edge.where}: {key} {identity} is the id of no node")
            ends.append(position[identity])
        source, destination = ends
        cost = edge.number("cost")
        if edge_ms[source] not in (None, cost):
            raise CostTableError(
                f"{edge.where}: its cost {cost} differs from {edge_ms[source]} on another edge of the same "
                f"producer; the format moves a producer's output at one cost"
            )
        edge_ms[source] = cost
        successors[source].add(destination)
    return successors, [cost or 0.0 for cost in edge_ms]


def _topological_order(successors: Sequence[set[int]], where: str) -> list[int]:
    """Producers before consumers, otherwise in the order of the file."""
    waiting = Counter(i for consumers in successors for i in consumers)
    ready = [i for i in range(len(successors)) if not waiting[i]]  # ascending, so already a heap
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for consumer in successors[i]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heapq.heappush(ready, consumer)
    if len(order) < len(successors):
        raise CostTableError(
            f"{where}: {len(successors) - len(order)} nodes lie on or behind a cycle of edges"
        )
    return order


def _unique_names(nodes: list[Record]) -> list[str]:
    """Names of the nodes; the id is appended to those that several nodes share."""
    names = [node.text("name") if "name" in node else f"node{node.fields['id']}" for node in nodes]
    count = Counter(names)
    return [
        name if count[name] == 1 else f"{name}#{node.fields['id']}"
        for name, node in zip(names, nodes, strict=True)
    ]


def _op_seconds(nodes: list[Record], accelerators: int) -> FloatArray:
    seconds = np.empty((len(nodes), accelerators + 1))
    for i, node in enumerate(nodes):
        accelerated = (
            node.number("fpgaLatency") / MS_PER_SECOND if node.flag("supportedOnFpga", True) else math.inf
        )
        seconds[i, :accelerators] = accelerated
        seconds[i, accelerators] = node.number("cpuLatency") / MS_PER_SECOND
    return seconds


def _capacity(top: Record, accelerators: int, memory: bool) -> FloatArray:
    capacity = np.full(accelerators + 1, math.inf)
    if memory:
        capacity[:accelerators] = top.number("maxSizePerFPGA")
    return capacity


def _colour_classes(nodes: list[Record]) -> IntArray | None:
    """Dense class of each node by first appearance, -1 for a node that is alone in its class."""
    colours = [
        node.integer("colorClass", -(2**63), 2**63) if "colorClass" in node else None for node in nodes
    ]
    shared = {colour for colour, members in Counter(colours).items() if members > 1 and colour is not None}
    dense: dict[int | None, int] = {
        colour: i for i, colour in enumerate(dict.fromkeys(c for c in colours if c in shared))
    }
    return np.array([dense.get(c, -1) for c in colours], dtype=np.int32) if dense else None
