"""What a request looks like in time, as ``explain`` prints it: lanes, submodels, and the critical path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ov_autoplace.cli.console import milliseconds, print_table

if TYPE_CHECKING:
    from ov_autoplace.explain.explanation import Explanation
    from ov_autoplace.explain.timeline import LaneUse, Timeline

__all__ = ["lane_rows", "path_rows", "print_lanes", "print_submodels", "stage_rows"]

_REASONS = 3  # of a lane's idle times, the longest


def lane_rows(timeline: Timeline) -> list[dict[str, Any]]:
    """What every device or lane does, for ``--json``."""
    return [
        {
            "name": lane.name,
            "subgraphs": lane.subgraphs,
            "ops": lane.ops,
            "busy_ms": lane.busy_seconds * 1e3,
            "idle_ms": lane.idle_seconds * 1e3,
            "share": lane.share,
            "idle": [
                {
                    "start_ms": idle.start * 1e3,
                    "ms": idle.seconds * 1e3,
                    "kind": idle.kind,
                    "reason": idle.reason,
                }
                for idle in lane.idle
            ],
        }
        for lane in timeline.lanes
    ]


def stage_rows(timeline: Timeline) -> dict[int, dict[str, Any]]:
    """When each subgraph runs, by its number, for ``--json``."""
    return {
        stage.subgraph: {
            "start_ms": stage.start * 1e3,
            "end_ms": stage.end * 1e3,
            "waits_for": stage.after if stage.after >= 0 else None,
            "critical": stage.is_critical,
        }
        for stage in timeline.stages
    }


def path_rows(timeline: Timeline) -> list[dict[str, Any]]:
    """The critical path, whose parts add up to the latency, for ``--json``."""
    return [
        {"kind": step.kind, "text": step.text, "start_ms": step.start * 1e3, "ms": step.seconds * 1e3}
        for step in timeline.path
    ]


def print_lanes(model: Path, timeline: Timeline) -> None:
    """A row per lane: what it does, and what it waits for."""
    print_table(
        f"Lanes of {model}",
        ("lane", ">?submodels", ">?ops", ">busy ms", ">idle ms", ">busy", "~idle times, the longest first"),
        [
            (
                lane.name,
                lane.subgraphs,
                lane.ops,
                milliseconds(lane.busy_seconds),
                milliseconds(lane.idle_seconds),
                f"{100 * lane.share:.0f} %",
                _reasons(lane),
            )
            for lane in timeline.lanes
        ],
    )


def print_submodels(explanation: Explanation, timeline: Timeline, top: int) -> None:
    """Submodels by start, those on the critical path with a star; of very many, the longest."""
    names = explanation.table.names
    longest = sorted(timeline.stages, key=lambda stage: -stage.seconds)[:top]
    kept = {stage.subgraph for stage in longest}
    print_table(
        "Submodels by start, * = on the critical path"
        + (f"; the longest {top} of {len(timeline.stages)}" if len(timeline.stages) > top else ""),
        (">submodel", "lane", ">start ms", ">?end ms", ">ms", ">?ops", ">?after", "from", "?to"),
        [
            (
                f"{stage.subgraph} *" if stage.is_critical else f"{stage.subgraph}  ",
                stage.device,
                milliseconds(stage.start),
                milliseconds(stage.end),
                milliseconds(stage.seconds),
                stage.ops,
                stage.after if stage.after >= 0 else None,
                names[stage.groups[0]],
                names[stage.groups[-1]],
            )
            for stage in timeline.stages
            if stage.subgraph in kept
        ],
    )


def _reasons(lane: LaneUse) -> str:
    reasons = list(lane.reasons.items())
    shown = [f"{milliseconds(seconds)} ms {reason}" for reason, seconds in reasons[:_REASONS]]
    rest = sum(seconds for _, seconds in reasons[_REASONS:])
    return "; ".join([*shown, *([f"{milliseconds(rest)} ms else"] if rest else [])])
