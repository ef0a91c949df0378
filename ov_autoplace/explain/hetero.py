"""A placement that HETERO runs: its subgraphs take turns, and nothing runs while a result is transferred."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, rows_of
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import NOBODY, ROUNDING, Cut, Stage, Timeline, Transfer, lane_uses

if TYPE_CHECKING:
    from ov_autoplace.plan.decision import Candidate

__all__ = ["HeteroExplanation"]

_UNKNOWN = np.empty(0, dtype=np.int32)


class HeteroExplanation(Explanation):
    """A placement on devices; see :class:`Explanation`."""

    objective, part, place = "hetero", "subgraph", "device"

    def messages(self) -> Iterator[tuple[int, float, list[int]]]:
        """What groups make for others; constants are copied to their readers before anything runs."""
        table = self.table
        for t in np.flatnonzero(~table.tensor_is_constant).tolist():
            readers = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
            yield int(table.tensor_producer[t]), float(table.tensor_bytes[t]), readers.tolist()

    def receivers(self, producer: int, readers: Sequence[int]) -> dict[int, int]:
        """A subgraph receives a result once, however many of its groups read it."""
        subgraph_of = self.schedule.subgraph_of
        found = {int(subgraph_of[g]): int(g) for g in readers}
        found.pop(int(subgraph_of[producer]), None)
        return found

    def crosses(self, links: IntArray) -> BoolArray:  # noqa: D102
        subgraph = self.schedule.subgraph_of[links]
        crosses: BoolArray = subgraph[:, 0] != subgraph[:, 1]
        return crosses

    def assignment_of(self, candidate: Candidate) -> IntArray:  # noqa: D102
        return _UNKNOWN if candidate.plan.lane_count else candidate.assignment

    @cached_property
    def predicted(self) -> Timeline:  # noqa: D102
        table, subgraph_of = self.table, self.schedule.subgraph_of
        own: FloatArray = table.op_seconds[np.arange(len(table)), self.assignment]
        arriving: dict[int, list[Cut]] = {}
        for cut in self.cuts():
            arriving.setdefault(cut.target_subgraph, []).append(cut)
        by_subgraph = np.argsort(subgraph_of, kind="stable")
        bounds = np.searchsorted(subgraph_of[by_subgraph], np.arange(self.schedule.subgraphs + 1))

        # What mixing devices costs once has no place of its own in the order: it comes before everything.
        now = table.mix_seconds if len(np.unique(self.assignment)) > 1 else 0.0
        start = np.zeros(len(table))
        found: list[Stage] = []
        transfers: list[Transfer] = []
        for subgraph in self._order():
            groups = by_subgraph[bounds[subgraph] : bounds[subgraph + 1]]
            if not len(groups):
                continue
            for cut in arriving.get(subgraph, ()):
                transfers.append(Transfer(cut, now))
                now += cut.seconds
            d = int(self.assignment[groups[0]])
            ends = now + float(table.launch_seconds[d]) + np.cumsum(own[groups])
            start[groups] = ends - own[groups]
            found.append(
                Stage(
                    subgraph=int(subgraph),
                    device=table.devices[d],
                    start=now,
                    seconds=float(ends[-1]) - now,
                    groups=tuple(groups.tolist()),
                    ops=sum(self.num_ops(g) for g in groups.tolist()),
                    after=found[-1].subgraph if found else NOBODY,
                    is_critical=True,
                )
            )
            now = float(ends[-1])
        latency = self.schedule.latency_seconds
        seconds = max(latency, now) if np.isfinite(latency) else now
        return Timeline(
            stages=tuple(found),
            transfers=tuple(transfers),
            lanes=lane_uses(table.devices, found, seconds),
            group_start=start,
            group_seconds=own,
            seconds=seconds,
            # Sums in another order differ in the last digits, which is no piece.
            unlocated_seconds=latency - now if latency - now > ROUNDING * latency else 0.0,
        )

    def _order(self) -> list[int]:
        """The subgraphs so that producers run before consumers, the lowest number first.

        A group that HETERO cuts counts with its first op only, so that subgraphs can seem to wait for each
        other; the lowest number of those that wait then goes first.
        """
        table, subgraph_of = self.table, self.schedule.subgraph_of
        tensor = rows_of(table.tensor_offsets)
        links = np.stack(
            [subgraph_of[table.tensor_producer[tensor]], subgraph_of[table.tensor_consumers]], axis=1
        )
        links = links[~table.tensor_is_constant[tensor] & (links[:, 0] != links[:, 1])]
        links = np.unique(links, axis=0)
        count = self.schedule.subgraphs
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
        return order
