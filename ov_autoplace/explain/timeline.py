"""When each subgraph, group and transfer of a placement runs, as HETERO would run one request."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, rows_of
from ov_autoplace.explain.explanation import Cut, Explanation

__all__ = ["Stage", "Timeline", "Transfer", "timeline_of"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One subgraph in time.

    Attributes:
        subgraph: Its number.
        device: Where it runs.
        start, seconds: From its launch to the end of its last group, transfers left out.
        groups: Its groups in the order in which they run.
        ops: Number of its ops.
    """

    subgraph: int
    device: str
    start: float
    seconds: float
    groups: tuple[int, ...]
    ops: int

    @property
    def end(self) -> float:
        """When its last group has ended."""
        return self.start + self.seconds


@dataclass(frozen=True, slots=True)
class Transfer:
    """A cut in time; it is paid before the receiving subgraph starts."""

    cut: Cut
    start: float

    @property
    def end(self) -> float:
        """When the receiver has it."""
        return self.start + self.cut.seconds


@dataclass(frozen=True, eq=False, slots=True)
class Timeline:
    """One request, from 0 to ``seconds``.

    Attributes:
        stages: In the order in which they run.
        transfers: In the order in which they run.
        group_start: When each group starts, ``float64[G]``.
        group_seconds: How long it runs, ``float64[G]``.
        seconds: The predicted latency.
        unlocated_seconds: What is part of it and belongs to no group: pieces that HETERO cuts off inside
            groups, with their launches and transfers. They follow the last stage.
    """

    stages: tuple[Stage, ...]
    transfers: tuple[Transfer, ...]
    group_start: FloatArray
    group_seconds: FloatArray
    seconds: float
    unlocated_seconds: float


def timeline_of(explanation: Explanation) -> Timeline:
    """The predicted run of a placement: HETERO runs its subgraphs strictly one after another."""
    table, subgraph_of = explanation.table, explanation.schedule.subgraph_of
    device_of = explanation.assignment
    own = table.op_seconds[np.arange(len(table)), device_of]
    arriving: dict[int, list[Cut]] = {}
    for cut in explanation.cuts():
        arriving.setdefault(cut.target_subgraph, []).append(cut)
    by_subgraph = np.argsort(subgraph_of, kind="stable")
    bounds = np.searchsorted(subgraph_of[by_subgraph], np.arange(explanation.schedule.subgraphs + 1))

    # What mixing devices costs once has no place of its own in the order: it comes before everything.
    now = table.mix_seconds if len(np.unique(device_of)) > 1 else 0.0
    start = np.zeros(len(table))
    stages: list[Stage] = []
    transfers: list[Transfer] = []
    for subgraph in _order(explanation):
        groups = by_subgraph[bounds[subgraph] : bounds[subgraph + 1]]
        if not len(groups):
            continue
        for cut in arriving.get(subgraph, ()):
            transfers.append(Transfer(cut, now))
            now += cut.seconds
        d = int(device_of[groups[0]])
        launch = float(table.launch_seconds[d])
        ends = now + launch + np.cumsum(own[groups])
        start[groups] = ends - own[groups]
        stages.append(
            Stage(
                subgraph=subgraph,
                device=table.devices[d],
                start=now,
                seconds=float(ends[-1]) - now,
                groups=tuple(groups.tolist()),
                ops=sum(explanation.num_ops(g) for g in groups.tolist()),
            )
        )
        now = float(ends[-1])
    latency = explanation.schedule.latency_seconds
    return Timeline(
        stages=tuple(stages),
        transfers=tuple(transfers),
        group_start=start,
        group_seconds=own,
        seconds=max(latency, now) if np.isfinite(latency) else now,
        # Sums in another order differ in the last digits, which is no piece.
        unlocated_seconds=latency - now if latency - now > 1e-9 * latency else 0.0,
    )


def _order(explanation: Explanation) -> IntArray:
    """The subgraphs so that producers run before consumers, the lowest number first.

    A group that HETERO cuts counts with its first op only, so that subgraphs can seem to wait for each
    other; the lowest number of those that wait then goes first.
    """
    table, subgraph_of = explanation.table, explanation.schedule.subgraph_of
    tensor = rows_of(table.tensor_offsets)
    links = np.stack(
        [subgraph_of[table.tensor_producer[tensor]], subgraph_of[table.tensor_consumers]], axis=1
    )
    links = links[~table.tensor_is_constant[tensor] & (links[:, 0] != links[:, 1])]
    links = np.unique(links, axis=0)
    count = explanation.schedule.subgraphs
    waits_for = np.bincount(links[:, 1], minlength=count)
    offsets = np.searchsorted(links[:, 0], np.arange(count + 1))
    ready = np.flatnonzero(waits_for == 0).tolist()
    done = np.zeros(count, dtype=np.bool_)
    order: list[int] = []
    lowest = 0
    while len(order) < count:
        if ready:
            subgraph = heapq.heappop(ready)
        else:
            while done[lowest]:
                lowest += 1
            subgraph = lowest
        if done[subgraph]:
            continue
        done[subgraph] = True
        order.append(subgraph)
        for successor in links[offsets[subgraph] : offsets[subgraph + 1], 1].tolist():
            waits_for[successor] -= 1
            if waits_for[successor] == 0 and not done[successor]:
                heapq.heappush(ready, successor)
    return np.array(order, dtype=np.int32)
