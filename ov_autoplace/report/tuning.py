"""What a report shows of a fine-tuning run, read from the folder that it left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.statistics import Interval, median_interval, paired_ratio
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.candidates import CandidateRow, Measured, answer_facts
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.summary import placement_facts
from ov_autoplace.report.contents import Contents, Curve
from ov_autoplace.report.ops import op_columns
from ov_autoplace.training.finetuning.files import LOG, TuningFolder
from ov_autoplace.training.finetuning.learning_curve import best_so_far
from ov_autoplace.training.finetuning.result import FinetuneResult, TunedModel
from ov_autoplace.training.finetuning.task import AFTER, ZERO_SHOT, placement_text
from ov_autoplace.training.logs import read_log

__all__ = ["finetune_contents"]

_Line = Mapping[str, Any]


def finetune_contents(result: FinetuneResult, model: ov.Model | None = None) -> Contents:
    """A page about a fine-tuning run: its log, and the best placement where there is one model.

    Args:
        result: What the run left.
        model: The one that was tuned, whose ops are then shown.
    """
    lines = read_log(result.checkpoint / LOG)
    alone = result.models[0] if len(result.models) == 1 else None
    explanation = None
    if alone is not None:
        table = _table(result.checkpoint, alone)
        explanation = HeteroExplanation(table, alone.placement.groups_of(table))
    candidates = tuple(
        row for each in result.models for row in _tuned(each, result.checkpoint, lines, alone is not None)
    )
    how: tuple[tuple[str, str], ...] = (
        ("schedules", "ov-autoplace explain MODEL --affinity FILE --report PAGE.html"),
    )
    if explanation is not None:
        predicted = explanation.schedule.latency_seconds
        how = (*answer_facts(candidates, predicted), *placement_facts(explanation))
    return Contents(
        title=f"fine-tuning on {', '.join(model.name for model in result.models) or 'no model'}",
        answer="; ".join(f"{model.name}: {model.reason}" for model in result.models),
        facts=(
            ("time", f"{result.seconds:.0f} s"),
            ("ended by", result.stopped),
            ("measured placements", str(sum(model.measurements for model in result.models))),
            ("policy", str(result.checkpoint)),
            *((("not reached", ", ".join(result.not_reached)),) if result.not_reached else ()),
            *how,
            ("next", "compile the annotated model in the folder of the run on AUTOPLACE"),
        ),
        candidates=candidates,
        explanation=explanation,
        curves=tuple(_curve(name, lines) for name in dict.fromkeys(line["model"] for line in lines)),
        ops=None if model is None or explanation is None else op_columns(model),
    )


def _table(folder: Path, model: TunedModel) -> CostTable:
    return TuningFolder(folder, resume=True).load_table(model.name)


def _tuned(model: TunedModel, folder: Path, lines: Sequence[_Line], is_alone: bool) -> Iterator[CandidateRow]:
    """The devices alone, the policy's answers and the best placement, with all that was measured of them."""
    own = [line for line in lines if line["model"] == model.name]
    assignment = model.placement.groups_of(_table(folder, model))
    best = placement_text(assignment)
    alone = {device: _placement(own, device) for device in model.devices}
    _, unit = _ratio(own, alone.get(model.best_single))
    singles = []
    for device, text in alone.items():
        _, ratio = _ratio(own, text)
        if ratio is not None and unit is not None:
            singles.append((device, text, ratio.median / unit.median))
    answers = [
        ("policy before", _placement(own, ZERO_SHOT), model.before),
        ("policy after", _placement(own, AFTER), model.after),
        ("best found", best, model.best),
    ]
    for what, text, relative in (*singles, *answers):
        samples, ratio = _ratio(own, text)
        yield CandidateRow(
            name=what if is_alone else f"{model.name}: {what}",
            measured=None if relative is None else _measured(relative * model.single_seconds, ratio),
            samples=samples,
            note="could not be measured" if relative is None else f"{relative:.3f} of the best single device",
            chosen=what == "best found",
        )


def _measured(median: float, ratio: Interval | None) -> Measured:
    """A latency with the interval of its ratio to another one."""
    if ratio is None:
        return Measured(median)
    return Measured(median, median * ratio.low / ratio.median, median * ratio.high / ratio.median)


def _placement(lines: Sequence[_Line], mark: str) -> str | None:
    """The placement that was last proposed by somebody, or with a note; ``None`` = nothing was."""
    found = [line["placement"] for line in lines if mark in (line["source"], line["note"])]
    return found[-1] if found else None


def _ratio(lines: Sequence[_Line], text: str | None) -> tuple[int, Interval | None]:
    """Number of samples of a placement, and its latency over that of the reference of its last races.

    The interval of the reference is that of its own latency, over the median of it.
    """
    races = [line for line in lines if line["ms"]]
    if text is None or not races:
        return 0, None
    reference = races[-1]["reference"]
    races = [line for line in races if line["reference"] == reference]
    if text == _placement(lines, reference):
        own = _reference_samples(races)
        median, low, high = median_interval(own)
        return len(own), Interval(1.0, low / median, high / median)
    races = [line for line in races if line["placement"] == text]
    samples = np.concatenate([[], *(line["ms"][: len(line["reference_ms"])] for line in races)])
    references = np.concatenate([[], *(line["reference_ms"][: len(line["ms"])] for line in races)])
    return len(samples), paired_ratio(samples, references) if len(samples) else None


def _reference_samples(races: Sequence[_Line]) -> FloatArray:
    """Milliseconds of the reference, which every placement that was in a race repeats, ``float64[n]``."""
    longest: dict[float, list[float]] = {}
    for line in races:
        samples = line["reference_ms"]
        longest[samples[0]] = max(longest.get(samples[0], []), samples, key=len)
    return np.concatenate([[], *longest.values()])


def _curve(name: str, lines: Sequence[Mapping[str, Any]]) -> Curve:
    own = [line for line in lines if line["model"] == name]
    run = [line for line in own if line["kind"] == "measured"]
    numbers, best = best_so_far(own)
    return Curve(
        name=name,
        numbers=numbers,
        best=best,
        values=np.array([np.inf if line["relative"] is None else float(line["relative"]) for line in run]),
    )
