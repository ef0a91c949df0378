"""Placements on lanes taken apart, and what would change them: by hand, and against all placements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from placed_tables import on_lanes, random_lanes

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.lanes import LaneExplanation
from ov_autoplace.explain.what_if import what_ifs
from ov_autoplace.plan.simulator import simulate, simulate_batch
from random_tables import legal_assignments, make_table


def placed(*lanes: int) -> np.ndarray:
    return np.array(lanes, dtype=np.int32)


def fan(lanes: int = 2) -> CostTable:
    """a -> b, c, d -> e on lanes of X and on Y, where everything takes ten times as long; in seconds."""
    table = make_table(
        np.array([[1.0], [4.0], [3.0], [2.0], [1.0]]) * [1.0, 10.0],
        [(0, 10.0, [1, 2, 3]), (1, 10.0, [4]), (2, 10.0, [4]), (3, 10.0, [4])],
        devices=("X", "Y"),
        transfer_latency=np.full((2, 2), 0.5),
        transfer_seconds_per_byte=np.zeros((2, 2)),
    )
    return with_lanes(table, "X", lanes, hand_over_seconds=0.25, corun_factor=1.0)


def test_a_lane_receives_a_tensor_once_and_who_reads_it_first_is_named() -> None:
    # b on lane 0 with a and e; c and d, both of which read a's result, on lane 1.
    explanation = LaneExplanation(fan(), placed(0, 0, 1, 1, 0))

    cuts = explanation.cuts()

    assert sorted((cut.producer, cut.source_device, cut.target_device) for cut in cuts) == [
        ("group0", "X#0", "X#1"),
        ("group2", "X#1", "X#0"),
        ("group3", "X#1", "X#0"),
    ]
    assert {cut.seconds for cut in cuts} == {0.25}
    assert sum(cut.seconds for cut in cuts) == pytest.approx(explanation.schedule.transfer_seconds)


def test_reasons_and_columns_speak_of_lanes_that_are_alike() -> None:
    explanation = LaneExplanation(fan(), placed(0, 0, 1, 1, 0))

    groups = explanation.all_groups()

    assert explanation.columns == {"X": "X#0", "Y": "Y"}
    assert set(groups[0].seconds) == {"X#0", "X#1", "Y"}
    # b alone on the other lane: c and d wait for it, or it for them.
    assert groups[1].reason.startswith("as fast on all lanes of its device: alone on X#1")
    moved = simulate(explanation.table, placed(0, 1, 1, 1, 0), "overlap").latency_seconds
    change = (moved - explanation.schedule.latency_seconds) * 1e3
    assert change > 0
    assert groups[1].reason.endswith(f"the model takes {change:.3f} ms more")


def test_what_runs_nowhere_is_in_no_submodel_and_not_placed_for_a_reason() -> None:
    table = replace(fan(), op_types=("Parameter", "MatMul", "MatMul", "MatMul", "Add"))
    seconds = table.op_seconds.copy()
    seconds[0] = 0.0
    explanation = LaneExplanation(replace(table, op_seconds=seconds), placed(0, 0, 1, 1, 0))

    assert explanation.all_groups()[0].subgraph == -1
    assert "group0" not in {cut.producer for cut in explanation.cuts()}
    assert sum(stage.ops for stage in explanation.predicted.stages) == 4


@pytest.mark.seeds(12)
def test_every_question_about_lanes_is_answered_with_the_best_of_all_placements(seed: int) -> None:
    table = random_lanes(seed + 40, groups=5)
    explanation = on_lanes(seed, table)
    answers = what_ifs(explanation)

    assert answers[0].change == "costs as they are"
    asked = {answer.change: answer for answer in answers}
    free = replace(
        table,
        transfer_seconds_per_byte=np.zeros_like(table.transfer_latency),
        transfer_latency=np.zeros_like(table.transfer_latency),
        launch_seconds=np.zeros_like(table.launch_seconds),
        mix_seconds=0.0,
    )
    changed = {
        "costs as they are": table,
        "transfers and launches that cost nothing": free,
        "lanes that do not slow each other down": replace(table, corun_factor=1.0),
    }
    assert ("lanes that do not slow each other down" in asked) == (
        table.corun_factor > 1 and table.num_devices > 1
    )
    for change, costs in changed.items():
        if change not in asked:
            continue
        every = simulate_batch(costs, legal_assignments(costs), objective="overlap")
        assert asked[change].best_seconds == pytest.approx(every.min())
        assert asked[change].placed_seconds == pytest.approx(
            simulate(costs, explanation.assignment, "overlap").latency_seconds
        )
        bound = asked[change].bound_seconds
        assert bound is not None
        assert bound <= every.min() * (1 + 1e-9)


def test_another_lane_is_one_more_of_the_same() -> None:
    # Two lanes: 1 + 4 + 0.25 + 1, with c and d one after the other beside b. A third takes one of them.
    (more,) = (w for w in what_ifs(LaneExplanation(fan(), placed(0, 0, 1, 1, 0))) if "more" in w.change)
    every = simulate_batch(fan(3), legal_assignments(fan(3)), objective="overlap")

    assert more.change == "one lane of X more"
    assert more.best_seconds == pytest.approx(every.min())


def test_one_lane_leaves_nothing_to_ask() -> None:
    table = with_lanes(make_table([[1.0], [2.0]], [(0, 1.0, [1])]), "DEV0", 1)

    (answer,) = what_ifs(LaneExplanation(table, placed(0, 0)))

    assert (answer.answer, answer.matters, answer.proven) == ("the same placement", False, True)
