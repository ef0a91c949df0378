"""One request in time, in turns and on lanes: by hand, against the simulator, and what always holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from placed_tables import KINDS, on_devices, on_lanes, random_lanes

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.lanes import LaneExplanation
from ov_autoplace.explain.timeline import NOBODY, Timeline
from random_tables import make_table
from report_tables import diamond


def check(timeline: Timeline) -> None:
    """What holds for every timeline, on lanes and in turns."""
    for lane in timeline.lanes:
        assert lane.busy_seconds + lane.idle_seconds == pytest.approx(timeline.seconds)
        assert sum(lane.reasons.values()) == pytest.approx(lane.idle_seconds)
        own = [(s.start, s.end) for s in timeline.stages if s.device == lane.name]
        assert lane.subgraphs == len(own)
        parts = sorted([*own, *((gap.start, gap.start + gap.seconds) for gap in lane.idle)])
        for (_, end), (start, _) in itertools.pairwise(parts):
            assert start == pytest.approx(end, abs=1e-7 * timeline.seconds)
    path = timeline.path
    assert sum(step.seconds for step in path) == pytest.approx(timeline.seconds)
    for step, following in itertools.pairwise(path):
        assert step.start + step.seconds == pytest.approx(following.start)
    critical = [stage for stage in timeline.stages if stage.is_critical]
    assert [step.text for step in path if step.kind == "subgraph"] == [
        f"{stage.subgraph} on {stage.device}" for stage in critical
    ]
    for sender, stage in itertools.pairwise(critical):
        assert stage.after == sender.subgraph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.seeds(60)
def test_a_timeline_is_the_simulators_and_adds_up(kind: Callable[[int], Explanation], seed: int) -> None:
    explanation = kind(seed)
    table, schedule, timeline = explanation.table, explanation.schedule, explanation.predicted

    check(timeline)
    assert timeline.seconds == pytest.approx(schedule.latency_seconds)
    assert timeline.unlocated_seconds == 0  # groups without ops inside are never cut
    for lane, busy in zip(timeline.lanes, schedule.device_seconds, strict=True):
        assert lane.busy_seconds == pytest.approx(busy)
    moved = sum(transfer.cut.seconds for transfer in timeline.transfers)
    mixing = table.mix_seconds if kind is on_devices else 0.0  # what HETERO's mixes cost once
    assert moved + mixing == pytest.approx(schedule.transfer_seconds)
    # Groups lie inside their subgraph one after another.
    end = timeline.group_start + timeline.group_seconds
    for stage in timeline.stages:
        groups = list(stage.groups)
        assert timeline.group_start[groups[0]] >= stage.start - 1e-9
        assert end[groups[-1]] == pytest.approx(stage.end)
        assert end[groups[:-1]] == pytest.approx(timeline.group_start[groups[1:]])
    placed = sorted(g for stage in timeline.stages for g in stage.groups)
    assert placed == np.flatnonzero(schedule.subgraph_of >= 0).tolist()


@pytest.mark.seeds(12)
def test_in_turns_nobody_works_beside_anybody(seed: int) -> None:
    explanation = on_devices(seed)
    timeline = explanation.predicted

    assert not timeline.has_slack
    # What nobody runs, somebody else does, or it is a transfer.
    busy = sum(lane.busy_seconds for lane in timeline.lanes)
    moved = sum(transfer.cut.seconds for transfer in timeline.transfers)
    table = explanation.table
    assert busy + moved + table.mix_seconds == pytest.approx(timeline.seconds)
    tensor = np.repeat(np.arange(len(table.tensor_producer)), np.diff(table.tensor_offsets))
    end = timeline.group_start + timeline.group_seconds
    assert (timeline.group_start[table.tensor_consumers] >= end[table.tensor_producer[tensor]] - 1e-12).all()


@pytest.mark.seeds(60)
def test_who_is_waited_for_decides_when_a_submodel_starts(seed: int) -> None:
    explanation = on_lanes(seed + 500)
    timeline = explanation.predicted
    stages = {stage.subgraph: stage for stage in timeline.stages}
    way = {(source, target): seconds for source, target, seconds in explanation.waits()}

    for (source, target), seconds in way.items():
        assert stages[target].start >= stages[source].end + seconds - 1e-9
    for stage in timeline.stages:
        if stage.after == NOBODY:
            # The first one of a request, after what mixing devices costs.
            assert stage.start in (0.0, explanation.table.mix_seconds)
            continue
        sender = stages[stage.after]
        took = 0.0 if sender.device == stage.device else way[stage.after, stage.subgraph]
        assert stage.start == pytest.approx(sender.end + took)


@pytest.mark.seeds(40)
def test_a_critical_transfer_fills_the_gap_that_it_makes(seed: int) -> None:
    timeline = on_lanes(seed + 900).predicted
    sent = [(transfer.start, transfer.end) for transfer in timeline.transfers]
    hops = [step for step in timeline.path if step.kind == "transfer"]

    for hop in hops:
        ends = (hop.start, hop.start + hop.seconds)
        assert any(both == pytest.approx(ends) for both in sent)
    gaps = [gap for lane in timeline.lanes for gap in lane.idle if gap.kind == "transfer"]
    for hop in hops:
        ends = [gap.start + gap.seconds for gap in gaps]
        assert any(end == pytest.approx(hop.start + hop.seconds) for end in ends)


def test_subgraphs_run_one_after_another_with_transfers_before_them() -> None:
    # a and c on X, b on Y, d on X: a waits for nothing, d for b's result.
    timeline = HeteroExplanation(diamond(), np.array([0, 1, 0, 0], dtype=np.int32)).predicted

    # HETERO cuts d off from a and c, which b needs to be finished before it can start.
    assert [stage.device for stage in timeline.stages] == ["X", "Y", "X"]
    assert [stage.ops for stage in timeline.stages] == [3, 2, 1]
    first, second, third = timeline.stages
    assert (first.start, first.end) == (0, pytest.approx(1e-5 + 5e-3))
    over, *back = timeline.transfers
    assert (over.cut.producer, over.start) == ("a", first.end)
    assert second.start == pytest.approx(first.end + 1e-4 + 1000 * 1e-7)
    assert second.end == pytest.approx(second.start + 2e-5 + 1e-3)
    assert {transfer.cut.producer for transfer in back} == {"b", "c"}
    assert third.start == pytest.approx(back[-1].end)
    assert timeline.seconds == pytest.approx(third.end)


def test_two_towers_and_their_joint_by_hand() -> None:
    # left (3 s) and right (5 s) on two lanes, the joint (1 s) on the left one; a hand-over takes 0.5 s.
    table = make_table([[3.0], [5.0], [1.0]], [(0, 8.0, [2]), (1, 8.0, [2])])
    table = with_lanes(table, "DEV0", 2, hand_over_seconds=0.5, corun_factor=1.0)
    timeline = LaneExplanation(table, np.array([0, 1, 0], dtype=np.int32)).predicted

    left, right = timeline.lanes
    assert [(s.device, s.start, s.end, s.is_critical) for s in timeline.stages] == [
        ("DEV0#0", 0.0, 3.0, False),
        ("DEV0#1", 0.0, 5.0, True),
        ("DEV0#0", 5.5, 6.5, True),
    ]
    assert (timeline.seconds, timeline.has_slack) == (6.5, True)
    assert (left.busy_seconds, right.busy_seconds) == (4.0, 5.0)
    assert left.reasons == {"waits for 1 on DEV0#1": 2.0, "transfer from 1 on DEV0#1": 0.5}
    assert right.reasons == {"nothing left to run": 1.5}
    assert [(step.kind, step.seconds) for step in timeline.path] == [
        ("subgraph", 5.0),
        ("transfer", 0.5),
        ("subgraph", 1.0),
    ]
    (cut,) = LaneExplanation(table, np.array([0, 1, 0], dtype=np.int32)).cuts()
    assert (cut.source_device, cut.target_device, cut.seconds) == ("DEV0#1", "DEV0#0", 0.5)


def test_a_placement_that_cannot_run_has_an_empty_timeline() -> None:
    table = random_lanes(3, groups=6)
    seconds = table.op_seconds.copy()
    seconds[2] = [1.0] + [np.inf] * (table.num_devices - 1)
    table = replace(table, op_seconds=seconds)
    assignment = np.full(6, table.num_devices - 1, dtype=np.int32)

    timeline = LaneExplanation(table, assignment).predicted

    assert (timeline.stages, timeline.transfers, timeline.seconds, timeline.path) == ((), (), 0.0, ())
    assert all(lane.idle == () for lane in timeline.lanes)
