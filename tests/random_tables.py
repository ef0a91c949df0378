"""Random cost tables that have everything a cost table can have, small enough to enumerate."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import csr_from_lists, frozen_array
from ov_autoplace.cost.table import CostTable


def make_table(op_seconds, tensors=(), **fields) -> CostTable:
    """A table from ``op_seconds[G][D]`` and tensors ``(producer, bytes, consumers)``; a byte moves in 1 s."""
    op_seconds = np.asarray(op_seconds, dtype=np.float64)
    G, D = op_seconds.shape
    offsets, consumers = csr_from_lists([list(t[2]) for t in tensors])
    defaults = {
        "devices": tuple(f"DEV{d}" for d in range(D)),
        "names": tuple(f"group{g}" for g in range(G)),
        "op_seconds": op_seconds,
        "tensor_producer": np.array([t[0] for t in tensors], dtype=np.int32),
        "tensor_bytes": np.array([t[1] for t in tensors], dtype=np.float64),
        "tensor_offsets": offsets,
        "tensor_consumers": consumers,
        "tensor_is_constant": np.zeros(len(tensors), dtype=bool),
        "tensor_uncuttable": np.zeros(len(tensors), dtype=bool),
        "transfer_latency": np.zeros((D, D)),
        "transfer_seconds_per_byte": np.ones((D, D)),
        "launch_seconds": np.zeros(D),
        "memory_bytes": np.zeros(G),
        "memory_capacity": np.full(D, np.inf),
    }
    defaults.update(fields)
    indices = ("tensor_producer", "tensor_offsets", "tensor_consumers", "colocation")
    dtypes = dict.fromkeys(indices, np.int32) | {"tensor_is_constant": bool, "tensor_uncuttable": bool}
    return CostTable(
        **{
            name: frozen_array(value, dtypes.get(name, np.float64))
            if isinstance(value, (np.ndarray, list))
            else value
            for name, value in defaults.items()
        }
    )


def random_table(
    seed: int, groups: int = 8, devices: int = 2, *, launches: bool = True, constrained: bool = True
) -> CostTable:
    """A random directed acyclic graph with tensors of several consumers and unequal ways between devices."""
    rng = np.random.default_rng(seed)
    ratio = 10.0 ** rng.uniform(-1.5, 0.7)
    op_seconds = rng.lognormal(0, 1, (groups, 1)) * rng.lognormal(0, 0.8, (groups, devices))
    tensors = []
    for producer in range(groups - 1):
        for _ in range(1 + (rng.random() < 0.2)):
            count = min(int(rng.geometric(0.6)), groups - 1 - producer)
            reach = np.arange(producer + 1, min(groups, producer + 1 + int(rng.integers(1, 7))))
            consumers = rng.choice(reach, size=min(count, len(reach)), replace=False)
            tensors.append((producer, float(rng.lognormal(0, 1)), sorted(int(c) for c in consumers)))
    T = len(tensors)
    fields = {
        "transfer_latency": rng.lognormal(-1, 1, (devices, devices)) * ratio,
        "transfer_seconds_per_byte": rng.lognormal(-0.5, 1, (devices, devices)) * ratio,
        "launch_seconds": rng.lognormal(-1, 1, devices) * ratio * launches,
        "memory_bytes": rng.integers(1, 100, groups).astype(float),
    }
    if constrained:
        op_seconds[rng.random((groups, devices)) < 0.08] = np.inf
        stuck = np.isinf(op_seconds).all(axis=1)
        op_seconds[stuck, 0] = 1.0
        fields["tensor_is_constant"] = rng.random(T) < 0.1
        fields["tensor_uncuttable"] = rng.random(T) < 0.05
        fields["colocation"] = np.where(rng.random(groups) < 0.25, rng.integers(0, 2, groups), -1)
        if rng.random() < 0.4:
            share = rng.uniform(0.45, 1.0, devices)
            fields["memory_capacity"] = share * fields["memory_bytes"].sum()
    return make_table(op_seconds, tensors, **fields)


def with_results(table: CostTable, seed: int) -> CostTable:
    """The same table knowing which of its bytes are results: those handed on and some more."""
    rng = np.random.default_rng(seed)
    results = rng.integers(0, 20, len(table)).astype(float)
    np.add.at(results, table.tensor_producer, table.tensor_bytes * ~table.tensor_is_constant)
    constants = np.zeros(len(table))
    np.add.at(constants, table.tensor_producer, table.tensor_bytes * table.tensor_is_constant)
    return replace(table, result_bytes=results, memory_bytes=table.memory_bytes + results + constants)


def legal_assignments(table: CostTable, pins: dict[str, str] | None = None) -> np.ndarray:
    """Every assignment that breaks no constraint, by trying all of them, ``int32[B, G]``."""
    every = np.array(list(itertools.product(range(table.num_devices), repeat=len(table))), dtype=np.int32)
    G = np.arange(len(table))
    keep = np.isfinite(table.op_seconds[G, every]).all(axis=1)
    for d, capacity in enumerate(table.memory_capacity):
        keep &= ((every == d) * table.memory_bytes).sum(axis=1) <= capacity
    if table.colocation is not None:
        for label in set(table.colocation.tolist()) - {-1}:
            members = every[:, table.colocation == label]
            keep &= (members == members[:, :1]).all(axis=1)
    for t in np.flatnonzero(table.tensor_uncuttable):
        for c in consumers_of(table, t):
            keep &= every[:, table.tensor_producer[t]] == every[:, c]
    for name, device in (pins or {}).items():
        keep &= every[:, table.index[name]] == table.devices.index(device)
    return every[keep]


def consumers_of(table: CostTable, tensor: int) -> list[int]:
    """Consuming groups of one tensor."""
    return table.tensor_consumers[table.tensor_offsets[tensor] : table.tensor_offsets[tensor + 1]].tolist()


def relaxed_seconds(table: CostTable, device) -> float:
    """Op times plus one transfer per tensor and receiving device, said as plainly as possible."""
    total = sum(float(table.op_seconds[g, d]) for g, d in enumerate(device))
    for t, producer in enumerate(table.tensor_producer):
        if table.tensor_is_constant[t]:
            continue
        sender = device[producer]
        for receiver in {int(device[c]) for c in consumers_of(table, t)} - {int(sender)}:
            total += float(table.transfer_latency[sender, receiver])
            total += float(table.transfer_seconds_per_byte[sender, receiver] * table.tensor_bytes[t])
    return total
