"""Writing a cost table in the dnn-partitioning format; see :mod:`ov_autoplace.cost.dnn_partitioning`."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray, rows_of
from ov_autoplace._base.files import write_text_atomically
from ov_autoplace.cost.dnn_partitioning import (
    BYTES_PER_MS,
    HOST,
    MS_PER_SECOND,
    SECONDS_PER_NOMINAL_BYTE,
    hops,
)
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CostTableError

__all__ = ["save_dnn_partitioning"]

_log = logging.getLogger("ov_autoplace")


def save_dnn_partitioning(table: CostTable, path: str | Path) -> None:
    """Write ``table``; every device but the CPU counts as an accelerator.

    An imported table comes back unchanged. For any other the format says less, and a logged warning names
    what is left out or averaged: launch times, transfers inside one device, different costs of the two
    directions, several output tensors of one group. Tensors that must not be cut become colour classes,
    constants shared by groups (which cost nothing) are left out, and accelerators without a memory limit
    get one that never binds, the sum of all sizes.

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


def _roles(table: CostTable) -> tuple[int, list[int]]:
    """The host's index and those of the accelerators."""
    hosts = [d for d, name in enumerate(table.devices) if name.split(".")[0] == HOST]
    if len(hosts) != 1:
        found = "none" if not hosts else ", ".join(table.devices[d] for d in hosts)
        raise CostTableError(
            f"the dnn-partitioning format needs exactly one {HOST} among the devices; the table has {found}"
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
    if table.launch_seconds.any() or table.mix_seconds:
        losses.append("launch times")
    latency, rate = table.transfer_latency, table.transfer_seconds_per_byte
    if np.diagonal(latency).any() or np.diagonal(rate).any():
        losses.append("transfers inside one device")
    if accelerators:
        # One cost per output: the same both ways, and twice between two accelerators.
        acc = accelerators[0]
        expected = hops(table.num_devices, host)
        off_diagonal = ~np.eye(table.num_devices, dtype=bool)
        for matrix in (latency, rate):
            if not np.array_equal(matrix[off_diagonal], (matrix[acc, host] * expected)[off_diagonal]):
                losses.append(
                    "different transfer costs per pair of devices (their mean with the host is written)"
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
        nominal_bytes = (latency + rate * table.tensor_bytes[t]) / SECONDS_PER_NOMINAL_BYTE
        exact = latency == 0 and rate == SECONDS_PER_NOMINAL_BYTE
        cost[producer] += table.tensor_bytes[t] if exact else nominal_bytes
        reached = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
        consumers.setdefault(producer, set()).update(reached.tolist())
    return [
        {"sourceId": g, "destId": destination, "cost": _undo(float(cost[g]), BYTES_PER_MS)}
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

    tensor = rows_of(table.tensor_offsets)
    joined = table.tensor_uncuttable[tensor]
    pairs = [np.stack([table.tensor_producer[tensor], table.tensor_consumers], axis=1)[joined]]
    if table.colocation is not None:
        _, first, inverse = np.unique(table.colocation, return_index=True, return_inverse=True)
        pairs.append(np.stack([np.arange(len(table)), first[inverse]], axis=1)[table.colocation >= 0])
    ends = np.concatenate(pairs).astype(np.int64)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(table), len(table)))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)


def _milliseconds(seconds: float) -> float:
    """The milliseconds that read back as ``seconds``, as far as rounding allows."""
    return _inverted(seconds * MS_PER_SECOND, lambda ms: ms / MS_PER_SECOND == seconds)


def _undo(product: float, factor: float) -> float:
    """The number whose product with ``factor`` is ``product``, as far as rounding allows."""
    return _inverted(product / factor, lambda number: number * factor == product)


def _inverted(guess: float, exact: Callable[[float], bool]) -> float:
    # Two roundings may miss the number that was multiplied by one unit in the last place.
    neighbours = (guess, math.nextafter(guess, 0.0), math.nextafter(guess, math.inf))
    return next((number for number in neighbours if exact(number)), guess)
