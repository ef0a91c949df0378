"""A placement taken apart for the report, and as the data that the page's script reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ov_autoplace.explain.explanation import Explanation, GroupCost
from ov_autoplace.explain.measured import measured_timeline
from ov_autoplace.explain.pieces import Inside, groups_inside, nodes_inside
from ov_autoplace.explain.timeline import Timeline
from ov_autoplace.report.contents import Contents

__all__ = ["Analysis", "analysis_of", "placement_record"]


@dataclass(frozen=True, eq=False, slots=True)
class Analysis:
    """A placement taken apart once for everything that shows it.

    Attributes:
        explanation: The placement.
        groups: Every group with its reason.
        runs: One request as it was ``measured``, if it was, and as it is ``predicted``.
        inside: What is inside the stages of each run.
    """

    explanation: Explanation
    groups: Sequence[GroupCost]
    runs: Mapping[str, Timeline]
    inside: Mapping[str, Inside]


def analysis_of(contents: Contents) -> Analysis | None:
    """What is to be known of a report's placement; ``None`` where it has none that can run."""
    explanation, measured = contents.explanation, contents.measured
    if explanation is None or not math.isfinite(explanation.schedule.latency_seconds):
        return None
    runs, inside = {"predicted": explanation.predicted}, {"predicted": groups_inside(explanation)}
    if measured is not None:
        runs = {"measured": measured_timeline(explanation, measured), **runs}
        inside["measured"] = nodes_inside(measured)
    return Analysis(explanation, explanation.all_groups(), runs, inside)


def placement_record(analysis: Analysis) -> dict[str, Any]:
    """The groups of a placement in JSON's own types; times are in milliseconds."""
    explanation = analysis.explanation
    table, names = explanation.table, explanation.table.names
    milliseconds = np.where(np.isfinite(table.op_seconds), table.op_seconds * 1e3, -1.0)
    return {
        "devices": list(table.devices),
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
    }
