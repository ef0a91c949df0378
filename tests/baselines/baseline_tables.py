"""Small cost tables for the baselines."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.cost.table import CostTable


def table_of(op_seconds, tensors, **fields) -> CostTable:
    """Tensors are (producer, seconds, consumers); between any two devices a byte takes a second."""
    op_seconds = np.asarray(op_seconds, dtype=np.float64)
    G, D = op_seconds.shape
    offsets, consumers = csr_from_lists([list(readers) for _, _, readers in tensors])
    values = {
        "devices": tuple(f"DEV{d}" for d in range(D)),
        "names": tuple(f"group{g}" for g in range(G)),
        "op_seconds": op_seconds,
        "tensor_producer": np.array([p for p, _, _ in tensors], dtype=np.int32),
        "tensor_bytes": np.array([s for _, s, _ in tensors], dtype=np.float64),
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
    return CostTable(**(values | fields))


def random_problem(seed: int, devices: int) -> CostTable:
    """A random graph in which tensors have several readers and some devices cannot run some groups."""
    random = np.random.default_rng(seed)
    G = 30
    seconds = random.lognormal(0, 1, (G, devices))
    seconds[random.random(seconds.shape) < 0.15] = np.inf
    seconds[np.isinf(seconds).all(axis=1), 0] = 1.0
    tensors = []
    for g in range(G - 1):
        for _ in range(int(random.integers(0, 3))):
            readers = np.unique(random.integers(g + 1, min(G, g + 8), size=2)).tolist()
            tensors.append((g, float(random.lognormal(0, 1)), readers))
    latency = random.lognormal(-1, 1, (devices, devices))
    rate = random.lognormal(-1, 1, (devices, devices))
    return table_of(seconds, tensors, transfer_latency=latency, transfer_seconds_per_byte=rate)
