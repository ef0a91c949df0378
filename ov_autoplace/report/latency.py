"""Ways of running a model: what is predicted of them, what was measured, and which of the two decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ov_autoplace._base.text import counted, milliseconds

__all__ = ["Latency", "answer_facts", "measured_answer", "measured_apart", "prediction_alone"]


@dataclass(frozen=True, slots=True)
class Latency:
    """One way of running the model. Times are in seconds.

    Attributes:
        name: Who it is.
        predicted: Simulated latency, or ``None``.
        median, low, high: Measured latency with its 95 % interval, or ``None``.
        samples: How many inferences that is.
        paused: Median latency after idle gaps, or ``None``.
        subgraphs: HETERO's subgraphs, or ``None``.
        output_difference: How far its outputs are from the right ones, or ``None``.
        note: Anything else.
        chosen: Whether it is the answer.
    """

    name: str
    predicted: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    samples: int = 0
    paused: float | None = None
    subgraphs: int | None = None
    output_difference: float | None = None
    note: str = ""
    chosen: bool = False

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the measured latency, where there is one."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def measured_answer(latencies: Sequence[Latency]) -> str:
    """What was measured of the answer beside the fastest other, in words; empty where that is nothing.

    Two whose 95 % intervals overlap are not told apart.
    """
    chosen = _chosen(latencies)
    others = [(row.median, row) for row in latencies if not row.chosen and row.median is not None]
    if chosen is None or chosen.median is None or not others:
        return ""
    median, rival = min(others, key=lambda other: other[0])
    both = f"{chosen.name} {_ms(chosen.median)}, {rival.name} {_ms(median)}"
    if chosen.interval is None or rival.interval is None:
        return f"measured here: {both}"
    if chosen.interval[0] <= rival.interval[1] and rival.interval[0] <= chosen.interval[1]:
        return f"measured here: {both}, too close to tell apart"
    percent = 100 * (chosen.median / median - 1)
    how = f"{abs(percent):.1f} % {'slower' if percent > 0 else 'faster'}"
    return f"measured here: {chosen.name} {_ms(chosen.median)}, {how} than {rival.name}, {_ms(median)}"


def prediction_alone(latencies: Sequence[Latency]) -> str:
    """Whom predictions would have taken, where measurements say that it is slower; else empty."""
    chosen = _chosen(latencies)
    if chosen is None or chosen.predicted is None or chosen.median is None:
        return ""
    known = [
        (row.predicted, row) for row in latencies if row.predicted is not None and row.median is not None
    ]
    least, best = min(known, key=lambda other: other[0])
    if least >= chosen.predicted or best.median is None or best.median <= chosen.median:
        return ""
    return (
        f"By prediction alone, {best.name} ({_ms(least)}) would have been taken before {chosen.name} "
        f"({_ms(chosen.predicted)}); what was measured decides."
    )


def measured_apart(latencies: Sequence[Latency]) -> str:
    """Who has the lower median, where it was not measured in turns with the answer; else empty.

    Numbers of samples tell: everybody in a race has equally many until somebody leaves it, and says why.
    """
    chosen = _chosen(latencies)
    if chosen is None or chosen.median is None:
        return ""
    apart = [
        (row.median, row)
        for row in latencies
        if row.median is not None and row.median < chosen.median and row.samples > chosen.samples
    ]
    if not apart:
        return ""
    median, row = min(apart, key=lambda other: other[0])
    return (
        f"{row.name} has a lower median ({_ms(median)}), but was not measured in turns with {chosen.name} "
        f"({counted(row.samples, 'sample')} and {chosen.samples:,}), and that is no comparison."
    )


def answer_facts(latencies: Sequence[Latency], predicted_seconds: float) -> Iterator[tuple[str, str]]:
    """How long the answer takes, as measured and as predicted.

    Args:
        latencies: All there are.
        predicted_seconds: By the costs of its groups, where the answer has no prediction of its own.
    """
    chosen = _chosen(latencies)
    if chosen is None or chosen.median is None:
        yield "measured", "it was not run"
        yield "predicted", _ms(predicted_seconds)
        return
    interval = chosen.interval
    shown = "" if interval is None else f" ({milliseconds(interval[0])} .. {milliseconds(interval[1])})"
    yield "measured", _ms(chosen.median) + shown
    seconds = predicted_seconds if chosen.predicted is None else chosen.predicted
    percent = round(100 * (seconds / chosen.median - 1))
    off = f", {abs(percent)} % {'more' if percent > 0 else 'less'} than measured" if percent else ""
    yield "predicted", _ms(seconds) + off


def _chosen(latencies: Sequence[Latency]) -> Latency | None:
    return next((row for row in latencies if row.chosen), None)


def _ms(seconds: float) -> str:
    return f"{milliseconds(seconds)} ms"
