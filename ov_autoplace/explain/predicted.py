"""The run that a cost table predicts for a placement: HETERO's turns, or lanes that work at once."""

from __future__ import annotations

import heapq

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, rows_of
from ov_autoplace.explain.explanation import Cut, Explanation
from ov_autoplace.explain.timeline import NOBODY, Stage, Timeline, Transfer, lane_uses, with_path

__all__ = ["Wait", "timeline_of", "waits_of"]

_ROUNDING = 1e-9  # of the latency; sums in another order differ by less

Wait = tuple[int, int, float]
"""A subgraph, one that waits for its results, and the seconds that they take to it."""


def timeline_of(explanation: Explanation) -> Timeline:
    """The predicted run of a placement, under the objective that it is explained for."""
    return _at_once(explanation) if explanation.at_once else _in_turns(explanation)


def waits_of(explanation: Explanation) -> list[Wait]:
    """Which subgraphs wait for which others, each pair once, with the longest of their transfers."""
    subgraph_of, device_of = explanation.schedule.subgraph_of, explanation.assignment
    longest: dict[tuple[int, int], float] = {}
    for producer, size, readers in explanation.messages():
        source = int(subgraph_of[producer])
        for reader in readers:
            target = int(subgraph_of[reader])
            if target == source or NOBODY in (source, target):
                continue
            here, there = int(device_of[producer]), int(device_of[reader])
            seconds = explanation.transfer_seconds(here, there, size) if here != there else 0.0
            longest[source, target] = max(longest.get((source, target), 0.0), seconds)
    return [(source, target, seconds) for (source, target), seconds in longest.items()]


def _at_once(explanation: Explanation) -> Timeline:
    """Lanes work at once: the times are the simulator's."""
    table, schedule = explanation.table, explanation.schedule
    own = table.op_seconds[np.arange(len(table)), explanation.assignment]
    own = np.where(schedule.subgraph_of == NOBODY, 0.0, own)
    start = np.zeros(len(table))
    seconds = np.zeros(len(table))
    after = _waited_for(explanation)
    found = []
    for subgraph in range(len(schedule.lane_of)):
        groups = np.flatnonzero(schedule.subgraph_of == subgraph)
        lane = int(schedule.lane_of[subgraph])
        begin, end = float(schedule.start_seconds[subgraph]), float(schedule.finish_seconds[subgraph])
        # Work slows down while other lanes compute; here all of a submodel by the same factor.
        work = float(table.launch_seconds[lane] + own[groups].sum())
        seconds[groups] = own[groups] * ((end - begin) / work if work > 0 else 1.0)
        start[groups] = end - np.cumsum(seconds[groups][::-1])[::-1]
        ops = sum(explanation.num_ops(g) for g in groups.tolist())
        found.append(
            Stage(
                subgraph,
                table.devices[lane],
                begin,
                end - begin,
                tuple(groups.tolist()),
                ops,
                after[subgraph],
            )
        )
    latency = schedule.latency_seconds if np.isfinite(schedule.latency_seconds) else 0.0
    stages = with_path(found)
    return Timeline(
        stages=stages,
        transfers=_sent(explanation, stages, latency),
        lanes=lane_uses(table.devices, stages, latency),
        group_start=start,
        group_seconds=seconds,
        seconds=latency,
    )


def _waited_for(explanation: Explanation) -> list[int]:
    """What each submodel waited for last: the one before it on its lane, or who made what came last."""
    schedule = explanation.schedule
    start, finish = schedule.start_seconds, schedule.finish_seconds
    arriving: dict[int, list[tuple[float, int]]] = {}
    for source, target, seconds in waits_of(explanation):
        arriving.setdefault(target, []).append((float(finish[source]) + seconds, source))
    rounding = _ROUNDING * float(finish.max(initial=0.0))
    before: dict[int, int] = {}
    after = [NOBODY] * len(start)
    for subgraph in np.lexsort((finish, start)).tolist():
        lane, begin = int(schedule.lane_of[subgraph]), float(start[subgraph])
        last = before.get(lane, NOBODY)
        when, source = max(arriving.get(subgraph, [(-np.inf, NOBODY)]))
        if last != NOBODY and finish[last] >= begin - rounding:
            after[subgraph] = last
        elif when >= begin - rounding:
            after[subgraph] = source
        before[lane] = subgraph
    return after


def _sent(explanation: Explanation, stages: tuple[Stage, ...], latency: float) -> tuple[Transfer, ...]:
    """Transfers leave when their submodel has ended; critical are those that the critical path waits for."""
    by_number = {stage.subgraph: stage for stage in stages}
    transfers = []
    for cut in explanation.cuts():
        sender, receiver = by_number[cut.source_subgraph], by_number[cut.target_subgraph]
        is_last = receiver.start - (sender.end + cut.seconds) <= _ROUNDING * latency
        is_critical = receiver.is_critical and receiver.after == sender.subgraph and is_last
        transfers.append(Transfer(cut, sender.end, is_critical))
    return tuple(sorted(transfers, key=lambda transfer: (transfer.start, transfer.end)))


def _in_turns(explanation: Explanation) -> Timeline:
    """HETERO runs its subgraphs strictly one after another."""
    table, subgraph_of = explanation.table, explanation.schedule.subgraph_of
    device_of = explanation.assignment
    own: FloatArray = table.op_seconds[np.arange(len(table)), device_of]
    arriving: dict[int, list[Cut]] = {}
    for cut in explanation.cuts():
        arriving.setdefault(cut.target_subgraph, []).append(cut)
    by_subgraph = np.argsort(subgraph_of, kind="stable")
    bounds = np.searchsorted(subgraph_of[by_subgraph], np.arange(explanation.schedule.subgraphs + 1))

    # What mixing devices costs once has no place of its own in the order: it comes before everything.
    now = table.mix_seconds if len(np.unique(device_of)) > 1 else 0.0
    start = np.zeros(len(table))
    found: list[Stage] = []
    transfers: list[Transfer] = []
    for subgraph in _order(explanation):
        groups = by_subgraph[bounds[subgraph] : bounds[subgraph + 1]]
        if not len(groups):
            continue
        for cut in arriving.get(subgraph, ()):
            transfers.append(Transfer(cut, now, is_critical=True))
            now += cut.seconds
        d = int(device_of[groups[0]])
        launch = float(table.launch_seconds[d])
        ends = now + launch + np.cumsum(own[groups])
        start[groups] = ends - own[groups]
        found.append(
            Stage(
                subgraph=int(subgraph),
                device=table.devices[d],
                start=now,
                seconds=float(ends[-1]) - now,
                groups=tuple(groups.tolist()),
                ops=sum(explanation.num_ops(g) for g in groups.tolist()),
                after=found[-1].subgraph if found else NOBODY,
                is_critical=True,
            )
        )
        now = float(ends[-1])
    latency = explanation.schedule.latency_seconds
    seconds = max(latency, now) if np.isfinite(latency) else now
    return Timeline(
        stages=tuple(found),
        transfers=tuple(transfers),
        lanes=lane_uses(table.devices, found, seconds),
        group_start=start,
        group_seconds=own,
        seconds=seconds,
        # Sums in another order differ in the last digits, which is no piece.
        unlocated_seconds=latency - now if latency - now > _ROUNDING * latency else 0.0,
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
