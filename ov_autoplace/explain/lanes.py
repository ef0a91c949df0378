"""A placement on lanes: its submodels run at once, and results are handed over beside the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import BoolArray, IntArray
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import NOBODY, ROUNDING, Stage, Timeline, Transfer, lane_uses, with_path
from ov_autoplace.plan.simulator import parts_of

if TYPE_CHECKING:
    from ov_autoplace.plan.decision import Candidate

__all__ = ["LaneExplanation"]

_UNKNOWN = np.empty(0, dtype=np.int32)

# Up to so many groups better schedules are searched as a decision does, beyond for so many seconds.
_LARGE, _SECONDS = 50, 1.0


class LaneExplanation(Explanation):
    """A placement on lanes and devices; see :class:`Explanation`."""

    objective, part, place = "overlap", "submodel", "lane"

    def messages(self) -> Iterator[tuple[int, float, list[int]]]:
        """What groups make for others; of groups that cannot be parted only the first is named."""
        if not len(self.schedule.lane_of):
            return  # it cannot run, so nothing is exchanged
        parts = parts_of(self.table)
        first = np.unique(parts.piece_of, return_index=True)[1].astype(np.int32)
        readers = first[parts.consumers]
        for t, (maker, size) in enumerate(zip(parts.maker, parts.tensor_bytes, strict=True)):
            yield int(maker), float(size), readers[parts.offsets[t] : parts.offsets[t + 1]].tolist()

    def receivers(self, producer: int, readers: Sequence[int]) -> dict[int, int]:
        """A lane receives a result once, for the first submodel that reads it."""
        schedule, by_lane = self.schedule, dict[int, int]()
        when, end = schedule.start_seconds, schedule.finish_seconds
        part_of = schedule.subgraph_of
        for reader in sorted(readers, key=lambda g: (when[part_of[g]], end[part_of[g]])):
            by_lane.setdefault(int(self.assignment[reader]), reader)
        by_lane.pop(int(self.assignment[producer]), None)
        return {int(part_of[reader]): reader for reader in by_lane.values()}

    def crosses(self, links: IntArray) -> BoolArray:  # noqa: D102
        part, lane = self.schedule.subgraph_of[links], self.assignment[links]
        crosses: BoolArray = (lane[:, 0] != lane[:, 1]) & (part >= 0).all(axis=1)
        return crosses

    def assignment_of(self, candidate: Candidate) -> IntArray:  # noqa: D102
        return _UNKNOWN if candidate.scheduled is None else candidate.scheduled.assignment

    @property
    def search_seconds(self) -> float | None:  # noqa: D102
        return _SECONDS if len(self.table) > _LARGE else None

    @cached_property
    def predicted(self) -> Timeline:
        """The run that the costs predict; the times are the simulator's."""
        table, schedule = self.table, self.schedule
        own = table.op_seconds[np.arange(len(table)), self.assignment]
        own = np.where(schedule.subgraph_of == NOBODY, 0.0, own)
        start = np.zeros(len(table))
        seconds = np.zeros(len(table))
        after = self._waited_for()
        found = []
        for submodel in range(len(schedule.lane_of)):
            groups = np.flatnonzero(schedule.subgraph_of == submodel)
            lane = int(schedule.lane_of[submodel])
            begin, end = float(schedule.start_seconds[submodel]), float(schedule.finish_seconds[submodel])
            # Work slows down while other lanes compute; here all of a submodel by the same factor.
            work = float(table.launch_seconds[lane] + own[groups].sum())
            seconds[groups] = own[groups] * ((end - begin) / work if work > 0 else 1.0)
            start[groups] = end - np.cumsum(seconds[groups][::-1])[::-1]
            found.append(
                Stage(
                    subgraph=submodel,
                    device=table.devices[lane],
                    start=begin,
                    seconds=end - begin,
                    groups=tuple(groups.tolist()),
                    ops=sum(self.num_ops(g) for g in groups.tolist()),
                    after=after[submodel],
                )
            )
        latency = schedule.latency_seconds if np.isfinite(schedule.latency_seconds) else 0.0
        stages = with_path(found)
        return Timeline(
            stages=stages,
            transfers=self._sent(stages),
            lanes=lane_uses(table.devices, stages, latency),
            group_start=start,
            group_seconds=seconds,
            seconds=latency,
        )

    def _waited_for(self) -> list[int]:
        """What each submodel waited for last: the one before it on its lane, or who made what came last."""
        start, finish = self.schedule.start_seconds, self.schedule.finish_seconds
        arriving: dict[int, list[tuple[float, int]]] = {}
        for source, target, seconds in self.waits():
            arriving.setdefault(target, []).append((float(finish[source]) + seconds, source))
        rounding = ROUNDING * float(finish.max(initial=0.0))
        before: dict[int, int] = {}
        after = [NOBODY] * len(start)
        for submodel in np.lexsort((finish, start)).tolist():
            lane, begin = int(self.schedule.lane_of[submodel]), float(start[submodel])
            last = before.get(lane, NOBODY)
            when, source = max(arriving.get(submodel, [(-np.inf, NOBODY)]))
            if last != NOBODY and finish[last] >= begin - rounding:
                after[submodel] = last
            elif when >= begin - rounding:
                after[submodel] = source
            before[lane] = submodel
        return after

    def _sent(self, stages: tuple[Stage, ...]) -> tuple[Transfer, ...]:
        """Transfers, which leave when their submodel has ended."""
        end = {stage.subgraph: stage.end for stage in stages}
        transfers = [Transfer(cut, end[cut.source_subgraph]) for cut in self.cuts()]
        return tuple(sorted(transfers, key=lambda transfer: (transfer.start, transfer.end)))
