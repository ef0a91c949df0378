"""The explanation of a placement, checked against sums done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace import CostTable
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.hetero import HeteroExplanation


def chain() -> CostTable:
    """a -> b -> c and a -> c on devices X and Y; c cannot run on X. Times in milliseconds, sizes in bytes."""
    return CostTable(
        devices=("X", "Y"),
        names=("a", "b", "c"),
        op_seconds=np.array([[1e-3, 3e-3], [2e-3, 1e-3], [np.inf, 4e-3]]),
        tensor_producer=np.array([0, 1], dtype=np.int32),
        tensor_bytes=np.array([1000.0, 2000.0]),
        tensor_offsets=np.array([0, 2, 3], dtype=np.int32),
        tensor_consumers=np.array([1, 2, 2], dtype=np.int32),
        tensor_is_constant=np.zeros(2, dtype=bool),
        tensor_uncuttable=np.zeros(2, dtype=bool),
        transfer_latency=np.array([[0.0, 1e-4], [2e-4, 0.0]]),
        transfer_seconds_per_byte=np.full((2, 2), 1e-7),
        launch_seconds=np.array([1e-5, 2e-5]),
        memory_bytes=np.zeros(3),
        memory_capacity=np.full(2, np.inf),
        op_types=("Convolution", "Relu", "MatMul"),
        members=(("a", "a.weights"), ("b",), ("c", "c.weights", "c.bias")),
    )


def explained(*devices: int) -> Explanation:
    return HeteroExplanation(chain(), np.array(devices, dtype=np.int32))


def test_a_tensor_read_twice_by_one_subgraph_is_one_transfer() -> None:
    (cut,) = explained(0, 1, 1).cuts()

    assert (cut.producer, cut.source_device, cut.target_device) == ("a", "X", "Y")
    assert cut.bytes == 1000
    assert cut.seconds == pytest.approx(1e-4 + 1000 * 1e-7)


def test_transfers_stand_with_the_dearest_first_and_add_up() -> None:
    explanation = explained(0, 0, 1)

    cuts = explanation.cuts()

    assert [cut.producer for cut in cuts] == ["b", "a"]
    assert sum(cut.seconds for cut in cuts) == pytest.approx(explanation.schedule.transfer_seconds)


def test_subgraphs_hold_every_op_once() -> None:
    first, second = explained(0, 1, 1).predicted.stages

    # Each with its launch, of 0.01 and 0.02 ms.
    assert (first.device, first.ops, first.seconds) == ("X", 2, pytest.approx(1.01e-3))
    assert (second.device, second.ops, second.seconds) == ("Y", 4, pytest.approx(5.02e-3))
    assert second.groups == (1, 2)


def test_the_heaviest_groups_come_first() -> None:
    assert [group.name for group in explained(0, 0, 1).heaviest_groups(2)] == ["c", "b"]


def test_a_pattern_finds_groups_by_any_of_their_ops() -> None:
    explanation = explained(0, 1, 1)

    assert [group.name for group in explanation.groups_matching("*.weights")] == ["a", "c"]
    assert [group.name for group in explanation.groups_matching("c.bias")] == ["c"]
    assert explanation.groups_matching("ghost") == []


def test_the_reason_is_what_moving_the_group_alone_would_cost() -> None:
    a, b, c = explained(0, 1, 1).groups_matching("*")

    # All on Y: a costs 3 instead of 1 ms, and X's launch (0.01) and the transfer (0.2 ms) are gone.
    assert "1.790 ms more" in a.reason
    assert "fastest here" in a.reason
    # b on X costs 2 instead of 1 ms and its own result crosses too (0.1 + 0.2 ms).
    assert "1.300 ms more" in b.reason
    assert c.reason == "only Y can run it"


def test_a_group_that_would_be_better_off_elsewhere_is_said_so() -> None:
    (b,) = explained(0, 0, 1).groups_matching("b")

    assert "better elsewhere" in b.reason
    assert "1.300 ms less" in b.reason


def test_what_is_pinned_says_so_and_what_the_pin_costs() -> None:
    free, pinned = (
        {group.name: group.reason for group in explanation.all_groups()}
        for explanation in (
            explained(1, 1, 1),
            HeteroExplanation(chain(), np.array([1, 1, 1], dtype=np.int32), pins={"a.w*": "Y", "c": "Y"}),
        )
    )
    assert free["a"].startswith("predicted to be better elsewhere: alone on X")
    assert pinned["a"] == "pinned here: " + free["a"].partition(": ")[2]
    assert (pinned["b"], pinned["c"]) == (free["b"], free["c"]) == (free["b"], "only Y can run it")


def test_a_pin_that_the_placement_does_not_follow_is_no_reason() -> None:
    explanation = HeteroExplanation(chain(), np.array([1, 1, 1], dtype=np.int32), pins={"a": "X"})
    assert not any(group.reason.startswith("pinned") for group in explanation.all_groups())
