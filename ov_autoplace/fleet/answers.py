"""A placement with its decision as JSON values, and back: one machine decides and another one writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.json_fields import Record
from ov_autoplace.cost.table_json import table_of_text, table_text
from ov_autoplace.devices.quota import Quota
from ov_autoplace.errors import FleetError, PlacementError
from ov_autoplace.plan.decision import Candidate, Decision, Load, Scheduled
from ov_autoplace.plan.findings import Finding
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import Plan, read_plan

__all__ = ["placement_of", "placement_values"]

_T = TypeVar("_T")


def placement_values(placement: Placement) -> dict[str, Any]:
    """JSON values of a placement that was decided.

    Args:
        placement: Has a decision.
    """
    decision = placement.decision
    assert decision is not None  # it was decided
    return {
        "placement": placement.decided(),
        "given": _written(dict, placement.given),
        "solver": placement.solver,
        "latency_seconds": _finite(placement.latency_seconds),
        "lower_bound_seconds": _finite(placement.lower_bound_seconds),
        "plan": placement.plan.to_json(),
        "chosen": decision.chosen,
        "findings": [finding.to_json() for finding in decision.findings],
        "mode": decision.mode,
        "seconds": dict(decision.seconds),
        "left_out": dict(decision.left_out),
        "disturbed": decision.disturbed,
        "quota": _written(asdict, decision.quota),
        "table": _written(table_text, decision.table),
        "candidates": [_candidate_values(candidate) for candidate in decision.candidates],
        "scheduled": _written(_scheduled_values, decision.scheduled),
    }


def _written(convert: Callable[[_T], Any], value: _T | None) -> Any:
    """JSON values of what may not be there."""
    return None if value is None else convert(value)


def _scheduled_values(scheduled: Scheduled) -> dict[str, Any]:
    return {"table": table_text(scheduled.table), "assignment": scheduled.assignment.tolist()}


def placement_of(data: object, where: str) -> Placement:
    """The placement that :func:`placement_values` took apart.

    Args:
        data: Parsed JSON.
        where: Whose answer it is, for error sentences.

    Raises:
        FleetError: It is nothing of the kind.
        CostTableError: A cost table in it is none.
    """
    costs = f"the cost table in the answer of {where}"
    top = Record.of(data, f"the answer of {where}", FleetError)
    placed = {name: top.record("placement").text(name) for name in top.record("placement").fields}
    given = None
    if "given" in top:
        given = {name: top.record("given").text(name) for name in top.record("given").fields}
    scheduled = None
    if "scheduled" in top:
        own = top.record("scheduled")
        table = table_of_text(own.text("table"), costs)
        scheduled = Scheduled(
            table,
            frozen_array(own.integers("assignment", 0, len(table.devices) - 1), np.int32),
        )
    chosen = top.text("chosen")
    candidates = [
        _candidate(record, scheduled if record.text("name") == chosen else None)
        for record in top.records("candidates", "candidate")
    ]
    seconds, left_out = top.record("seconds"), top.record("left_out")
    quota = top.record("quota") if "quota" in top else None
    decision = Decision(
        chosen,
        tuple(map(Finding.read, top.records("findings", "finding"))),
        top.text("mode"),
        tuple(candidates),
        {name: seconds.number(name) for name in seconds.fields},
        table_of_text(top.text("table"), costs) if "table" in top else None,
        {name: left_out.text(name) for name in left_out.fields},
        top.flag("disturbed", False),
        quota=Quota(quota.number("cores"), quota.number("period_seconds")) if quota is not None else None,
    )
    base = Placement.from_dict(placed)
    return Placement(
        base.devices,
        base.names,
        base.assignment,
        latency_seconds=top.number("latency_seconds") if "latency_seconds" in top else None,
        lower_bound_seconds=top.number("lower_bound_seconds") if "lower_bound_seconds" in top else None,
        solver=top.text("solver"),
        decision=decision,
        given=given,
        plan=_plan(top, "plan"),
    )


def _candidate_values(candidate: Candidate) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "plan": candidate.plan.to_json(),
        "predicted_seconds": _finite(candidate.predicted_seconds),
        "subgraphs": candidate.subgraphs,
        "times": {load.value: samples.tolist() for load, samples in candidate.times.items()},
        "tail_seconds": candidate.tail_seconds,
        "dropped": candidate.dropped,
        "output_difference": candidate.output_difference,
        "is_wrong": candidate.is_wrong,
        "also": list(candidate.also),
        "assignment": candidate.assignment.tolist(),
    }


def _candidate(record: Record, scheduled: Scheduled | None) -> Candidate:
    return Candidate(
        record.text("name"),
        _plan(record, "plan"),
        record.number("predicted_seconds") if "predicted_seconds" in record else None,
        record.integer("subgraphs", 0, 2**31 - 1),
        _times(record.record("times")),
        record.text("dropped"),
        record.texts("also"),
        frozen_array(record.integers("assignment", 0, 2**31 - 1), np.int32),
        scheduled=scheduled,
        tail_seconds=record.number("tail_seconds") if "tail_seconds" in record else None,
        output_difference=record.number("output_difference") if "output_difference" in record else None,
        is_wrong=record.flag("is_wrong", False),
    )


def _times(record: Record) -> dict[Load, FloatArray]:
    known = [load for load in Load if load.value in record]
    return {load: frozen_array(record.numbers(load.value), np.float64) for load in known}


def _plan(record: Record, key: str) -> Plan:
    try:
        return read_plan(record.fields.get(key), f"{record.where}: {key!r}")
    except PlacementError as cause:
        raise FleetError(str(cause)) from cause


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
