"""What simple placements of a graph would run into: the part of HETERO's costs that no edge shows.

HETERO cuts subgraphs that wait for each other in a cycle, and each cut costs a launch and transfers.
Whether a mix of devices makes cycles, and what they cost, is a property of the whole placement: next to
nothing in a chain, most of the latency in an unrolled recurrent network. So each graph is probed: on the
first levels of grouping every group is put where it is cheapest, and the policy is told, of each unit, how
many subgraphs are in the cycle that its own lies in, and of the whole graph, how many are in any, and what
the placement costs without cycles and as HETERO would run it.

A network that *looks* is told the same of its own answer so far, against running everything on each single
device, before it answers again: what a placement runs into is the one thing that it cannot see in advance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.cycles import cycles_of

__all__ = [
    "LOOK_FEATURES",
    "PROBED_LEVELS",
    "PROBE_FEATURES",
    "look_features",
    "probe_features",
]

PROBED_LEVELS = 4

# Cards of checkpoints name these features and those below, so a cycle stays a "circle" here.
PROBE_FEATURES = tuple(
    f"level{level}_{name}"
    for level in range(PROBED_LEVELS)
    for name in ("log_own_circle", "log_all_circles", "log_relaxed_by_single", "log_simulated_by_single")
)
"""Columns of :func:`probe_features`."""

LOOK_FEATURES = (
    "chosen",
    "log_own_circle",
    "log_all_circles",
    "log_relaxed_by_single",
    "log_simulated_by_single",
    "log_single_by_best_single",
)
"""Columns of :func:`look_features`."""

_MOST_WORK = 200_000  # nodes visited by one simulation: some milliseconds
_MOST_NODES_IN_CYCLES = 10_000  # of larger graphs, taking a single cycle apart may last for seconds
_LARGEST = 3.0  # of a logarithm of latencies


def probe_features(graph: PolicyGraph) -> NDArray[np.float32]:
    """What simple placements of N units would run into, ``float32[N, len(PROBE_FEATURES)]``; made once."""
    if "probes" not in graph.kept:
        graph.kept["probes"] = _probe(graph)
    probes: NDArray[np.float32] = graph.kept["probes"]
    return probes


def _probe(graph: PolicyGraph) -> NDArray[np.float32]:
    n = len(graph)
    unit = np.arange(n)
    ends = _ends(graph)
    best_single = max(float(graph.node_cost.sum(axis=0).min()), 1e-12)
    group = unit
    columns: list[NDArray[np.float64]] = []
    for level in graph.levels[:PROBED_LEVELS]:
        placed = level.cost.argmin(axis=1)[group]
        placed = np.where(graph.allowed[unit, placed], placed, graph.node_cost.argmin(axis=1))
        own, cycles, work = cycles_of(ends, placed)
        relaxed = graph.node_cost[unit, placed].sum(dtype=np.float64) + _transfers(graph, placed)
        seconds = _simulated(graph, placed, work)
        columns += [
            np.log(own) / 4,
            np.full(n, np.log1p(cycles) / 4),
            np.full(n, _log_ratio(relaxed, best_single)),
            np.full(n, _log_ratio(seconds, best_single)),
        ]
        group = level.parent[group]
    return np.stack(columns, axis=1).astype(np.float32)


def look_features(graph: PolicyGraph, placed: NDArray[np.integer]) -> NDArray[np.float32]:
    """What an answer runs into, for each of N units and D devices, ``float32[N, D, len(LOOK_FEATURES)]``.

    Args:
        graph: The graph.
        placed: Device of each unit, ``int64[N]``.
    """
    n, D = len(graph), graph.num_devices
    ends = _ends(graph)
    own, cycles, work = cycles_of(ends, placed)
    relaxed = graph.node_cost[np.arange(n), placed].sum(dtype=np.float64) + _transfers(graph, placed)
    seconds = _simulated(graph, placed, work)
    launch = graph.problem.table.launch_seconds / graph.scale_seconds
    single = np.where(
        graph.allowed.all(axis=0), graph.node_cost.sum(axis=0, dtype=np.float64) + launch, np.inf
    )
    best = single.min() if np.isfinite(single).any() else 1.0
    look = np.empty((n, D, len(LOOK_FEATURES)), dtype=np.float32)
    look[:, :, 0] = placed[:, None] == np.arange(D)
    look[:, :, 1] = np.log(own)[:, None] / 4
    look[:, :, 2] = np.log1p(cycles) / 4
    for device, alone in enumerate(single):
        look[:, device, 3] = _log_ratio(relaxed, alone)
        look[:, device, 4] = _log_ratio(seconds, alone)
        look[:, device, 5] = _log_ratio(alone, best)
    return look


def _ends(graph: PolicyGraph) -> NDArray[np.int32]:
    """Producer and consumer of each edge, ``int32[E, 2]``."""
    return np.stack([graph.edge_source, graph.edge_target], axis=1).astype(np.int32)


def _transfers(graph: PolicyGraph, placed: NDArray[np.integer]) -> float:
    """Prices of all crossing edges, halfway between shared and not."""
    edges = np.arange(len(graph.edge_source))
    price = graph.edge_cost[edges, placed[graph.edge_source], placed[graph.edge_target]]
    return float((price * (0.5 + 0.5 * graph.edge_share)).sum(dtype=np.float64))


def _simulated(graph: PolicyGraph, placed: NDArray[np.integer], work: int) -> float:
    """Latency on HETERO in units of the graph's scale; infinite where simulating it would take long."""
    wiring = graph.problem.table.wiring
    nodes = len(graph) if wiring is None else len(wiring.node_group)
    has_cycles = work > len(graph)
    if has_cycles and (nodes > _MOST_NODES_IN_CYCLES or work * nodes > _MOST_WORK * len(graph)):
        return float("inf")
    devices = graph.problem.units.to_groups(placed)
    return float(simulate_batch(graph.problem.table, devices[None], threads=1)[0]) / graph.scale_seconds


def _log_ratio(seconds: float, best_single: float) -> float:
    """Logarithm of a ratio of latencies, either of which may be infinite."""
    if np.isinf(best_single):
        return 0.0 if np.isinf(seconds) else -_LARGEST
    return float(np.clip(np.log(max(seconds, 1e-12) / max(best_single, 1e-12)), -_LARGEST, _LARGEST))
