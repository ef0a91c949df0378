"""Small cost tables for the rivals."""

from __future__ import annotations

import numpy as np

from ov_autoplace.cost.table import CostTable
from random_tables import make_table


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
    return make_table(seconds, tensors, transfer_latency=latency, transfer_seconds_per_byte=rate)
