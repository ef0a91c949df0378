"""What a report shows, gathered from what the commands know; nothing here draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.tables import facts
from ov_autoplace.explain.answer import Answer
from ov_autoplace.explain.candidates import CandidateRow
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.summary import Fact
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.measure.measured_run import MeasuredRun
from ov_autoplace.report.ops import op_columns

__all__ = ["Contents", "Curve", "application_contents", "placement_contents"]


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
        candidates: What was considered, or run beside the answer.
        rate_bound: So many requests a second no mixture of placements is predicted to exceed.
        explanation: The placement.
        changes: What would change the answer.
        measured: The placement on its devices.
        curves: Learning curves.
        ops: The model's ops, as ``ops.op_columns`` gives them.
        application: The plan of several models.
    """

    title: str
    answer: str
    facts: tuple[Fact, ...]
    candidates: Sequence[CandidateRow] = ()
    rate_bound: float | None = None
    explanation: Explanation | None = None
    changes: Sequence[WhatIf] = ()
    measured: MeasuredRun | None = None
    curves: tuple[Curve, ...] = ()
    ops: Mapping[str, Any] | None = None
    application: ApplicationPlan | None = None


_NEXT = (
    'compile the model with core.compile_model(model, "AUTOPLACE"), or write the answer into it with '
    "ov-autoplace annotate"
)
_NEXT_OF_MANY = (
    'compile each model with core.compile_model(model, "AUTOPLACE", {"AUTOPLACE_APPLICATION": plan}), where '
    "plan is the file that ov-autoplace application wrote"
)


def application_contents(title: str, answer: ApplicationPlan) -> Contents:
    """A page about several models at once."""
    assert answer.decision is not None
    known = (*facts(answer), ("next", _NEXT_OF_MANY))
    return Contents(title, answer.decision.reason, known, application=answer)


def placement_contents(answer: Answer, measured: MeasuredRun | None = None) -> Contents:
    """A page about one placement and what it was compared with.

    Args:
        answer: The placement.
        measured: Its run on the devices.
    """
    decision = answer.decision
    return Contents(
        title=answer.title,
        answer="; ".join(filter(None, (decision.reason, answer.measured_here))),
        facts=(*answer.facts(), ("next", _NEXT)),
        candidates=answer.rows,
        rate_bound=decision.rate_bound,
        explanation=answer.explanation,
        changes=answer.changes,
        measured=measured,
        ops=None if answer.model is None else op_columns(answer.model),
    )
