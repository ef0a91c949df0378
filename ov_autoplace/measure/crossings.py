"""What crossing devices costs inside one particular model, on top of a bare transfer.

A cut between two convolutions loses the blocked memory layout and the low precision that flow between them on
one device: each side of the cut gets a Reorder that no small model of another kind shows. How much
that is depends on the plugin, the layouts and the model, so it is measured where it happens: a few
placements of the model itself are run, and what they take longer than predicted is fitted.

Part of it does not grow with the number of cuts. While one device works, the other's threads go to sleep and
its clock falls; between many short subgraphs they stay awake. A placement of two subgraphs pays for that
about as much as one of twenty, so it is a cost of mixing devices at all.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import IntArray, frozen_array
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.plan.simulator import simulator_of

__all__ = ["PROBES", "probe_assignments", "with_crossing_costs"]

_log = logging.getLogger("ov_autoplace")

# Segments of the probes: two show what mixing costs once, many show what each transfer and byte costs.
_SEGMENTS = (2, 10, 5)
_DRAWS = 20
# Of the runs on a device that they would overfill, the part that it keeps: the largest that fits.
_SHARES = tuple(0.8**i for i in range(1, 25))

PROBES = len(_SEGMENTS)
"""How many placements :func:`probe_assignments` gives at most."""


def probe_assignments(table: CostTable, seed: int = 0) -> tuple[IntArray, ...]:
    """Placements that cross devices often: contiguous runs of groups on alternating devices.

    A placement that HETERO cannot run, because its cuts part what must share a subgraph, is drawn again, and
    so is one that does not fit into memory however short the runs on the full device are made.

    Args:
        table: Of G groups in topological order; where one cannot run on its device, the first device that
            can takes its place. Costs of transfers do not matter.
        seed: Of the places of the cuts.

    Returns:
        ``int32[G]`` each; none when there is one group or one device, fewer when few placements run.
    """
    G, D = table.op_seconds.shape
    if G < 2 or D < 2:
        return ()
    random = np.random.default_rng(seed)
    supported = np.isfinite(table.op_seconds)
    probes = []
    for probe, segments in enumerate(_SEGMENTS):
        for _ in range(_DRAWS):
            cuts = np.sort(random.choice(np.arange(1, G), size=min(segments - 1, G - 1), replace=False))
            run = np.searchsorted(cuts, np.arange(G), side="right").astype(np.int32)
            wanted = (run + probe) % D
            chosen = np.where(supported[np.arange(G), wanted], wanted, supported.argmax(axis=1))
            chosen = chosen.astype(np.int32)
            if _fit(table, chosen, run) and np.isfinite(simulator_of(table).simulate(chosen)):
                probes.append(frozen_array(chosen, np.int32))
                break
    return tuple(probes)


def _fit(table: CostTable, chosen: IntArray, run: IntArray) -> bool:
    """Shorten the runs on devices that they overfill until these can hold them, in place; whether they can.

    What a device gives away goes to the one with most room that can run it, from the end of every run.
    """
    held = held_bytes(table, chosen)
    for d in np.flatnonzero(held > table.memory_capacity).tolist():
        to = int(np.argmax(np.where(np.arange(table.num_devices) == d, -1, table.memory_capacity - held)))
        here = np.flatnonzero((chosen == d) & table.supported[:, to])
        starts = np.searchsorted(run[here], run[here])
        lengths = np.searchsorted(run[here], run[here], side="right") - starts
        place = (np.arange(len(here)) - starts) / np.maximum(lengths, 1)  # within its run, from 0 to 1
        for share in _SHARES:
            chosen[here] = np.where(place < share, d, to)
            held = held_bytes(table, chosen)
            if held[d] <= table.memory_capacity[d]:
                break
    return bool((held <= table.memory_capacity).all() and np.ptp(chosen) > 0)


def with_crossing_costs(
    table: CostTable, assignments: Sequence[IntArray], seconds: Sequence[float]
) -> CostTable:
    """The table with transfers that explain the measured placements.

    One cost per transfer and one per byte are added for all pairs of devices, and one for mixing devices at
    all: the non-negative least-squares fit of the relative errors. Nothing is ever subtracted: a probe that
    was lucky changes nothing. Nor does one that ran although the table says that it cannot.

    Args:
        table: With op times and bare transfers.
        assignments: Placements that were run, ``int32[G]`` each.
        seconds: Their latencies. A placement that the table calls impossible tells nothing of what its
            crossings cost and is left out.
    """
    from scipy.optimize import nnls

    shape = table.transfer_latency.shape
    ones, zeros = np.ones(shape), np.zeros(shape)
    # Transfer time is linear in its costs, so unit costs count transfers and bytes.
    counting = replace(table, transfer_latency=ones, transfer_seconds_per_byte=zeros, mix_seconds=0.0)
    weighing = replace(table, transfer_latency=zeros, transfer_seconds_per_byte=ones, mix_seconds=0.0)
    rows, missing = [], []
    for assignment, measured in zip(assignments, seconds, strict=True):
        transfers = simulator_of(counting).breakdown(assignment).transfer_seconds
        moved = simulator_of(weighing).breakdown(assignment).transfer_seconds
        predicted = simulator_of(table).breakdown(assignment).latency_seconds
        if not np.isfinite([transfers, moved, predicted]).all():
            _log.info("a placement that ran, but is predicted not to, is left out of the cost of crossings")
            continue
        mixed = float(np.ptp(assignment) > 0)
        rows.append([transfers / measured, moved / measured, mixed / measured])
        missing.append((measured - predicted) / measured)
    if not rows:
        return table
    # Bytes are millions where transfers are few: scaled columns keep the solver's tolerance meaningful.
    scale = np.maximum(np.abs(rows).max(axis=0), np.finfo(float).tiny)
    solution, _ = nnls(np.array(rows) / scale, np.array(missing))
    per_transfer, per_byte, once = solution / scale
    return replace(
        table,
        transfer_latency=frozen_array(table.transfer_latency + per_transfer, np.float64),
        transfer_seconds_per_byte=frozen_array(table.transfer_seconds_per_byte + per_byte, np.float64),
        mix_seconds=float(table.mix_seconds + once),
    )
