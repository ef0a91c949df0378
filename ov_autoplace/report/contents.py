"""What a report shows, gathered from what the commands know; nothing here draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._arrays import FloatArray
from ov_autoplace.explanation import Explanation
from ov_autoplace.measured_run import MeasuredRun
from ov_autoplace.statistics import median_interval, paired_ratio
from ov_autoplace.what_if import WhatIf

if TYPE_CHECKING:
    from ov_autoplace.placement.decision import Candidate, Decision
    from ov_autoplace.training.finetune import FinetuneResult, TunedModel

__all__ = [
    "Contents",
    "Curve",
    "Latency",
    "bench_contents",
    "finetune_contents",
    "placement_contents",
]


@dataclass(frozen=True, slots=True)
class Latency:
    """One way of running the model. Times are in seconds.

    Attributes:
        name: Who it is.
        predicted: Simulated latency, or ``None``.
        median, low, high: Measured latency with its 95 % interval, or ``None``.
        samples: How many inferences that is.
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
            ("chosen", decision.chosen),
            *_placement_facts(explanation),
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
                subgraphs=row["subgraphs"],
                note=row["note"],
                chosen=row["name"] == "AUTOPLACE",
            )
        )
    return Contents(
        title=title,
        answer=decision.reason,
        facts=(("chosen", decision.chosen), *_placement_facts(explanation)),
        latencies=tuple(latencies),
        explanation=explanation,
        changes=tuple(changes),
        measured=measured,
    )


def finetune_contents(result: FinetuneResult) -> Contents:
    """A page about a fine-tuning run: its log, and the best placement where there is one model."""
    from ov_autoplace.training.finetuning.files import LOG, TuningFolder
    from ov_autoplace.training.logs import read_log

    lines = read_log(result.checkpoint / LOG)
    alone = result.models[0] if len(result.models) == 1 else None
    explanation = None
    if alone is not None:
        table = TuningFolder(result.checkpoint, resume=True).load_table(alone.name)
        explanation = Explanation(table, alone.placement.groups_of(table))
    how = (("schedules", "ov-autoplace explain MODEL --affinity FILE --report PAGE.html"),)
    return Contents(
        title=f"fine-tuning on {', '.join(model.name for model in result.models) or 'no model'}",
        answer="; ".join(f"{model.name}: {model.reason}" for model in result.models),
        facts=(
            ("time", f"{result.seconds:.0f} s"),
            ("ended by", result.stopped),
            ("measured placements", str(sum(model.measurements for model in result.models))),
            ("policy", str(result.checkpoint)),
            *((("not reached", ", ".join(result.not_reached)),) if result.not_reached else ()),
            *(_placement_facts(explanation) if explanation is not None else how),
        ),
        latencies=tuple(row for model in result.models for row in _tuned(model, lines, alone is not None)),
        explanation=explanation,
        curves=tuple(_curve(name, lines) for name in dict.fromkeys(line["model"] for line in lines)),
    )


def _tuned(model: TunedModel, lines: Sequence[Mapping[str, Any]], is_alone: bool) -> Iterator[Latency]:
    """What was measured of one model, with intervals where the races were against the same device."""
    from ov_autoplace.training.finetuning.task import AFTER, ZERO_SHOT

    for what, mark, relative in (
        (model.best_single, "", 1.0),
        ("policy before", ZERO_SHOT, model.before),
        ("policy after", AFTER, model.after),
        ("best found", "", model.best),
    ):
        races = [
            line
            for line in lines
            if mark in (line["source"], line["note"])
            and (line["model"], line["reference"]) == (model.name, model.best_single)
        ]
        samples = np.concatenate([[], *(line["ms"][: len(line["reference_ms"])] for line in races)])
        references = np.concatenate([[], *(line["reference_ms"][: len(line["ms"])] for line in races)])
        ratio = paired_ratio(samples, references) if mark and len(samples) else None
        yield Latency(
            name=what if is_alone else f"{model.name}: {what}",
            median=None if relative is None else relative * model.single_seconds,
            low=None if ratio is None else ratio.low * model.single_seconds,
            high=None if ratio is None else ratio.high * model.single_seconds,
            samples=len(samples) if mark else 0,
            note="could not be measured" if relative is None else f"{relative:.3f} of the best single device",
            chosen=what == "best found",
        )


def _placement_facts(explanation: Explanation) -> tuple[tuple[str, str], ...]:
    schedule = explanation.schedule
    return (
        ("devices", ", ".join(explanation.table.devices)),
        ("costs", explanation.table.source),
        ("ops", f"{sum(map(len, explanation.members())):,} in {len(explanation.table):,} groups"),
        ("subgraphs", f"{schedule.subgraphs:,}"),
        ("predicted", f"{schedule.latency_seconds * 1e3:.3f} ms"),
        ("of which hand-overs", f"{schedule.transfer_seconds * 1e3:.3f} ms"),
    )


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
        subgraphs=candidate.subgraphs,
        note="; ".join(filter(None, (also, candidate.dropped))),
        chosen=chosen,
    )


def _curve(name: str, lines: Sequence[Mapping[str, Any]]) -> Curve:
    run = [line for line in lines if line["model"] == name and line["kind"] == "measured"]
    return Curve(
        name=name,
        numbers=np.array([float(line["measurement"]) for line in run]),
        values=np.array([np.inf if line["relative"] is None else float(line["relative"]) for line in run]),
    )


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3
