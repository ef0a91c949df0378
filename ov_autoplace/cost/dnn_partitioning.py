"""The public dnn-partitioning format: cost graphs for equal accelerators beside one host CPU.

J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020;
https://github.com/msr-fiddle/dnn-partitioning. Latencies are milliseconds. An edge's ``cost`` is the time
to move its producer's output between an accelerator and the host's memory, so a tensor pays it once
between the CPU and an accelerator and twice between two accelerators. The format knows no bytes that
are moved, only times; a table keeps them as nominal bytes at one byte per nanosecond, without latency.
"""

from __future__ import annotations

import heapq
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._arrays import FloatArray, IntArray, csr_from_lists
from ov_autoplace.cost.json_fields import Record, naming
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CostTableError
from ov_autoplace.files import read_json, write_text_atomically

__all__ = ["load_dnn_partitioning", "save_dnn_partitioning"]

_HOST = "CPU"
_SECONDS_PER_NOMINAL_BYTE = 1e-9
_BYTES_PER_MS = 1e6
_MS_PER_SECOND = 1e3
# The paper's largest machine has 9 accelerators. A file naming millions would allocate a table of that width.
_MAX_ACCELERATORS = 1024

_log = logging.getLogger("ov_autoplace")


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
    top = Record.of(read_json(path, CostTableError, "a dnn-partitioning graph"), str(path), CostTableError)
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
    devices = (*(f"ACC.{i}" for i in range(accelerators)), _HOST)
    with naming(path, CostTableError):
        return CostTable(
            devices=devices,
            names=tuple(names[i] for i in order),
            op_seconds=_op_seconds(nodes, accelerators),
            tensor_producer=rank[producers],
            tensor_bytes=np.array([edge_ms[i] * _BYTES_PER_MS for i in producers], dtype=np.float64),
            tensor_offsets=offsets,
            tensor_consumers=consumers,
            tensor_is_constant=np.zeros(len(producers), dtype=np.bool_),
            tensor_uncuttable=np.zeros(len(producers), dtype=np.bool_),
            transfer_latency=np.zeros((len(devices), len(devices))),
            transfer_seconds_per_byte=_SECONDS_PER_NOMINAL_BYTE * _hops(len(devices), host=accelerators),
            launch_seconds=np.zeros(len(devices)),
            memory_bytes=np.array([node.number("size") for node in nodes], dtype=np.float64),
            memory_capacity=_capacity(top, accelerators, memory),
            colocation=_colour_classes(nodes),
            source="imported",
        )


def save_dnn_partitioning(table: CostTable, path: str | Path) -> None:
    """Write ``table``; every device but the CPU counts as an accelerator.

    A table that :func:`load_dnn_partitioning` made comes back unchanged. For any other the format says
    less, and a logged warning names what is left out or averaged: launch times, hand-overs inside one
    device, different costs of the two directions, several output tensors of one group. Tensors that
    must not be cut become colour classes, constants shared by groups (which cost nothing) are left out,
    and accelerators without a memory limit get one that never binds, the sum of all sizes.

    Raises:
        CostTableError: The devices are not equal accelerators beside one CPU that can run everything.
        OutputError: The file cannot be written.
    """
    host, accelerators = _roles(table)
    _refuse_unequal(table, accelerators)
    _refuse_host_limits(table, host)
    losses = _losses(table, host, accelerators)
    if losses:
        _log.warning("%s: the dnn-partitioning format does not hold %s", path, ", ".join(losses))

    acc = accelerators[0] if accelerators else host
    capacity = float(table.memory_capacity[acc])
    data = {
        "maxSizePerFPGA": capacity if math.isfinite(capacity) else float(table.memory_bytes.sum()),
        "maxFPGAs": len(accelerators),
        "maxCPUs": 1,
        "nodes": list(_node_records(table, host, acc)),
        "edges": list(_edge_records(table, host, acc)),
    }
    write_text_atomically(path, json.dumps(data, allow_nan=False) + "\n")


# ---------------------------------------------------------------------------------------------- reading


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
            node.number("fpgaLatency") / _MS_PER_SECOND if node.flag("supportedOnFpga", True) else math.inf
        )
        seconds[i, :accelerators] = accelerated
        seconds[i, accelerators] = node.number("cpuLatency") / _MS_PER_SECOND
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


# ---------------------------------------------------------------------------------------------- writing


def _roles(table: CostTable) -> tuple[int, list[int]]:
    """The host's index and those of the accelerators."""
    hosts = [d for d, name in enumerate(table.devices) if name.split(".")[0] == _HOST]
    if len(hosts) != 1:
        found = "none" if not hosts else ", ".join(table.devices[d] for d in hosts)
        raise CostTableError(
            f"the dnn-partitioning format needs exactly one {_HOST} among the devices; the table has {found}"
        )
    return hosts[0], [d for d in range(table.num_devices) if d != hosts[0]]


def _refuse_unequal(table: CostTable, accelerators: list[int]) -> None:
    for d in accelerators[1:]:
        first = accelerators[0]
        for field, of_device in (
            ("op_seconds", table.op_seconds.T),
            ("memory_capacity", table.memory_capacity),
            ("launch_seconds", table.launch_seconds),
        ):
            if not np.array_equal(of_device[first], of_device[d]):
                raise CostTableError(
                    f"the dnn-partitioning format knows equal accelerators only, but {table.devices[first]} "
                    f"and {table.devices[d]} differ in {field}"
                )


def _refuse_host_limits(table: CostTable, host: int) -> None:
    if math.isfinite(table.memory_capacity[host]):
        raise CostTableError(
            f"the dnn-partitioning format knows no memory limit of the host; {table.devices[host]} has one"
        )
    unsupported = np.flatnonzero(~table.supported[:, host])
    if len(unsupported):
        raise CostTableError(
            f"in the dnn-partitioning format the CPU runs everything, but group "
            f"{table.names[unsupported[0]]!r} cannot run on {table.devices[host]}"
        )


def _losses(table: CostTable, host: int, accelerators: list[int]) -> list[str]:
    losses = []
    if table.launch_seconds.any():
        losses.append("launch times")
    latency, rate = table.transfer_latency, table.transfer_seconds_per_byte
    if np.diagonal(latency).any() or np.diagonal(rate).any():
        losses.append("hand-overs inside one device")
    if accelerators:
        # One cost per output: the same both ways, and twice between two accelerators.
        acc = accelerators[0]
        expected = _hops(table.num_devices, host)
        off_diagonal = ~np.eye(table.num_devices, dtype=bool)
        for matrix in (latency, rate):
            if not np.array_equal(matrix[off_diagonal], (matrix[acc, host] * expected)[off_diagonal]):
                losses.append(
                    "different hand-over costs per pair of devices (their mean with the host is written)"
                )
                break
    if (np.bincount(table.tensor_producer[_moved(table)], minlength=1) > 1).any():
        losses.append("separate costs for several outputs of one group (their sum is written)")
    return losses


def _node_records(table: CostTable, host: int, acc: int) -> list[dict[str, Any]]:
    classes = _classes_with_uncuttable(table)
    members = np.bincount(classes)
    records = []
    for g, name in enumerate(table.names):
        supported = bool(table.supported[g, acc])
        record: dict[str, Any] = {
            "name": name,
            "id": g,
            "supportedOnFpga": supported,
            "cpuLatency": _milliseconds(float(table.op_seconds[g, host])),
            "fpgaLatency": _milliseconds(float(table.op_seconds[g, acc])) if supported else 0.0,
            "isBackwardNode": False,
            "size": float(table.memory_bytes[g]),
        }
        if members[classes[g]] > 1:
            record["colorClass"] = int(classes[g])
        records.append(record)
    return records


def _edge_records(table: CostTable, host: int, acc: int) -> list[dict[str, Any]]:
    latency = (table.transfer_latency[acc, host] + table.transfer_latency[host, acc]) / 2
    rate = (table.transfer_seconds_per_byte[acc, host] + table.transfer_seconds_per_byte[host, acc]) / 2
    cost = np.zeros(len(table))
    consumers: dict[int, set[int]] = {}
    for t in np.flatnonzero(_moved(table)).tolist():
        producer = int(table.tensor_producer[t])
        nominal_bytes = (latency + rate * table.tensor_bytes[t]) / _SECONDS_PER_NOMINAL_BYTE
        exact = latency == 0 and rate == _SECONDS_PER_NOMINAL_BYTE
        cost[producer] += table.tensor_bytes[t] if exact else nominal_bytes
        reached = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
        consumers.setdefault(producer, set()).update(reached.tolist())
    return [
        {"sourceId": g, "destId": destination, "cost": _undo(float(cost[g]), _BYTES_PER_MS)}
        for g, destinations in consumers.items()
        for destination in sorted(destinations)
    ]


def _moved(table: CostTable) -> NDArray[np.bool_]:
    """Tensors that make an edge: read by another group and not constant, ``bool[T]``."""
    return ~table.tensor_is_constant & (np.diff(table.tensor_offsets) > 0)


def _classes_with_uncuttable(table: CostTable) -> IntArray:
    """A class for every group, joined by co-location classes and by tensors that must not be cut."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    tensor = np.repeat(np.arange(len(table.tensor_producer)), np.diff(table.tensor_offsets))
    joined = table.tensor_uncuttable[tensor]
    pairs = [np.stack([table.tensor_producer[tensor], table.tensor_consumers], axis=1)[joined]]
    if table.colocation is not None:
        _, first, inverse = np.unique(table.colocation, return_index=True, return_inverse=True)
        pairs.append(np.stack([np.arange(len(table)), first[inverse]], axis=1)[table.colocation >= 0])
    ends = np.concatenate(pairs).astype(np.int64)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(table), len(table)))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)


# ------------------------------------------------------------------------------------------ both ways


def _hops(devices: int, host: int) -> FloatArray:
    """How often a tensor crosses between an accelerator and host memory, ``float64[D, D]``."""
    hops = np.full((devices, devices), 2.0)
    hops[host, :] = hops[:, host] = 1.0
    np.fill_diagonal(hops, 0.0)
    return hops


def _milliseconds(seconds: float) -> float:
    """The milliseconds that read back as ``seconds``, as far as rounding allows."""
    return _inverted(seconds * _MS_PER_SECOND, lambda ms: ms / _MS_PER_SECOND == seconds)


def _undo(product: float, factor: float) -> float:
    """The number whose product with ``factor`` is ``product``, as far as rounding allows."""
    return _inverted(product / factor, lambda number: number * factor == product)


def _inverted(guess: float, exact: Callable[[float], bool]) -> float:
    # Two roundings may miss the number that was multiplied by one unit in the last place.
    neighbours = (guess, math.nextafter(guess, 0.0), math.nextafter(guess, math.inf))
    return next((number for number in neighbours if exact(number)), guess)
