"""What is said of an answer in a few lines: names and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ov_autoplace._base.text import milliseconds
from ov_autoplace.explain.candidates import CandidateRow, answer_facts
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.plan.decision import Decision

__all__ = ["Fact", "bound_of", "decision_facts", "placement_facts"]

Fact = tuple[str, str]
"""A name and its value."""


def decision_facts(
    decision: Decision, rows: Sequence[CandidateRow], explanation: Explanation, changes: Sequence[WhatIf]
) -> Iterator[Fact]:
    """What is known of a decided placement.

    Args:
        decision: How it was chosen.
        rows: What was considered, or run beside it.
        explanation: The placement.
        changes: What would change the prediction.
    """
    yield "mode", decision.mode.lower().replace("_", "-")
    yield "chosen", decision.chosen
    yield from answer_facts(rows, explanation.schedule.latency_seconds)
    if decision.threads:
        yield "runs on", f"{decision.threads}; times of groups are those of all threads"
    yield from placement_facts(explanation)
    bound = bound_of(decision, changes)
    if bound is not None:
        yield "no placement predicted below", f"{milliseconds(bound)} ms"
    if decision.disturbed:
        yield "other work", "disturbed the measurements"


def placement_facts(explanation: Explanation) -> Iterator[Fact]:
    """What is predicted of a placement, and what it is made of."""
    schedule, timeline = explanation.schedule, explanation.predicted
    yield "devices", ", ".join(explanation.table.devices)
    doubt = explanation.table.doubt
    known = f", typically within a factor of {doubt:.2g}" if doubt > 1 else ""
    yield "costs", explanation.table.source + known
    yield "ops", f"{sum(map(len, explanation.members())):,}"
    yield "groups of ops", f"{len(explanation.table):,}"
    yield f"{explanation.part}s", f"{schedule.subgraphs:,}"
    yield "predicted transfers", f"{milliseconds(schedule.transfer_seconds)} ms"
    if timeline.has_slack:
        idle = sum(lane.idle_seconds for lane in timeline.lanes)
        share = 100 * idle / (timeline.seconds * len(timeline.lanes))
        path = sum(stage.is_critical for stage in timeline.stages)
        yield "predicted idle, all lanes", f"{milliseconds(idle)} ms, {share:.0f} %"
        yield "predicted critical path", f"{path} of {len(timeline.stages)} {explanation.part}s"


def bound_of(decision: Decision, changes: Sequence[WhatIf]) -> float | None:
    """Seconds that no placement is predicted to beat at the costs as they are, where something is proven.

    These are the costs of all threads, and say nothing of an answer on fewer.
    """
    return changes[0].bound_seconds if changes and not decision.threads else None
