"""What simple placements of a graph would run into: the part of HETERO's costs that no edge shows.

HETERO cuts subgraphs that wait for each other in a cycle, and each cut costs a launch and transfers.
Whether a mix of devices makes cycles, and what they cost, is a property of the whole placement: next to
nothing in a chain, most of the latency in an unrolled recurrent network. So each graph is probed: on the
first levels of grouping every group is put where it is cheapest, and the policy is told, of each unit, how
many subgraphs are in the cycle that its own lies in, and of the whole graph, how many are in any, and what
the placement costs without cycles and as HETERO would run it.

A network that *looks* is told the same of its own answer so far, against running everything on each single
device, before it answers again: what a placement runs into is the one thing that it cannot see in advance.
Where devices work at once, it is told the schedule: when units run, and which lanes are idle then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.placement.simulator import simulate
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.cycles import cycles_of

__all__ = [
    "LOOK_FEATURES",
    "PROBED_LEVELS",
    "PROBE_FEATURES",
    "look_features",
    "probe_features",
]

PROBED_LEVELS = 3

PROBE_FEATURES = tuple(
    f"level{level}_{name}"
    for level in range(PROBED_LEVELS)
    for name in ("log_own_cycle", "log_all_cycles", "log_relaxed_by_single", "log_simulated_by_single")
)
"""Columns of :func:`probe_features`."""

LOOK_FEATURES = (
    "chosen",
    "log_own_cycle",
    "log_all_cycles",
    "log_relaxed_by_single",
    "log_simulated_by_single",
    "log_single_by_best_single",
    "busy",
    "start",
    "finish",
    "memory_held",
)
"""Columns of :func:`look_features`."""

_MOST_WORK = 200_000  # nodes visited by one simulation: some milliseconds
_MOST_NODES_IN_CYCLES = 10_000  # of larger graphs, taking a single cycle apart may last for seconds
_LARGEST = 3.0  # of a logarithm of latencies
_SHORTEST_LOOK = 0.02  # of the makespan


def probe_features(graph: PolicyGraph) -> NDArray[np.float32]:
    """What simple placements of N units would run into, ``float32[N, len(PROBE_FEATURES)]``; made once."""
    if "probes" not in graph.kept:
        graph.kept["probes"] = _probe(graph)
    probes: NDArray[np.float32] = graph.kept["probes"]
    return probes


def _probe(graph: PolicyGraph) -> NDArray[np.float32]:
    n = len(graph)
    unit = np.arange(n)
    if graph.objective == "overlap":
        return np.zeros((n, len(PROBE_FEATURES)), dtype=np.float32)  # lanes know no cycles
    best_single = max(float(graph.node_cost.sum(axis=0).min()), 1e-12)
    group, simple = unit, []
    for level in graph.levels[:PROBED_LEVELS]:
        placed = level.cost.argmin(axis=1)[group]
        simple.append(np.where(graph.allowed[unit, placed], placed, graph.node_cost.argmin(axis=1)))
        group = level.parent[group]
    columns: list[NDArray[np.float64]] = []
    for own, cycles, relaxed, seconds in _what_happens(graph, simple):
        columns += [
            np.log(own) / 4,
            np.full(n, np.log1p(cycles) / 4),
            np.full(n, _log_ratio(relaxed, best_single)),
            np.full(n, _log_ratio(seconds, best_single)),
        ]
    return np.stack(columns, axis=1).astype(np.float32)


def look_features(graph: PolicyGraph, placed: NDArray[np.integer]) -> NDArray[np.float32]:
    """What an answer runs into, for each of N units and D devices, ``float32[N, D, len(LOOK_FEATURES)]``.

    Args:
        graph: The graph.
        placed: Device of each unit, ``int[N]``.
    """
    n, D = len(graph), graph.num_devices
    ((own, cycles, relaxed, seconds),) = _what_happens(graph, [placed])
    busy, start, finish = np.zeros((n, D)), np.zeros(n), np.zeros(n)
    if graph.objective == "overlap":
        seconds, busy, start, finish = _schedule(graph, placed)
    elif graph.objective == "rate":
        load = np.bincount(placed, graph.node_cost[np.arange(n), placed], D)
        busy = np.broadcast_to(load / max(float(load.max()), 1e-12), (n, D))
    launch = graph.problem.table.launch_seconds / graph.scale_seconds
    single = np.where(
        graph.allowed.all(axis=0), graph.node_cost.sum(axis=0, dtype=np.float64) + launch, np.inf
    )
    best = single.min() if np.isfinite(single).any() else 1.0
    held = np.bincount(placed, graph.memory_share[np.arange(n), placed], D) @ graph.same_device
    look = np.empty((n, D, len(LOOK_FEATURES)), dtype=np.float32)
    look[:, :, 0] = placed[:, None] == np.arange(D)
    look[:, :, 1] = np.log(own)[:, None] / 4
    look[:, :, 2] = np.log1p(cycles) / 4
    for device, alone in enumerate(single):
        look[:, device, 3] = _log_ratio(relaxed, alone)
        look[:, device, 4] = _log_ratio(seconds, alone)
        look[:, device, 5] = _log_ratio(alone, best)
    look[:, :, 6] = busy
    look[:, :, 7] = start[:, None]
    look[:, :, 8] = finish[:, None]
    look[:, :, 9] = np.minimum(held, 2.0)
    return look


def _what_happens(
    graph: PolicyGraph, placements: Sequence[NDArray[np.integer]]
) -> list[tuple[NDArray[np.int64], int, float, float]]:
    """Of each placement: subgraphs in each unit's cycle and in all cycles, relaxed and simulated latency.

    On lanes no subgraphs wait for each other in a cycle; what happens there, a schedule says.
    """
    n = len(graph)
    relaxed = [
        graph.node_cost[np.arange(n), placed].sum(dtype=np.float64) + _transfers(graph, placed)
        for placed in placements
    ]
    if graph.objective == "overlap":
        return [(np.ones(n, dtype=np.int64), 0, seconds, seconds) for seconds in relaxed]
    ends = _ends(graph)
    found = [cycles_of(ends, placed) for placed in placements]
    simulated = _simulated(graph, placements, [work for _, _, work in found])
    return [
        (own, cycles, *seconds) for (own, cycles, _), *seconds in zip(found, relaxed, simulated, strict=True)
    ]


def _schedule(
    graph: PolicyGraph, placed: NDArray[np.integer]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """What a placement's schedule says.

    Returns:
        The makespan by the graph's scale; and by the makespan, how busy each lane is about the time of each
        unit, ``[N, D]``, and when units start and finish, ``[N]`` each.
    """
    problem, n, D = graph.problem, len(graph), graph.num_devices
    schedule = simulate(problem.table, problem.units.to_groups(placed), "overlap")
    makespan = schedule.latency_seconds
    if not 0 < makespan < np.inf:
        return float("inf"), np.zeros((n, D)), np.zeros(n), np.zeros(n)
    begins, ends = schedule.start_seconds / makespan, schedule.finish_seconds / makespan
    # A unit runs with the submodel of its last group; what is in none takes no time.
    submodel = np.full(n, -1)
    submodel[problem.units.unit_of] = schedule.subgraph_of
    runs = submodel >= 0
    start, finish = np.zeros(n), np.zeros(n)
    start[runs], finish[runs] = begins[submodel[runs]], ends[submodel[runs]]
    margin = np.maximum(finish - start, _SHORTEST_LOOK) / 2
    span = np.stack([np.clip(start - margin, 0.0, 1.0), np.clip(finish + margin, 0.0, 1.0)])
    busy = np.empty((n, D))
    for d in range(D):
        mine = np.flatnonzero(schedule.lane_of == d)
        mine = mine[np.argsort(begins[mine], kind="stable")]
        moments = np.stack([begins[mine], ends[mine]], axis=1).ravel()
        worked = np.repeat(np.cumsum(ends[mine] - begins[mine]), 2)
        worked[::2] -= ends[mine] - begins[mine]
        moments, worked = np.append(moments, 1.0), np.append(worked, worked[-1:].sum())
        busy[:, d] = np.diff(np.interp(span, moments, worked, left=0.0), axis=0)[0] / (span[1] - span[0])
    return makespan / graph.scale_seconds, busy, start, finish


def _ends(graph: PolicyGraph) -> NDArray[np.int32]:
    """Producer and consumer of each edge, ``int32[E, 2]``."""
    return np.stack([graph.edge_source, graph.edge_target], axis=1).astype(np.int32)


def _transfers(graph: PolicyGraph, placed: NDArray[np.integer]) -> float:
    """Prices of all crossing edges, halfway between shared and not."""
    edges = np.arange(len(graph.edge_source))
    price = graph.edge_cost[edges, placed[graph.edge_source], placed[graph.edge_target]]
    return float((price * (0.5 + 0.5 * graph.edge_share)).sum(dtype=np.float64))


def _simulated(
    graph: PolicyGraph, placements: Sequence[NDArray[np.integer]], work: Sequence[int]
) -> list[float]:
    """Latencies in units of the graph's scale; infinite where simulating one would take long.

    The evaluator remembers them for whoever compares answers.
    """
    wiring = graph.problem.table.wiring
    nodes = len(graph) if wiring is None else len(wiring.node_group)

    def takes_long(visited: int) -> bool:
        has_cycles = visited > len(graph)
        return has_cycles and (nodes > _MOST_NODES_IN_CYCLES or visited * nodes > _MOST_WORK * len(graph))

    quick = [i for i, visited in enumerate(work) if not takes_long(visited)]
    seconds = np.full(len(placements), np.inf)
    if quick:
        rows = np.stack([placements[i] for i in quick]).astype(np.int32)
        seconds[quick] = graph.problem.evaluator.latencies(rows)
    return [float(value) for value in seconds / graph.scale_seconds]


def _log_ratio(seconds: float, best_single: float) -> float:
    """Logarithm of a ratio of latencies, either of which may be infinite."""
    if np.isinf(best_single):
        return 0.0 if np.isinf(seconds) else -_LARGEST
    return float(np.clip(np.log(max(seconds, 1e-12) / max(best_single, 1e-12)), -_LARGEST, _LARGEST))
