"""A measured run in the form of a predicted one, so that both can be shown above each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.predicted import waits_of
from ov_autoplace.explain.timeline import NOBODY, Stage, Timeline, lane_uses, with_path
from ov_autoplace.measure.measured_run import MeasuredRun

__all__ = ["measured_timeline"]


def measured_timeline(explanation: Explanation, run: MeasuredRun) -> Timeline:
    """When submodels ran, and whom they waited for.

    Devices under HETERO say how long their nodes took, not when: their stages are put end to end, and what
    is missing comes after them. Lanes say when, and a submodel waited for whatever ended last of the one
    before it on its lane and those that it reads from.

    Args:
        explanation: The placement that was run; its subgraphs have the same numbers where it is one on lanes.
        run: What was measured.
    """
    names = tuple(dict.fromkeys([*explanation.table.devices, *(stage.device for stage in run.stages)]))
    when = _when(run)
    sources: dict[int, set[int]] = {}
    if explanation.at_once:
        for source, target, _ in waits_of(explanation):
            sources.setdefault(target, set()).add(source)
    ops = {subgraph.index: subgraph.ops for subgraph in explanation.subgraphs()}
    ended: dict[int, float] = {}
    before: dict[str, int] = {}
    stages: list[Stage] = []
    for stage, (start, finish) in zip(run.stages, when, strict=True):
        last = before.get(stage.device) if explanation.at_once else _last(stages)
        senders = {s for s in sources.get(stage.subgraph, ()) if s in ended}
        stages.append(
            Stage(
                subgraph=stage.subgraph,
                device=stage.device,
                start=start,
                seconds=finish - start,
                groups=(),
                ops=ops.get(stage.subgraph, 0),
                after=_latest(ended, senders | ({last} if last is not None else set())),
            )
        )
        ended[stage.subgraph] = finish
        before[stage.device] = stage.subgraph
    marked = with_path(stages)
    end = max((stage.end for stage in stages), default=0.0)
    seconds = max(run.seconds, end)
    return Timeline(
        stages=marked,
        transfers=(),
        lanes=lane_uses(names, marked, seconds),
        group_start=np.empty(0),
        group_seconds=np.empty(0),
        seconds=seconds,
        unlocated_seconds=seconds - end,
    )


def _when(run: MeasuredRun) -> list[tuple[float, float]]:
    """Start and end of each stage."""
    now = 0.0
    found = []
    for stage in run.stages:
        start = now if stage.start is None else stage.start
        now = start + stage.seconds
        found.append((start, now))
    return found


def _last(stages: Sequence[Stage]) -> int | None:
    return stages[-1].subgraph if stages else None


def _latest(ended: Mapping[int, float], subgraphs: set[int]) -> int:
    return max(subgraphs, key=lambda s: (ended[s], s), default=NOBODY)
