"""A measured run in the form of a predicted one, so that both can be shown above each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.timeline import NOBODY, Stage, Timeline, Transfer, lane_uses, with_path
from ov_autoplace.measure.measured_run import MeasuredRun

__all__ = ["measured_timeline"]


def measured_timeline(explanation: Explanation, run: MeasuredRun) -> Timeline:
    """When submodels ran, and whom they waited for.

    Devices under HETERO say how long their nodes took, not when: their stages are put end to end, and what
    is missing comes after them. Lanes say when, and a submodel waited for whatever ended last of the one
    before it on its lane and those that it reads from.

    Args:
        explanation: The placement that was run; its parts have the same numbers where it is one on lanes.
        run: What was measured.
    """
    names = tuple(dict.fromkeys([*explanation.table.devices, *(stage.device for stage in run.stages)]))
    sources: dict[int, set[int]] = {}
    for source, target, _ in explanation.waits():
        sources.setdefault(target, set()).add(source)
    ops = {stage.subgraph: stage.ops for stage in explanation.predicted.stages}
    ended: dict[int, float] = {}
    before: dict[str, int] = {}
    stages: list[Stage] = []
    for stage in run.stages:
        known = {s for s in sources.get(stage.subgraph, ()) if s in ended}
        if stage.start is not None:
            known |= {before[stage.device]} if stage.device in before else set()
            start = stage.start
        else:
            start = stages[-1].end if stages else 0.0
            known = {stages[-1].subgraph} if stages else set()
        after, count = _latest(ended, known), ops.get(stage.subgraph, 0)
        stages.append(Stage(stage.subgraph, stage.device, start, stage.seconds, (), count, after))
        ended[stage.subgraph] = stages[-1].end
        before[stage.device] = stage.subgraph
    marked = with_path(stages)
    end = max((stage.end for stage in stages), default=0.0)
    seconds = max(run.seconds, end)
    return Timeline(
        stages=marked,
        transfers=tuple(_sent(explanation, stages)) if all(s.start is not None for s in run.stages) else (),
        lanes=lane_uses(names, marked, seconds),
        group_start=np.empty(0),
        group_seconds=np.empty(0),
        seconds=seconds,
        unlocated_seconds=seconds - end,
    )


def _sent(explanation: Explanation, stages: Sequence[Stage]) -> Iterator[Transfer]:
    """What was handed over; a lane that was late may have left a submodel to another one, and nothing is."""
    by_number = {stage.subgraph: stage for stage in stages}
    for cut in explanation.cuts():
        sender, receiver = by_number.get(cut.source_subgraph), by_number.get(cut.target_subgraph)
        if sender is not None and receiver is not None and sender.device != receiver.device:
            moved = replace(cut, source_device=sender.device, target_device=receiver.device)
            yield Transfer(moved, sender.end)


def _latest(ended: Mapping[int, float], subgraphs: set[int]) -> int:
    return max(subgraphs, key=lambda s: (ended[s], s), default=NOBODY)
