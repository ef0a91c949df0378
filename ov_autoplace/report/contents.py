"""What a report shows, gathered from what the commands know; nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.statistics import median_interval
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.predicted import timeline_of
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.measure.measured_run import MeasuredRun

if TYPE_CHECKING:
    from ov_autoplace.placement.decision import Candidate, Decision

__all__ = [
    "Contents",
    "Curve",
    "Latency",
    "bench_contents",
    "placement_contents",
    "placement_facts",
]


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
    note: str = ""
    chosen: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """The measured placements of one model while a policy was tuned.

    Attributes:
        name: The model.
        numbers: Number of each measurement, ``float64[n]``.
        values: Its latency over that of the best single device, ``float64[n]``, ``inf`` = could not be run.
    """

    name: str
    numbers: FloatArray
    values: FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Contents:
    """Everything on the page; parts that are empty are left out.

    Attributes:
        title: What it is about.
        answer: The decision in a sentence.
        facts: Names and values for the head of the page.
        latencies: The candidates.
        explanation: The placement.
        changes: What would change the answer.
        measured: The placement on its devices.
        curves: Learning curves.
    """

    title: str
    answer: str
    facts: tuple[tuple[str, str], ...]
    latencies: tuple[Latency, ...] = ()
    explanation: Explanation | None = None
    changes: tuple[WhatIf, ...] = ()
    measured: MeasuredRun | None = None
    curves: tuple[Curve, ...] = ()


def placement_contents(
    title: str,
    decision: Decision,
    explanation: Explanation,
    changes: Sequence[WhatIf] = (),
    facts: Sequence[tuple[str, str]] = (),
) -> Contents:
    """A page about one placement and the candidates it was chosen from."""
    return Contents(
        title=title,
        answer=decision.reason,
        facts=(
            ("mode", decision.mode.lower().replace("_", "-")),
            *_chosen(decision),
            *placement_facts(explanation),
            *_bound(changes),
            *facts,
        ),
        latencies=tuple(_candidate(c, c.name == decision.chosen) for c in decision.candidates),
        explanation=explanation,
        changes=tuple(changes),
    )


def bench_contents(
    title: str,
    decision: Decision,
    explanation: Explanation,
    changes: Sequence[WhatIf],
    rows: Sequence[Mapping[str, Any]],
    measured: MeasuredRun | None = None,
) -> Contents:
    """A page about a benchmark, whose rows are those of ``bench --json``."""
    latencies = []
    for row in rows:
        low, high = row["ci95_ms"] or (None, None)
        latencies.append(
            Latency(
                name=row["name"],
                predicted=_seconds(row["predicted_ms"]),
                median=_seconds(row["median_ms"]),
                low=_seconds(low),
                high=_seconds(high),
                samples=row["samples"],
                paused=_seconds(row["paused_median_ms"]),
                subgraphs=row["subgraphs"],
                note=row["note"],
                chosen=row["name"] == "AUTOPLACE",
            )
        )
    return Contents(
        title=title,
        answer=decision.reason,
        facts=(*_chosen(decision), *placement_facts(explanation), *_bound(changes)),
        latencies=tuple(latencies),
        explanation=explanation,
        changes=tuple(changes),
        measured=measured,
    )


def placement_facts(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    """What the head of the page says about a placement."""
    schedule = explanation.schedule
    at_once = explanation.objective == "overlap"
    crossing = f"{schedule.transfer_seconds * 1e3:.3f} ms"
    return (
        ("lanes" if at_once else "devices", ", ".join(explanation.table.devices)),
        ("costs", explanation.table.source),
        ("ops", f"{sum(map(len, explanation.members())):,} in {len(explanation.table):,} groups"),
        ("submodels" if at_once else "subgraphs", f"{schedule.subgraphs:,}"),
        ("predicted", f"{schedule.latency_seconds * 1e3:.3f} ms"),
        ("transfers beside the work" if at_once else "of which transfers", crossing),
        *(_lane_facts(explanation) if at_once else ()),
    )


def _lane_facts(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    """How well lanes are used, and what decides how long the request takes."""
    timeline = timeline_of(explanation)
    idle = sum(lane.idle_seconds for lane in timeline.lanes)
    whole = timeline.seconds * len(timeline.lanes)
    share = 100 * idle / whole if whole > 0 else 0.0
    path = sum(stage.is_critical for stage in timeline.stages)
    return (
        ("idle, all lanes", f"{idle * 1e3:.3f} ms, {share:.0f} %"),
        ("critical path", f"{path} of {len(timeline.stages)} submodels"),
    )


def _bound(changes: Sequence[WhatIf]) -> tuple[tuple[str, str], ...]:
    """What no placement beats at the costs as they are, where something is proven."""
    seconds = changes[0].bound_seconds if changes else None
    return () if seconds is None else (("no placement takes less than", f"{seconds * 1e3:.3f} ms"),)


def _chosen(decision: Decision) -> list[tuple[str, str]]:
    """Who was chosen, and on how many threads it runs where that is not what OpenVINO does by itself."""
    width = decision.width
    threads = [("threads", f"{width.label}; times of groups are those of all threads")] if width else []
    return [("chosen", decision.chosen), *threads]


def _candidate(candidate: Candidate, chosen: bool) -> Latency:
    also = f"also proposed by {', '.join(candidate.also)}" if candidate.also else ""
    median, low, high = median_interval(candidate.samples) if len(candidate.samples) else (None, None, None)
    return Latency(
        name=candidate.name,
        predicted=candidate.predicted_seconds,
        median=median,
        low=low,
        high=high,
        samples=len(candidate.samples),
        paused=float(np.median(candidate.paused_samples)) if len(candidate.paused_samples) else None,
        subgraphs=candidate.subgraphs,
        note="; ".join(filter(None, (also, candidate.dropped))),
        chosen=chosen,
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3
