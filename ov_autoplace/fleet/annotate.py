"""One placement of a model for each kind of machine: measured on all, solved from medians, raced on one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ov_autoplace.errors import AutoplaceError
from ov_autoplace.fleet.answers import placement_of
from ov_autoplace.fleet.measurement import Measurement
from ov_autoplace.fleet.merging import Merged, merge
from ov_autoplace.fleet.models import SharedModel
from ov_autoplace.fleet.run import FleetRun, Group
from ov_autoplace.plan.placement import Placement

__all__ = ["KindPlacement", "place_on_fleet"]

_COUNT, _PLACE = "ov_autoplace.fleet.on_machine:count", "ov_autoplace.fleet.on_machine:place"


@dataclass(frozen=True, eq=False)
class KindPlacement:
    """The answer for one kind of machine.

    Attributes:
        group: The machines.
        merged: What they measured; ``None`` where nothing was to be measured, or nothing could.
        placement: ``None`` where there is none; the group says what is missing.
        raced_on: The machine that raced the answer.
        answer: The placement as that machine told it.
    """

    group: Group
    merged: Merged | None
    placement: Placement | None
    raced_on: str
    answer: Mapping[str, Any] | None


def place_on_fleet(run: FleetRun, shared: SharedModel, options: Mapping[str, Any]) -> list[KindPlacement]:
    """Place a model for each kind of machine of a run.

    Args:
        run: The machines.
        shared: The model; names of its ops are unique.
        options: The placer's, as JSON values.
    """
    groups = run.groups
    asked = {name: _request_for(group, shared, options) for name, group in groups.items()}
    merged: dict[str, Merged] = {}
    measures = options.get("mode") != "ZERO_SHOT"
    if measures:
        for name, answers in run.on_each("count", _COUNT, asked, shared.data).items():
            try:
                merged[name] = merge({m: Measurement.from_dict(a, m) for m, a in answers.items()})
            except AutoplaceError as cause:
                groups[name].missing.append(str(cause))
    known = {name: m.measurement.to_dict() for name, m in merged.items()}
    requests = {
        name: request | {"measurement": known.get(name)}
        for name, request in asked.items()
        if name in known or not measures
    }
    outcomes = run.on_one(
        "place", _PLACE, requests, shared.data, {name: m.to_avoid for name, m in merged.items()}
    )
    result = []
    for name, group in groups.items():
        placement, outcome = None, outcomes.get(name)
        if outcome is not None and not outcome.failure:
            try:
                placement = placement_of(outcome.answer, outcome.machine)
            except AutoplaceError as cause:
                group.missing.append(str(cause))
        answer = None if placement is None or outcome is None else outcome.answer
        raced_on = "" if answer is None or outcome is None else outcome.machine
        result.append(KindPlacement(group, merged.get(name), placement, raced_on, answer))
    return result


def _request_for(group: Group, shared: SharedModel, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a machine of a kind is told of the model."""
    return {"model": shared.digest, "devices": list(group.kind.devices), "options": dict(options)}
