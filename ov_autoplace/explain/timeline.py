"""One request in time: what runs when, who waits for whom, and what decides how long it takes.

One form for everything that is shown: HETERO's turns and lanes that work at once, predicted and measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ov_autoplace._base.arrays import FloatArray

__all__ = [
    "NOBODY",
    "ROUNDING",
    "Cut",
    "Idle",
    "LaneUse",
    "Stage",
    "Step",
    "Timeline",
    "Transfer",
    "lane_uses",
    "with_path",
]

NOBODY = -1
"""In place of a subgraph's number: none."""

ROUNDING = 1e-9  # of the whole; sums in another order differ by less


@dataclass(frozen=True, slots=True)
class Cut:
    """One tensor that is transferred to one subgraph; on lanes, to one lane, named by who reads it first."""

    producer: str
    source_subgraph: int
    source_device: str
    target_subgraph: int
    target_device: str
    bytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Stage:
    """One subgraph in time.

    Attributes:
        subgraph: Its number.
        device: Where it runs: a device, or a lane.
        start, seconds: From its launch to the end of its last group, transfers left out.
        groups: Its groups in the order in which they run; empty where that is not known.
        ops: Number of its ops.
        after: The subgraph whose end it waited for last, :data:`NOBODY` = it waited for none.
        is_critical: Whether the request would end earlier if it took less time.
    """

    subgraph: int
    device: str
    start: float
    seconds: float
    groups: tuple[int, ...]
    ops: int
    after: int = NOBODY
    is_critical: bool = False

    @property
    def end(self) -> float:
        """When its last group has ended."""
        return self.start + self.seconds


@dataclass(frozen=True, slots=True)
class Transfer:
    """A cut in time; the receiving subgraph starts when it has ended.

    Under HETERO nothing else runs meanwhile. Lanes go on working, and one that waits for it is idle.
    """

    cut: Cut
    start: float

    @property
    def end(self) -> float:
        """When the receiver has it."""
        return self.start + self.cut.seconds


@dataclass(frozen=True, slots=True)
class Idle:
    """A time in which a device or lane runs nothing.

    Attributes:
        start, seconds: When, and how long.
        kind: ``wait`` for a subgraph, ``transfer`` of its results, ``start``: nothing is waited for, but
            nothing is begun either, or ``end``: nothing is left.
        reason: The same in words, equal for what adds up.
    """

    start: float
    seconds: float
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class LaneUse:
    """What a device or lane does in one request; busy and idle time add up to the whole.

    Attributes:
        name: Which one.
        subgraphs, ops: How many it runs.
        busy_seconds: Time in which it runs one of them.
        idle: All other time, in order.
    """

    name: str
    subgraphs: int
    ops: int
    busy_seconds: float
    idle: tuple[Idle, ...]

    @property
    def idle_seconds(self) -> float:
        """Time in which it runs nothing."""
        return sum(idle.seconds for idle in self.idle)

    @property
    def share(self) -> float:
        """Share of the request in which it works, 0 to 1."""
        whole = self.busy_seconds + self.idle_seconds
        return self.busy_seconds / whole if whole > 0 else 0.0

    @property
    def reasons(self) -> dict[str, float]:
        """Idle seconds by reason, the longest first."""
        sums: dict[str, float] = {}
        for idle in self.idle:
            sums[idle.reason] = sums.get(idle.reason, 0.0) + idle.seconds
        return dict(sorted(sums.items(), key=lambda item: -item[1]))


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the critical path.

    Attributes:
        kind: ``subgraph``, or what is between two of them: ``start`` or ``transfer``; or ``rest``.
        text: Which one.
        start, seconds: When, and how long.
    """

    kind: str
    text: str
    start: float
    seconds: float


@dataclass(frozen=True, eq=False, slots=True)
class Timeline:
    """One request, from 0 to ``seconds``.

    Attributes:
        stages: By start.
        transfers: By start.
        lanes: What every device or lane does, in the table's order.
        group_start: When each group starts, ``float64[G]``; 0 for what is in no subgraph.
        group_seconds: How long it runs, ``float64[G]``; both are empty where that is not known.
        seconds: The latency.
        unlocated_seconds: What is part of it and has no place. Predicted for HETERO: pieces cut off inside
            groups, with their launches and transfers. Measured: transfers and dispatch. It follows the last
            stage.
    """

    stages: tuple[Stage, ...]
    transfers: tuple[Transfer, ...]
    lanes: tuple[LaneUse, ...]
    group_start: FloatArray
    group_seconds: FloatArray
    seconds: float
    unlocated_seconds: float = 0.0

    @property
    def has_slack(self) -> bool:
        """Whether anything runs that does not decide the latency; under HETERO everything does."""
        return not all(stage.is_critical for stage in self.stages)

    @property
    def path(self) -> tuple[Step, ...]:
        """The critical path from 0 to ``seconds``: what has to be shorter for the request to be."""
        return tuple(self._steps())

    def _steps(self) -> Iterator[Step]:
        now = 0.0
        sender: Stage | None = None
        for stage in self.stages:
            if not stage.is_critical:
                continue
            if stage.start - now > ROUNDING * self.seconds:
                kind, text = _gap(sender, stage)
                yield Step(kind, text, now, stage.start - now)
            yield Step("subgraph", f"{stage.subgraph} on {stage.device}", stage.start, stage.seconds)
            now, sender = stage.end, stage
        if self.seconds - now > ROUNDING * self.seconds:
            yield Step("rest", "outside all submodels", now, self.seconds - now)


def _gap(sender: Stage | None, stage: Stage) -> tuple[str, str]:
    """Kind and name of the time before a stage of the critical path."""
    if sender is None:
        return "start", "before the first submodel"
    if sender.device == stage.device:
        return "transfer", f"between {sender.subgraph} and {stage.subgraph}"
    return "transfer", f"transfer from {sender.subgraph} to {stage.subgraph}"


def with_path(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages by start, with the one that ends last marked, whom it waited for, and so on."""
    by_number = {stage.subgraph: stage for stage in stages}
    critical = set()
    last = max(stages, key=lambda stage: stage.end, default=None)
    while last is not None and last.subgraph not in critical:
        critical.add(last.subgraph)
        last = by_number.get(last.after)
    ordered = sorted(stages, key=lambda stage: (stage.start, stage.end))
    return tuple(replace(stage, is_critical=stage.subgraph in critical) for stage in ordered)


def lane_uses(names: Sequence[str], stages: Sequence[Stage], seconds: float) -> tuple[LaneUse, ...]:
    """What each device or lane does in a request.

    Args:
        names: The devices or lanes.
        stages: By start; no two of a lane at once.
        seconds: How long the request takes.
    """
    by_number = {stage.subgraph: stage for stage in stages}
    uses = []
    for name in names:
        own = [stage for stage in stages if stage.device == name]
        idle: list[Idle] = []
        now = 0.0
        for stage in own:
            idle += _before(stage, now, by_number.get(stage.after))
            now = max(now, stage.end)
        if seconds > now:
            idle.append(Idle(now, seconds - now, "end", "nothing left to run" if own else "nothing to run"))
        # What is shorter than the rounding of a sum is no gap.
        kept = tuple(gap for gap in idle if gap.seconds > ROUNDING * seconds)
        uses.append(LaneUse(name, len(own), sum(s.ops for s in own), sum(s.seconds for s in own), kept))
    return tuple(uses)


def _before(stage: Stage, now: float, sender: Stage | None) -> Iterator[Idle]:
    """The idle times between the end of a lane's last stage and the start of its next."""
    if sender is None:
        yield Idle(now, stage.start - now, "start", "not begun yet")
        return
    if sender.device == stage.device:
        yield Idle(now, stage.start - now, "transfer", "between its submodels")
        return
    whom = f"{sender.subgraph} on {sender.device}"
    sent = min(max(now, sender.end), stage.start)
    yield Idle(now, sent - now, "wait", f"waits for {whom}")
    yield Idle(sent, stage.start - sent, "transfer", f"transfer from {whom}")
