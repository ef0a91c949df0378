"""Two reports side by side: what differs in what was decided, what it costs, and where ops run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ov_autoplace.placement.decision import RateRow
from ov_autoplace.report.latency import Latency
from ov_autoplace.report.saved import SavedPlacement, SavedReport

__all__ = ["ANSWER", "Comparison", "LatencyPair", "MovedOps", "RatePair", "TypePair", "compare"]

_Row = TypeVar("_Row", Latency, RateRow)

ANSWER = "the answer"
"""Name of the pair of those that were chosen, whatever they are called."""


@dataclass(frozen=True, slots=True)
class LatencyPair:
    """A candidate in the first and the second report; ``None`` = it is not there."""

    name: str
    first: Latency | None
    second: Latency | None

    @property
    def measured_change(self) -> float | None:
        """How much longer the second was measured, as a share of the first."""
        if self.first is None or self.second is None:
            return None
        return _change(self.first.median, self.second.median)

    @property
    def predicted_change(self) -> float | None:
        """The same of the predictions."""
        if self.first is None or self.second is None:
            return None
        return _change(self.first.predicted, self.second.predicted)

    @property
    def is_told_apart(self) -> bool:
        """Whether both were measured, and their 95 % intervals do not overlap."""
        first = None if self.first is None else self.first.interval
        second = None if self.second is None else self.second.interval
        return first is not None and second is not None and (first[1] < second[0] or second[1] < first[0])


@dataclass(frozen=True, slots=True)
class RatePair:
    """A way to run many requests in the first and the second report; ``None`` = it is not there."""

    name: str
    first: RateRow | None
    second: RateRow | None

    @property
    def chosen_in(self) -> str:
        """In which of the reports it is the answer: ``A``, ``B``, ``A and B``, or in none."""
        rows = (("A", self.first), ("B", self.second))
        return " and ".join(letter for letter, row in rows if row is not None and row.is_answer)


@dataclass(frozen=True, slots=True)
class TypePair:
    """Groups by the type of their heaviest op: how many, and their predicted seconds where they run."""

    kind: str
    first_groups: int
    second_groups: int
    first_seconds: float
    second_seconds: float


@dataclass(frozen=True, slots=True)
class MovedOps:
    """Ops of one group of the first report that the second one runs on another device.

    Attributes:
        group, kind: The group's heaviest op, and its type.
        ops: Those that moved.
        source, target: Their devices.
        first_seconds: Predicted time of the group.
        second_seconds: Of the second report's group that has the same heaviest op; ``None`` = there is none.
    """

    group: str
    kind: str
    ops: tuple[str, ...]
    source: str
    target: str
    first_seconds: float
    second_seconds: float | None


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """What two reports have in common, and what not.

    Attributes:
        first, second: The reports.
        facts: What both say of themselves: name, first and second value; empty = it says nothing.
        latencies: The answers, and below them the candidates by name.
        rates: Ways to run many requests, by name; empty where neither report has any.
        kinds: Costs by op type, the largest difference first; empty where a report has no ops.
        moved: Ops on another device, by group, the heaviest first.
        moves: How many from which device to which, the most first.
        on_another_lane: Ops that stay on their device, on another lane of it.
        only_first, only_second: Ops that only one of them has.
    """

    first: SavedReport
    second: SavedReport
    facts: tuple[tuple[str, str, str], ...]
    latencies: tuple[LatencyPair, ...]
    rates: tuple[RatePair, ...]
    kinds: tuple[TypePair, ...]
    moved: tuple[MovedOps, ...]
    moves: tuple[tuple[str, str, int], ...]
    on_another_lane: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def has_ops(self) -> bool:
        """Whether both reports say where their ops run."""
        return self.first.placement is not None and self.second.placement is not None

    @property
    def summary(self) -> str:
        """How many ops moved where, in a sentence; empty where ops are not compared."""
        if not self.has_ops:
            return ""
        found = [f"{count:,} from {source} to {target}" for source, target, count in self.moves]
        parts = [f"ops on another device: {', '.join(found) if found else 'none'}"]
        if self.on_another_lane:
            parts.append(f"on another lane of the same device: {self.on_another_lane:,}")
        for letter, only in (("A", self.only_first), ("B", self.only_second)):
            if only:
                parts.append(f"only in {letter}: {len(only):,}")
        return "; ".join(parts)

    @property
    def missing(self) -> str:
        """What cannot be compared and why, in a sentence; empty where nothing is missing."""
        without = [str(report.path) for report in (self.first, self.second) if report.placement is None]
        if not without:
            return ""
        return (
            f"Ops are not compared: {' and '.join(without)} {'say' if len(without) > 1 else 'says'} "
            "nothing of them. Reports (--report FILE.json) and what explain prints with --json do."
        )


def compare(first: SavedReport, second: SavedReport) -> Comparison:
    """Compare two reports, of the same model or of different ones."""
    moved: tuple[MovedOps, ...] = ()
    kinds: tuple[TypePair, ...] = ()
    another_lane = 0
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()
    if first.placement is not None and second.placement is not None:
        kinds = _kinds(first.placement, second.placement)
        before, after = _lanes(first.placement), _lanes(second.placement)
        moved = _moved(first.placement, second.placement, after)
        elsewhere = {op for group in moved for op in group.ops}
        another_lane = sum(lane != after.get(op, lane) and op not in elsewhere for op, lane in before.items())
        only_first = tuple(op for op in before if op not in after)
        only_second = tuple(op for op in after if op not in before)
    counts: Counter[tuple[str, str]] = Counter()
    for group in moved:
        counts[group.source, group.target] += len(group.ops)
    return Comparison(
        first=first,
        second=second,
        facts=tuple(_facts(first, second)),
        latencies=tuple(_latencies(first, second)),
        rates=tuple(RatePair(*pair) for pair in _by_name(first.rates, second.rates)),
        kinds=kinds,
        moved=moved,
        moves=tuple((source, target, count) for (source, target), count in counts.most_common()),
        on_another_lane=another_lane,
        only_first=only_first,
        only_second=only_second,
    )


def _facts(first: SavedReport, second: SavedReport) -> Iterator[tuple[str, str, str]]:
    yield "model", first.title, second.title
    yield "decision", first.answer, second.answer
    for name in dict.fromkeys((*first.facts, *second.facts)):
        yield name, first.facts.get(name, ""), second.facts.get(name, "")
    yield "made", first.made, second.made


def _latencies(first: SavedReport, second: SavedReport) -> Iterator[LatencyPair]:
    if first.chosen is not None or second.chosen is not None:
        yield LatencyPair(ANSWER, first.chosen, second.chosen)
    for pair in _by_name(first.latencies, second.latencies):
        yield LatencyPair(*pair)


def _by_name(first: Sequence[_Row], second: Sequence[_Row]) -> Iterator[tuple[str, _Row | None, _Row | None]]:
    before: dict[str, _Row] = {row.name: row for row in first}
    after: dict[str, _Row] = {row.name: row for row in second}
    for name in dict.fromkeys((*before, *after)):
        yield name, before.get(name), after.get(name)


def _kinds(first: SavedPlacement, second: SavedPlacement) -> tuple[TypePair, ...]:
    counts = [Counter(group.kind or "other" for group in p.groups) for p in (first, second)]
    seconds: list[dict[str, float]] = [{}, {}]
    for found, placement in zip(seconds, (first, second), strict=True):
        for group in placement.groups:
            kind = group.kind or "other"
            found[kind] = found.get(kind, 0.0) + group.seconds
    pairs = [
        TypePair(kind, counts[0][kind], counts[1][kind], seconds[0].get(kind, 0.0), seconds[1].get(kind, 0.0))
        for kind in {**seconds[0], **seconds[1]}
    ]
    return tuple(sorted(pairs, key=lambda pair: -abs(pair.second_seconds - pair.first_seconds)))


def _lanes(placement: SavedPlacement) -> dict[str, str]:
    return {op: group.lane for group in placement.groups for op in group.ops}


def _moved(first: SavedPlacement, second: SavedPlacement, after: Mapping[str, str]) -> tuple[MovedOps, ...]:
    """The heaviest first."""
    then = {group.name: group.seconds for group in second.groups}
    found = []
    for group in first.groups:
        source = first.owner[group.lane]
        targets: dict[str, list[str]] = {}
        for op in group.ops:
            if op in after and second.owner[after[op]] != source:
                targets.setdefault(second.owner[after[op]], []).append(op)
        for target, ops in targets.items():
            seconds = then.get(group.name)
            found.append(MovedOps(group.name, group.kind, tuple(ops), source, target, group.seconds, seconds))
    return tuple(sorted(found, key=lambda moved: -max(moved.first_seconds, moved.second_seconds or 0.0)))


def _change(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None or before <= 0 else after / before - 1
