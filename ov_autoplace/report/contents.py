"""What a report shows, gathered from what the commands know; nothing here draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.statistics import median_interval
from ov_autoplace._base.text import milliseconds
from ov_autoplace.decide.verdict import CONVINCING_ROUNDS
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.measure.measured_run import MeasuredRun
from ov_autoplace.report.latency import Latency, answer_facts, measured_answer
from ov_autoplace.report.ops import op_columns

if TYPE_CHECKING:
    from ov_autoplace.placement.decision import Candidate, Decision, RateRow

__all__ = [
    "Contents",
    "Curve",
    "bench_contents",
    "placement_contents",
    "placement_facts",
]


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """The measured placements of one model while a policy was tuned.

    Attributes:
        name: The model.
        numbers: Number of each measurement, ``float64[n]``.
        values: Its latency over that of the best single device, ``float64[n]``, ``inf`` = could not be run.
        best: The same of the best that was proven until then, ``float64[n]``.
    """

    name: str
    numbers: FloatArray
    values: FloatArray
    best: FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Contents:
    """Everything on the page; parts that are empty are left out.

    Attributes:
        title: What it is about.
        answer: The decision in a sentence, with what was measured where that is another race.
        facts: Names and values for the head of the page.
        latencies: The candidates.
        explanation: The placement.
        changes: What would change the answer.
        measured: The placement on its devices.
        curves: Learning curves.
        ops: The model's ops, as ``ops.op_columns`` gives them.
        rates: Ways to run many requests, where their number a second counts.
        rate_bound: So many a second no mixture of placements is predicted to exceed.
        threads: On how many threads the answer runs, where the costs are those of all; else empty.
    """

    title: str
    answer: str
    facts: tuple[tuple[str, str], ...]
    latencies: tuple[Latency, ...] = ()
    explanation: Explanation | None = None
    changes: tuple[WhatIf, ...] = ()
    measured: MeasuredRun | None = None
    curves: tuple[Curve, ...] = ()
    ops: Mapping[str, Any] | None = None
    rates: tuple[RateRow, ...] = ()
    rate_bound: float | None = None
    threads: str = ""


def placement_contents(
    title: str,
    decision: Decision,
    explanation: Explanation,
    changes: Sequence[WhatIf] = (),
    model: ov.Model | None = None,
) -> Contents:
    """A page about one placement and the candidates it was chosen from.

    Args:
        title: What it is about.
        decision: How it was chosen.
        explanation: The placement.
        changes: What would change the prediction.
        model: Whose ops are shown; ``None`` = groups are all that is.
    """
    latencies = tuple(_candidate(c, c.name == decision.chosen) for c in decision.candidates)
    if decision.rates:  # nobody's latency was asked for
        answered: Iterable[tuple[str, str]] = (
            ("one request, predicted", f"{milliseconds(explanation.schedule.latency_seconds)} ms"),
        )
        latencies = ()
    else:
        answered = answer_facts(latencies, explanation.schedule.latency_seconds)
    return Contents(
        title=title,
        answer=decision.reason,
        facts=(
            ("mode", decision.mode.lower().replace("_", "-")),
            ("chosen", decision.chosen),
            *answered,
            *placement_facts(explanation),
            *_bound(changes, decision),
            *_disturbance(decision),
        ),
        latencies=latencies,
        threads=_threads(decision),
        rates=decision.rates,
        rate_bound=decision.rate_bound,
        explanation=explanation,
        changes=tuple(changes),
        ops=None if model is None else op_columns(model),
    )


def bench_contents(
    title: str,
    decision: Decision,
    explanation: Explanation,
    changes: Sequence[WhatIf],
    rows: Sequence[Mapping[str, Any]],
    measured: MeasuredRun | None = None,
    model: ov.Model | None = None,
) -> Contents:
    """A page about a benchmark, whose rows are those of ``bench --json``; other arguments are as above."""
    found = []
    for row in rows:
        low, high = row["ci95_ms"] or (None, None)
        found.append(
            Latency(
                name=row["name"],
                predicted=_seconds(row["predicted_ms"]),
                median=_seconds(row["median_ms"]),
                low=_seconds(low),
                high=_seconds(high),
                samples=row["samples"],
                paused=_seconds(row["paused_median_ms"]),
                subgraphs=row["subgraphs"],
                output_difference=row["output_difference"],
                note=row["note"],
                chosen=row["name"] == "AUTOPLACE",
            )
        )
    latencies = tuple(found)
    return Contents(
        title=title,
        answer="; ".join(filter(None, (decision.reason, measured_answer(latencies)))),
        facts=(
            ("mode", decision.mode.lower().replace("_", "-")),
            ("chosen", decision.chosen),
            *answer_facts(latencies, explanation.schedule.latency_seconds),
            *placement_facts(explanation),
            *_bound(changes, decision),
            *_disturbance(decision),
        ),
        latencies=latencies,
        threads=_threads(decision),
        explanation=explanation,
        changes=tuple(changes),
        measured=measured,
        ops=None if model is None else op_columns(model),
    )


def placement_facts(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    """What the head of the page says about a placement."""
    schedule = explanation.schedule
    at_once = explanation.place == "lane"
    crossing = f"{milliseconds(schedule.transfer_seconds)} ms"
    return (
        ("devices", ", ".join(explanation.columns)),
        *((("lanes", ", ".join(explanation.table.devices)),) if at_once else ()),
        ("costs", explanation.table.source),
        ("ops", f"{sum(map(len, explanation.members())):,}"),
        ("groups of ops", f"{len(explanation.table):,}"),
        (f"{explanation.part}s", f"{schedule.subgraphs:,}"),
        ("predicted transfers, beside the work" if at_once else "predicted transfers", crossing),
        *(_lane_facts(explanation) if at_once else ()),
    )


def _lane_facts(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    """How well lanes are used, and what decides how long the request takes."""
    timeline = explanation.predicted
    idle = sum(lane.idle_seconds for lane in timeline.lanes)
    whole = timeline.seconds * len(timeline.lanes)
    share = 100 * idle / whole if whole > 0 else 0.0
    path = sum(stage.is_critical for stage in timeline.stages)
    return (
        ("predicted idle, all lanes", f"{milliseconds(idle)} ms, {share:.0f} %"),
        ("predicted critical path", f"{path} of {len(timeline.stages)} submodels"),
    )


def _bound(changes: Sequence[WhatIf], decision: Decision) -> tuple[tuple[str, str], ...]:
    """What no placement is predicted to beat at the costs as they are, where something is proven.

    They are those of all threads, and say nothing of an answer on fewer.
    """
    seconds = changes[0].bound_seconds if changes and decision.width is None else None
    return () if seconds is None else (("no placement predicted below", f"{milliseconds(seconds)} ms"),)


def _disturbance(decision: Decision) -> tuple[tuple[str, str], ...]:
    """What makes the measurements worth less."""
    return (("other work", "disturbed the measurements"),) if decision.disturbed else ()


def _threads(decision: Decision) -> str:
    """On how many threads the answer runs, where that is not what OpenVINO does by itself."""
    return "" if decision.width is None else decision.width.label


def _candidate(candidate: Candidate, chosen: bool) -> Latency:
    also = f"also proposed by {', '.join(candidate.also)}" if candidate.also else ""
    count = len(candidate.samples)
    median, low, high = median_interval(candidate.samples) if count else (None, None, None)
    if count < CONVINCING_ROUNDS:
        low = high = None
    return Latency(
        name=candidate.name,
        predicted=candidate.predicted_seconds,
        median=median,
        low=low,
        high=high,
        samples=count,
        paused=float(np.median(candidate.paused_samples)) if len(candidate.paused_samples) else None,
        subgraphs=candidate.subgraphs,
        output_difference=candidate.output_difference,
        note="; ".join(filter(None, (also, candidate.dropped))),
        chosen=chosen,
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3
