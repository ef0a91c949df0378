"""The predicted run of a placement in time, checked against sums done by hand and against the simulator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ov_autoplace.explain.hetero import HeteroExplanation
from report_tables import diamond, layered_table, pieces


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


def test_groups_lie_inside_their_subgraph_and_do_not_overlap() -> None:
    table = layered_table(300, seed=4)
    timeline = HeteroExplanation(table, pieces(300, 9)).predicted

    assert len(timeline.stages) >= 9
    for stage in timeline.stages:
        starts = timeline.group_start[list(stage.groups)]
        ends = starts + timeline.group_seconds[list(stage.groups)]
        assert starts[0] > stage.start
        assert ends[-1] == pytest.approx(stage.end)
        assert (starts[1:] >= ends[:-1] - 1e-12).all()
    assert sorted(g for stage in timeline.stages for g in stage.groups) == list(range(300))


@pytest.mark.seeds(8)
def test_everything_in_the_timeline_adds_up_to_the_simulated_latency(seed: int) -> None:
    table = layered_table(60, seed=seed)
    assignment = np.random.default_rng(seed).integers(0, 2, 60).astype(np.int32)
    explanation = HeteroExplanation(table, assignment)

    timeline = explanation.predicted

    assert timeline.seconds == pytest.approx(explanation.schedule.latency_seconds)
    parts = sorted(
        [(s.start, s.end) for s in timeline.stages] + [(h.start, h.end) for h in timeline.transfers]
    )
    assert parts[0][0] == 0
    for (_, end), (start, _) in itertools.pairwise(parts):
        assert start == pytest.approx(end)
    assert timeline.unlocated_seconds == pytest.approx(timeline.seconds - parts[-1][1])
    assert timeline.unlocated_seconds == 0  # groups without ops inside are never cut


@pytest.mark.seeds(8)
def test_nothing_starts_before_what_it_reads_is_there(seed: int) -> None:
    table = layered_table(60, seed=seed)
    assignment = np.random.default_rng(seed).integers(0, 2, 60).astype(np.int32)
    timeline = HeteroExplanation(table, assignment).predicted

    end = timeline.group_start + timeline.group_seconds
    for t, producer in enumerate(table.tensor_producer):
        for reader in table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]:
            assert timeline.group_start[reader] >= end[producer] - 1e-12
