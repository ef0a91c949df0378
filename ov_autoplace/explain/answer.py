"""A decided placement, taken apart: all that ``explain`` prints and a report shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import openvino as ov

from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.explain.candidates import CandidateRow, candidates_table, measured_answer, row_of
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.op_costs import OpCost
from ov_autoplace.explain.summary import Fact, bound_of, decision_facts
from ov_autoplace.explain.tables import (
    Table,
    changes_table,
    devices_table,
    groups_table,
    ops_table,
    parts_table,
    path_table,
    slower_table,
    transfers_table,
)
from ov_autoplace.explain.timeline import LaneUse, Stage
from ov_autoplace.explain.what_if import WhatIf, what_ifs
from ov_autoplace.plan.decision import Candidate, Decision

__all__ = ["Answer"]


@dataclass(frozen=True, eq=False)
class Answer:
    """A decided placement, taken apart.

    Attributes:
        title: Of the model.
        decision: How it was decided.
        explanation: The placement.
        changes: What would change the prediction.
        model: The model; ``None`` = groups are all that is known of it.
        run: What was run beside it in another race than the one that decided, itself as the last one.
    """

    title: str
    decision: Decision
    explanation: Explanation
    changes: Sequence[WhatIf] = ()
    model: ov.Model | None = None
    run: Sequence[Candidate] = ()

    @classmethod
    def of(
        cls,
        title: str,
        decision: Decision,
        explanation: Explanation,
        options: PlacerOptions,
        model: ov.Model,
        run: Sequence[Candidate] = (),
    ) -> Answer:
        """An answer, with what would change the prediction under the options of the request."""
        answer = cls(title, decision, explanation, (), model, run)
        if decision.winner.plan.serves_many:
            return answer  # what is asked is about the latency of one request
        limits, seed, tried = options.memory_limits, options.seed, answer._tried()
        return replace(answer, changes=what_ifs(explanation, memory_limits=limits, seed=seed, tried=tried))

    def _shown(self) -> tuple[Sequence[Candidate], Candidate]:
        """What it is shown with, and which of them it is."""
        return (self.run, self.run[-1]) if self.run else (self.decision.candidates, self.decision.winner)

    def _tried(self) -> list[Candidate]:
        """What was measured of placements, the explained one among them."""
        candidates, own = self._shown()
        known = replace(own, assignment=self.explanation.assignment, scheduled=self.decision.scheduled)
        return [known if candidate is own else candidate for candidate in candidates]

    @cached_property
    def rows(self) -> list[CandidateRow]:
        """What it was chosen from, or what was run beside it."""
        candidates, own = self._shown()
        return [row_of(candidate, chosen=candidate is own) for candidate in candidates]

    @property
    def measured_here(self) -> str:
        """What was measured of it in another race than the one that decided, in words; else empty."""
        return measured_answer(self.rows) if self.run else ""

    @property
    def candidates(self) -> Table:
        """What it was chosen from, or what was run beside it."""
        return candidates_table(self.rows, self.decision.rate_bound)

    def facts(self) -> Iterator[Fact]:
        """What is known of it in a few lines."""
        return decision_facts(self.decision, self.rows, self.explanation, self.changes)

    def tables(self, top: int) -> Iterator[Table]:
        """What is shown of it, with ``top`` rows of what there is a lot of."""
        explanation = self.explanation
        runs = {"predicted": explanation.predicted}
        if len(self.rows) > 1:
            yield self.candidates
        yield devices_table(explanation, runs)
        yield parts_table(explanation, explanation.predicted, top)
        yield path_table(runs, top)
        yield groups_table("Heaviest groups of ops", explanation, explanation.heaviest_groups(top))
        yield slower_table(explanation, top)
        yield transfers_table("Dearest transfers", explanation.cuts(), top)
        yield changes_table(self.changes)

    def op_tables(self, ops: Sequence[OpCost], pattern: str | None) -> Iterator[Table]:
        """What is shown of ops, and why the groups of those that match a pattern are where they are."""
        explanation = self.explanation
        yield ops_table(explanation, ops)
        if pattern:
            groups = explanation.groups_matching(pattern)
            yield groups_table("Their groups", explanation, groups)
            names = {group.name for group in groups}
            cuts = [cut for cut in explanation.cuts() if cut.producer in names]
            yield transfers_table("Transfers of their results", cuts, len(cuts))

    def to_json(self, ops: Sequence[OpCost], pattern: str | None, top: int) -> dict[str, Any]:
        """Plain values for JSON; groups are the heaviest, or those of the ops that match a pattern."""
        decision, explanation = self.decision, self.explanation
        schedule, timeline = explanation.schedule, explanation.predicted
        groups = explanation.groups_matching(pattern) if pattern else explanation.heaviest_groups(top)
        return {
            "model": self.title,
            "devices": list(explanation.table.devices),
            **decision.to_json(),
            "cost_source": explanation.table.source,
            "cost_doubt": explanation.table.doubt,
            "predicted_ms": _ms(schedule.latency_seconds),
            "bound_ms": _ms(bound_of(decision, self.changes)),
            "transfer_ms": _ms(schedule.transfer_seconds),
            "objective": explanation.objective,
            "lanes": [_lane_values(lane) for lane in timeline.lanes],
            "critical_path": [
                {"kind": step.kind, "text": step.text, "start_ms": _ms(step.start), "ms": _ms(step.seconds)}
                for step in timeline.path
            ],
            "subgraphs": [_stage_values(stage, explanation.table.names) for stage in timeline.stages],
            "groups": [asdict(group) for group in groups],
            "ops": [asdict(row) for row in ops],
            "left_on_slower": [asdict(group) for group in explanation.left_on_slower(top)],
            "cuts": [asdict(cut) for cut in explanation.cuts()[:top]],
            "what_if": [
                {**asdict(change), "matters": change.matters, "verdict": change.verdict}
                for change in self.changes
            ],
        }


def _lane_values(lane: LaneUse) -> dict[str, Any]:
    """What a device or lane does."""
    return {
        "name": lane.name,
        "subgraphs": lane.subgraphs,
        "ops": lane.ops,
        "busy_ms": _ms(lane.busy_seconds),
        "idle_ms": _ms(lane.idle_seconds),
        "share": lane.share,
        "idle": [
            {"start_ms": _ms(gap.start), "ms": _ms(gap.seconds), "kind": gap.kind, "reason": gap.reason}
            for gap in lane.idle
        ],
    }


def _stage_values(stage: Stage, names: Sequence[str]) -> dict[str, Any]:
    """What a subgraph is, and when it runs."""
    return {
        "subgraph": stage.subgraph,
        "device": stage.device,
        "ops": stage.ops,
        "first": names[stage.groups[0]],
        "last": names[stage.groups[-1]],
        "start_ms": _ms(stage.start),
        "end_ms": _ms(stage.end),
        "waits_for": stage.after if stage.after >= 0 else None,
        "critical": stage.is_critical,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
