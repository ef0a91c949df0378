"""The ``overlap`` objective in plain Python, from its definition: sets, and one moment after the other.

Written from the prose of ``ov_autoplace/plan/simulator.py``: sets of relatives where the core has bits,
the work that is left of every submodel where the core has the moments at which they end.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ov_autoplace.cost.table import CostTable

ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class Plan:
    """Submodels as sets of groups, with their lanes and times."""

    submodels: list[frozenset[int]]
    lane: list[int]
    start: list[float]
    finish: list[float]

    @property
    def makespan(self) -> float:
        return max(self.finish, default=0.0)


class Overlap:
    """A table that is wired by its groups: every tensor that is no constant makes its consumers wait."""

    def __init__(self, table: CostTable, lane_of: Sequence[int]) -> None:
        self.table, self.lane_of = table, list(lane_of)
        self.G = len(table)
        inputs = {g for g in range(self.G) if table.op_types is not None and table.op_types[g] == "Parameter"}
        self.runs = {
            g
            for g in range(self.G)
            if g not in inputs or any(0 < s < math.inf for s in table.op_seconds[g].tolist())
        }
        # (producer, consumer, seconds until it is on the consumer's lane)
        self.arcs: list[tuple[int, int, float]] = []
        for t, p in enumerate(table.tensor_producer.tolist()):
            if table.tensor_is_constant[t] or p in inputs:
                continue
            for c in table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]].tolist():
                a, b = self.lane_of[p], self.lane_of[c]
                way = (
                    table.transfer_latency[a, b]
                    + table.transfer_seconds_per_byte[a, b] * table.tensor_bytes[t]
                )
                self.arcs.append((p, c, 0.0 if a == b else float(way)))
        self.above = self._closure([(c, p) for p, c, _ in self.arcs])
        self.below = self._closure([(p, c) for p, c, _ in self.arcs])

    def _closure(self, arcs: list[tuple[int, int]]) -> list[set[int]]:
        reached: list[set[int]] = [set() for _ in range(self.G)]
        while True:
            before = sum(map(len, reached))
            for a, b in arcs:
                reached[a] |= {b} | reached[b]
            if sum(map(len, reached)) == before:
                return reached

    def bound_together(self) -> list[set[int]]:
        """Groups that share a submodel everywhere: ends of uncuttable tensors, and all between them."""
        table = self.table
        together = [{g} for g in range(self.G)]
        for t, p in enumerate(table.tensor_producer.tolist()):
            if table.tensor_uncuttable[t]:
                row = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]].tolist()
                together.append({p, *row})
        while True:
            merged = _united(together)
            between = [
                piece | {g for g in range(self.G) if self._is_between(g, piece, merged)} for piece in merged
            ]
            if between == merged:
                return merged
            together = between

    def _is_between(self, g: int, piece: set[int], pieces: list[set[int]]) -> bool:
        """Whether a piece waits for the group and the group for the piece, over whole pieces."""
        own = next(p for p in pieces if g in p)
        return own != piece and self._reaches(piece, own, pieces) and self._reaches(own, piece, pieces)

    def _reaches(self, source: set[int], target: set[int], pieces: list[set[int]]) -> bool:
        seen = set(source)
        while True:
            more = {c for p, c, _ in self.arcs if p in seen} - seen
            if not more:
                return bool(seen & target)
            seen |= set().union(*(p for p in pieces if p & more))

    def plan(self) -> Plan | None:
        """The best plan, ``None`` when the placement cannot run."""
        seconds = self.table.op_seconds[np.arange(self.G), self.lane_of]
        pieces = self.bound_together()
        if np.isinf(seconds).any() or any(len({self.lane_of[g] for g in piece}) > 1 for piece in pieces):
            return None
        fine = self.finest(pieces)
        finest = self.schedule(fine)
        best: Plan | None = None
        for plan in (
            finest,
            self.schedule(self.without_idle_cuts(finest)),
            self.schedule(self.by_depth(fine)),
        ):
            if plan is None:
                continue
            is_faster = best is None or plan.makespan * ROUNDING < best.makespan
            is_as_fast_with_fewer = (
                best is not None
                and len(plan.submodels) < len(best.submodels)
                and plan.makespan <= best.makespan * ROUNDING
            )
            if is_faster or is_as_fast_with_fewer:
                best = plan
        return best

    def finest(self, pieces: list[set[int]]) -> list[frozenset[int]]:
        """Groups of a lane for which the same groups of other lanes wait, and which wait for the same."""
        lane = self.lane_of
        labels: dict[int, Hashable] = {}
        for piece in pieces:
            above, below = self._relatives(piece, pieces, up=True), self._relatives(piece, pieces, up=False)
            for g in piece & self.runs:
                labels[g] = (
                    lane[g],
                    frozenset(o for o in above if lane[o] != lane[g]),
                    frozenset(o for o in below if lane[o] != lane[g]),
                )
        return _classes(labels)

    def _relatives(self, piece: set[int], pieces: list[set[int]], up: bool) -> set[int]:
        seen = set(piece)
        while True:
            reach = {(p if up else c) for p, c, _ in self.arcs if (c if up else p) in seen}
            more = set().union(set(), *(p for p in pieces if p & reach)) - seen
            if not more:
                return seen - piece
            seen |= more

    def by_depth(self, fine: list[frozenset[int]]) -> list[frozenset[int]]:
        """Submodels with as many transfers on the longest way to them, and from them."""
        arcs = self._between(fine)

        def depth(s: int, up: bool) -> int:
            ways = [
                depth(a if up else b, up) + (self._lane(fine[a]) != self._lane(fine[b]))
                for a, b in arcs
                if (b if up else a) == s
            ]
            return max(ways, default=0)

        labels = {
            g: (self._lane(members), depth(s, True), depth(s, False))
            for s, members in enumerate(fine)
            for g in members
        }
        return _classes(labels)

    def _lane(self, members: frozenset[int]) -> int:
        return self.lane_of[min(members)]

    def _between(self, submodels: list[frozenset[int]]) -> dict[tuple[int, int], float]:
        """The longest transfer between each pair of submodels."""
        of = {g: s for s, members in enumerate(submodels) for g in members}
        longest: dict[tuple[int, int], float] = {}
        for p, c, way in self.arcs:
            if of[p] != of[c]:
                longest[of[p], of[c]] = max(way, longest.get((of[p], of[c]), 0.0))
        return longest

    def schedule(self, submodels: list[frozenset[int]]) -> Plan | None:
        """The list schedule, one event after the other; ``None`` when submodels wait for themselves."""
        table, S = self.table, len(submodels)
        lane = [self._lane(members) for members in submodels]
        work = [
            float(table.launch_seconds[lane[s]])
            + sum(float(table.op_seconds[g, lane[s]]) for g in sorted(submodels[s]))
            for s in range(S)
        ]
        arcs = self._between(submodels)
        if not _is_acyclic(S, list(arcs)):
            return None
        rank: dict[int, float] = {}

        def rank_of(s: int) -> float:
            if s not in rank:
                rank[s] = work[s] + max(
                    (way + rank_of(b) for (a, b), way in arcs.items() if a == s), default=0.0
                )
            return rank[s]

        now = table.mix_seconds if len(set(map(int, lane))) > 1 else 0.0
        left, start, finish = dict(enumerate(work)), [math.nan] * S, [math.nan] * S
        running: dict[int, int] = {}  # lane: submodel
        while left:
            # Lanes that are free take, of what has arrived, what has the longest way to the end.
            for d in range(table.num_devices):
                ready = [
                    s
                    for s in left
                    if lane[s] == d
                    and s not in running.values()
                    and all(finish[a] + way <= now for (a, b), way in arcs.items() if b == s)
                ]
                if d not in running and ready:
                    running[d] = min(ready, key=lambda s: (-rank_of(s), min(submodels[s])))
                    start[running[d]] = now
            pace = table.corun_factor if len(running) > 1 else 1.0
            # Until the next submodel ends, or the next tensor arrives.
            ends = [now + left[s] * pace for s in running.values()]
            arrivals = [
                finish[a] + way for (a, b), way in arcs.items() if b in left and finish[a] + way > now
            ]
            then = min([*ends, *arrivals])
            for d, s in list(running.items()):
                if now + left[s] * pace <= then:
                    finish[s] = then
                    del running[d], left[s]
                else:
                    left[s] -= (then - now) / pace
            now = then
        return Plan(submodels, lane, start, finish)

    def without_idle_cuts(self, plan: Plan) -> list[frozenset[int]]:
        """Neighbours on a lane become one where nobody starts later for it."""
        arcs = self._between(plan.submodels)
        runs: list[list[int]] = []
        latest: dict[int, list[int]] = {}
        order = sorted(range(len(plan.submodels)), key=lambda s: (plan.start[s], plan.finish[s]))
        for s in order:
            run = latest.get(plan.lane[s])
            if run is not None:
                begins = plan.start[run[0]]
                has_inputs = all(
                    a in run or plan.finish[a] + way <= begins * ROUNDING
                    for (a, b), way in arcs.items()
                    if b == s
                )
                taken = [
                    plan.start[b] - way
                    for (a, b), way in arcs.items()
                    if a in run and plan.lane[b] != plan.lane[a]
                ]
                if has_inputs and plan.finish[s] <= min(taken, default=math.inf) * ROUNDING:
                    run.append(s)
                    continue
            latest[plan.lane[s]] = [s]
            runs.append(latest[plan.lane[s]])
        return sorted((frozenset().union(*(plan.submodels[s] for s in run)) for run in runs), key=min)


def latency_seconds(table: CostTable, lane_of: Sequence[int]) -> float:
    """The latency of a placement; ``inf`` when it cannot run."""
    plan = Overlap(table, lane_of).plan()
    return math.inf if plan is None else plan.makespan


def _classes(labels: dict[int, Hashable]) -> list[frozenset[int]]:
    members: dict[Hashable, set[int]] = {}
    for g, label in sorted(labels.items()):
        members.setdefault(label, set()).add(g)
    return [frozenset(groups) for groups in members.values()]


def _united(sets: list[set[int]]) -> list[set[int]]:
    """Sets that overlap become one."""
    united: list[set[int]] = []
    for new in sets:
        apart = [s for s in united if not s & new]
        united = [*apart, new.union(*(s for s in united if s & new))]
    return sorted(united, key=min)


def _is_acyclic(nodes: int, arcs: list[tuple[int, int]]) -> bool:
    left = set(range(nodes))
    while left:
        free = {s for s in left if not any(b == s and a in left for a, b in arcs)}
        if not free:
            return False
        left -= free
    return True
