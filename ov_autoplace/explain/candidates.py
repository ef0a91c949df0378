"""Ways of running a model as they are shown: what is predicted and measured of them, and who was taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.statistics import CONVINCING_ROUNDS, median_interval
from ov_autoplace._base.text import counted, milliseconds, relative_difference
from ov_autoplace.explain.tables import Table
from ov_autoplace.plan.decision import Candidate, Load

__all__ = [
    "CandidateRow",
    "Measured",
    "answer_facts",
    "candidates_table",
    "measured_answer",
    "row_of",
]


@dataclass(frozen=True, slots=True)
class Measured:
    """A median latency in seconds, with its 95 % interval where there are samples enough for one."""

    median: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, samples: FloatArray) -> Measured | None:
        """Of some samples; ``None`` = there are none."""
        if not len(samples):
            return None
        median, *interval = median_interval(samples)
        return cls(median, *interval) if len(samples) >= CONVINCING_ROUNDS else cls(median)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, where there is one."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def __str__(self) -> str:
        """In milliseconds, with the wider half of the interval."""
        if self.low is None or self.high is None:
            return milliseconds(self.median)
        half = max(self.median - self.low, self.high - self.median)
        return f"{milliseconds(self.median)} ± {milliseconds(half, like=self.median)}"


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One way of running the model. Times are in seconds, rates in requests a second.

    Attributes:
        name: Who it is.
        predicted: Simulated latency, or ``None``.
        measured, paused: Measured latency back to back and after idle gaps, or ``None``.
        samples: How many inferences are behind ``measured``.
        requests: How many are in flight, where a rate is asked for; else 0.
        rate, waiting, queued: The predicted rate, and the measured ones of waiting threads and of a queue, or
            ``None``.
        subgraphs: Into how many parts it is cut, or ``None``.
        output_difference: How far its outputs are from the right ones, or ``None``.
        also: Who else proposed it.
        note: Anything else.
        chosen: Whether it is the answer.
    """

    name: str
    predicted: float | None = None
    measured: Measured | None = None
    paused: Measured | None = None
    samples: int = 0
    requests: int = 0
    rate: float | None = None
    waiting: float | None = None
    queued: float | None = None
    subgraphs: int | None = None
    output_difference: float | None = None
    also: tuple[str, ...] = ()
    note: str = ""
    chosen: bool = False


def row_of(candidate: Candidate, *, chosen: bool = False) -> CandidateRow:
    """What is known of one."""
    plan, seconds = candidate.plan, candidate.predicted_seconds
    rate, waiting, queued = (
        _per_second(own)
        for own in (candidate.expected_seconds, *map(candidate.median, (Load.WAITING, Load.QUEUED)))
    )
    return CandidateRow(
        name=candidate.name,
        predicted=None if plan.serves_many else seconds,
        measured=Measured.of(candidate.samples),
        paused=Measured.of(candidate.on(Load.PAUSED)),
        samples=len(candidate.samples),
        requests=plan.requests,
        rate=rate if plan.serves_many else None,
        waiting=waiting,
        queued=queued,
        subgraphs=None if plan.serves_many else candidate.subgraphs,
        output_difference=candidate.output_difference,
        also=candidate.also,
        note=candidate.dropped,
        chosen=chosen,
    )


def _per_second(seconds: float) -> float | None:
    return 1 / seconds if np.isfinite(seconds) else None


def candidates_table(rows: Sequence[CandidateRow], bound: float | None = None) -> Table:
    """Every candidate with what was predicted and measured of it.

    Args:
        rows: The candidates.
        bound: Requests a second that no mixture of placements is predicted to exceed.
    """
    columns = (
        "~candidate",
        ">predicted\nms",
        ">measured\nms",
        ">measured\nafter 3 ms idle",
        ">?samples",
        ">in flight",
        ">predicted\na second",
        ">waiting threads\na second",
        ">queue\na second",
        ">?subgraphs",
        ">?outputs\ndiffer by",
        "~also proposed by",
        "~note",
    )
    cells = [
        (
            row.name,
            "" if row.predicted is None else milliseconds(row.predicted),
            str(row.measured or ""),
            str(row.paused or ""),
            str(row.samples or ""),
            str(row.requests or ""),
            *("" if many is None else f"{many:,.0f}" for many in (row.rate, row.waiting, row.queued)),
            "" if row.subgraphs is None else f"{row.subgraphs:,}",
            relative_difference(row.output_difference),
            ", ".join(row.also),
            row.note,
        )
        for row in rows
    ]
    most = "" if bound is None else counted(round(bound), "request")
    notes = (
        prediction_alone(rows),
        measured_apart(rows),
        most and f"No mixture of placements is predicted to exceed {most} a second.",
    )
    strong = tuple(i for i, row in enumerate(rows) if row.chosen)
    return Table("Candidates", columns, cells, strong, tuple(filter(None, notes)))


def measured_answer(rows: Sequence[CandidateRow]) -> str:
    """What was measured of the answer beside the fastest other, in words; empty where that is nothing.

    Two whose 95 % intervals overlap are not told apart.
    """
    chosen = _chosen(rows)
    others = [(row.measured.median, row) for row in rows if not row.chosen and row.measured is not None]
    if chosen is None or chosen.measured is None or not others:
        return ""
    median, rival = min(others, key=lambda other: other[0])
    own, its = chosen.measured, rival.measured
    both = f"{chosen.name} {_ms(own.median)}, {rival.name} {_ms(median)}"
    if own.interval is None or its is None or its.interval is None:
        return f"measured here: {both}"
    if own.interval[0] <= its.interval[1] and its.interval[0] <= own.interval[1]:
        return f"measured here: {both}, too close to tell apart"
    percent = 100 * (own.median / median - 1)
    how = f"{abs(percent):.1f} % {'slower' if percent > 0 else 'faster'}"
    return f"measured here: {chosen.name} {_ms(own.median)}, {how} than {rival.name}, {_ms(median)}"


def prediction_alone(rows: Sequence[CandidateRow]) -> str:
    """Whom predictions would have taken, where measurements say that it is slower; else empty."""
    chosen = _chosen(rows)
    known = [(row.predicted, row.measured.median, row.name) for row in rows if row.predicted and row.measured]
    if chosen is None or not chosen.predicted or chosen.measured is None:
        return ""
    predicted, median, name = min(known)
    if predicted >= chosen.predicted or median <= chosen.measured.median:
        return ""
    return (
        f"By prediction alone, {name} ({_ms(predicted)}) would have been taken before {chosen.name} "
        f"({_ms(chosen.predicted)}); what was measured decides."
    )


def measured_apart(rows: Sequence[CandidateRow]) -> str:
    """Who has the lower median, where it was not measured in turns with the answer; else empty.

    Numbers of samples tell: everybody in a race has equally many until somebody leaves it, and says why.
    """
    chosen = _chosen(rows)
    if chosen is None or chosen.measured is None:
        return ""
    others = [(row.measured.median, row) for row in rows if row.measured and row.samples > chosen.samples]
    median, row = min(others, key=lambda other: other[0], default=(np.inf, chosen))
    if median >= chosen.measured.median:
        return ""
    return (
        f"{row.name} has a lower median ({_ms(median)}), but was not measured in turns with {chosen.name} "
        f"({counted(row.samples, 'sample')} and {chosen.samples:,}), and that is no comparison."
    )


def answer_facts(rows: Sequence[CandidateRow], predicted_seconds: float) -> Iterator[tuple[str, str]]:
    """How long the answer takes, as measured and as predicted.

    Args:
        rows: All candidates.
        predicted_seconds: By the costs of its groups, where the answer has no prediction of its own.
    """
    chosen = _chosen(rows)
    if chosen is None or chosen.measured is None:
        asked = chosen is not None and chosen.requests > 0
        if not asked:
            yield "measured", "it was not run"
        own = None if chosen is None else chosen.predicted
        yield "one request, predicted" if asked else "predicted", _ms(own or predicted_seconds)
        return
    yield "measured", f"{chosen.measured} ms"
    seconds = chosen.predicted or predicted_seconds
    percent = round(100 * (seconds / chosen.measured.median - 1))
    off = f", {abs(percent)} % {'more' if percent > 0 else 'less'} than measured" if percent else ""
    yield "predicted", _ms(seconds) + off


def _chosen(rows: Sequence[CandidateRow]) -> CandidateRow | None:
    return next((row for row in rows if row.chosen), None)


def _ms(seconds: float) -> str:
    return f"{milliseconds(seconds)} ms"
