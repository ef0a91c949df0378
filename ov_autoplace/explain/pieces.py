"""What is inside a subgraph in time: its groups as they are predicted, or its nodes as they were measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import Stage
from ov_autoplace.measure.measured_run import MeasuredRun

__all__ = ["Inside", "Piece", "groups_inside", "nodes_inside"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a subgraph.

    Attributes:
        name: Of the group or node.
        kind: ``group`` or ``node``.
        start, seconds: When it runs, and how long.
        about: What else is known of it, by name.
    """

    name: str
    kind: str
    start: float
    seconds: float
    about: dict[str, float | str | list[str]]


Inside: TypeAlias = Callable[[Stage], Iterator[Piece]]


def groups_inside(explanation: Explanation) -> Inside:
    """The groups of a stage of the predicted run, with their costs on each device."""
    table, timeline = explanation.table, explanation.predicted

    def inside(stage: Stage) -> Iterator[Piece]:
        for g in stage.groups:
            costs: dict[str, float | str | list[str]] = {
                f"ms on {device}": seconds * 1e3 if seconds < float("inf") else "cannot run"
                for device, seconds in zip(table.devices, table.op_seconds[g].tolist(), strict=True)
            }
            if table.op_types is not None:
                costs["type"] = table.op_types[g]
            start, seconds = float(timeline.group_start[g]), float(timeline.group_seconds[g])
            yield Piece(table.names[g], "group", start, seconds, costs)

    return inside


def nodes_inside(run: MeasuredRun) -> Inside:
    """The nodes of a stage of a measured run one after another.

    Where they took longer than the stage did, which happens as they take whole microseconds, all shrink.
    """
    nodes = {stage.subgraph: stage.nodes for stage in run.stages}

    def inside(stage: Stage) -> Iterator[Piece]:
        own, now = nodes[stage.subgraph], stage.start
        total = sum(node.seconds for node in own)
        scale = min(1.0, stage.seconds / total) if total > 0 else 1.0
        for node in own:
            about: dict[str, float | str | list[str]] = {"type": node.kind, "kernel": node.kernel}
            about["ops"] = list(node.ops)
            yield Piece(node.name, "node", now, scale * node.seconds, about)
            now += scale * node.seconds

    return inside
