"""A report as data: what the page's script reads, and what ``ov-autoplace compare`` puts side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._version import __version__
from ov_autoplace.explain.explanation import Explanation, GroupCost
from ov_autoplace.explain.measured import measured_timeline
from ov_autoplace.explain.predicted import timeline_of
from ov_autoplace.explain.timeline import Timeline
from ov_autoplace.report.contents import Contents
from ov_autoplace.report.latency import Latency

__all__ = ["SCHEMA", "VERSION", "Analysis", "analysis_of", "record_of"]

SCHEMA, VERSION = "ov-autoplace report", 1


@dataclass(frozen=True, eq=False, slots=True)
class Analysis:
    """A placement taken apart once for everything that shows it.

    Attributes:
        explanation: The placement.
        groups: Every group with its reason.
        predicted: The run that the costs predict.
        measured: The run that was measured; ``None`` = none was.
    """

    explanation: Explanation
    groups: Sequence[GroupCost]
    predicted: Timeline
    measured: Timeline | None

    @property
    def runs(self) -> tuple[tuple[str, Timeline], ...]:
        """The runs with the words for them; what was measured comes first."""
        measured = () if self.measured is None else (("measured", self.measured),)
        return (*measured, ("predicted", self.predicted))


def analysis_of(contents: Contents) -> Analysis | None:
    """What is to be known of a report's placement; ``None`` where it has none that can run."""
    explanation = contents.explanation
    if explanation is None or not math.isfinite(explanation.schedule.latency_seconds):
        return None
    measured = None if contents.measured is None else measured_timeline(explanation, contents.measured)
    return Analysis(explanation, explanation.all_groups(), timeline_of(explanation), measured)


def record_of(contents: Contents, analysis: Analysis | None) -> dict[str, Any]:
    """The report in JSON's own types; times are in milliseconds.

    Args:
        contents: The report.
        analysis: Its placement.
    """
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "made_by": f"ov-autoplace {__version__}",
        "made": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "title": contents.title,
        "answer": contents.answer,
        "facts": [{"name": name, "value": value} for name, value in contents.facts],
        "latencies": [_latency(row) for row in contents.latencies],
        "rates": [asdict(row) for row in contents.rates],
        "rate_bound_per_second": contents.rate_bound,
        "placement": None if analysis is None else _placement(analysis),
        "curves": [
            {
                "name": curve.name,
                "numbers": curve.numbers.tolist(),
                "values": _finite(curve.values),
                "best": _finite(curve.best),
            }
            for curve in contents.curves
        ],
    }


def _latency(row: Latency) -> dict[str, Any]:
    return {
        "name": row.name,
        "chosen": row.chosen,
        "predicted_ms": _ms(row.predicted),
        "measured_ms": _ms(row.median),
        "low_ms": _ms(row.low),
        "high_ms": _ms(row.high),
        "samples": row.samples,
        "paused_ms": _ms(row.paused),
        "subgraphs": row.subgraphs,
        "output_difference": row.output_difference,
        "note": row.note,
    }


def _placement(analysis: Analysis) -> dict[str, Any]:
    explanation = analysis.explanation
    table, names = explanation.table, explanation.table.names
    milliseconds = np.where(np.isfinite(table.op_seconds), table.op_seconds * 1e3, -1.0)
    return {
        "objective": explanation.objective,
        "costs": table.source,
        "devices": list(table.devices),
        "owners": list(table.lane_devices or table.devices),
        "names": list(names),
        "types": [group.op_type for group in analysis.groups],
        "device": explanation.assignment.tolist(),
        "subgraph": explanation.schedule.subgraph_of.tolist(),
        # -1 = cannot run there
        "ms": [[float(f"{value:.5g}") for value in row] for row in milliseconds.tolist()],
        "reasons": [group.reason for group in analysis.groups],
        "members": [
            [op for op in ops if op != name] for name, ops in zip(names, explanation.members(), strict=True)
        ],
        "runs": [_run(what, timeline) for what, timeline in analysis.runs],
    }


def _run(what: str, timeline: Timeline) -> dict[str, Any]:
    return {
        "what": what,
        "ms": _ms(timeline.seconds),
        "lanes": [
            {"name": lane.name, "busy_ms": _ms(lane.busy_seconds), "idle_ms": _ms(lane.idle_seconds)}
            for lane in timeline.lanes
        ],
        # number, lane, start, milliseconds, whether it is on the critical path
        "stages": [
            [stage.subgraph, stage.device, _ms(stage.start), _ms(stage.seconds), stage.is_critical]
            for stage in timeline.stages
        ],
    }


def _finite(values: FloatArray) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds * 1e3:.7g}")
