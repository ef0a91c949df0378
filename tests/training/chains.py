"""Cost tables that are chains of ops, whose optima are found by trying everything."""

from __future__ import annotations

import itertools

import numpy as np

from ov_autoplace.cost.table import CostTable
from random_tables import make_table


def chain_table(seconds, transfer: float = 0.5, launch: float = 0.25, **fields) -> CostTable:
    """A chain of ops with ``seconds[G][D]``; each change of device costs one transfer and one launch."""
    G, D = np.shape(seconds)
    return make_table(
        seconds,
        [(g, 1.0, [g + 1]) for g in range(G - 1)],
        transfer_seconds_per_byte=np.full((D, D), transfer),
        launch_seconds=np.full(D, launch),
        **fields,
    )


def fast_and_slow(devices: list[int], ratio: float = 2.0) -> np.ndarray:
    """Ops that take 1 s on the given device each and ``ratio`` seconds on the other, ``[G, 2]``."""
    return np.where(np.array(devices)[:, None] == np.arange(2), 1.0, ratio)


def chain_seconds(table: CostTable, device) -> float:
    """Latency of a placement of a chain, said as plainly as possible."""
    total = float(table.launch_seconds[device[0]])
    for g, d in enumerate(device):
        total += float(table.op_seconds[g, d])
        if g and device[g - 1] != d:
            total += float(table.transfer_seconds_per_byte[device[g - 1], d] + table.launch_seconds[d])
    return total


def best_of_chain(table: CostTable) -> tuple[tuple[int, ...], float]:
    """The optimum of a chain, by trying everything."""
    every = itertools.product(range(table.num_devices), repeat=len(table))
    return min(((d, chain_seconds(table, d)) for d in every), key=lambda found: found[1])
