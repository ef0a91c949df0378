"""Pins, memory limits, co-location and unsupported ops: honoured, or refused in one sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SOLVERS, Constraints, solve
from random_tables import make_table

CHAIN = [(0, 1.0, [1]), (1, 1.0, [2])]
FAST_FIRST = [[1, 9], [1, 9], [1, 9]]
ALL = sorted(set(SOLVERS) - {"oracle"})  # which needs more and has tests of its own


def test_a_pin_that_everything_matches_leaves_one_device() -> None:
    assert solve(make_table(FAST_FIRST, CHAIN), "single", pins={"group*": "DEV1"}).assignment.tolist() == [
        1,
        1,
        1,
    ]


def test_a_pin_matches_ops_inside_a_group_and_a_later_pin_wins() -> None:
    table = make_table(FAST_FIRST, CHAIN, members=(("stem/conv",), ("block/add", "block/relu"), ("head",)))
    placement = solve(table, pins={"*": "DEV0", "block/r*": "DEV1"})
    assert placement.to_dict() == {
        "stem/conv": "DEV0",
        "block/add": "DEV1",
        "block/relu": "DEV1",
        "head": "DEV0",
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"pins": {"group1": "DEV7"}}, "a pin names 'DEV7', but the devices are DEV0, DEV1"),
        ({"pins": {"gruop1": "DEV1"}}, "the pin 'gruop1' matches no op"),
        ({"memory_limits": {"GPU": 1e9}}, "a memory limit names 'GPU'"),
        ({"memory_limits": {"DEV0": -1}}, "the memory limit of DEV0 is -1"),
        ({"memory_limits": {"DEV0": float("nan")}}, "the memory limit of DEV0 is nan"),
        ({"solver": "mincutt"}, "unknown solver of the objective hetero 'mincutt'; did you mean 'mincut'?"),
        ({"time_limit": 0}, "the time limit is 0"),
    ],
)
def test_a_bad_argument_is_named(arguments: dict, sentence: str) -> None:
    with pytest.raises(OptionError) as raised:
        solve(make_table(FAST_FIRST, CHAIN), **arguments)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "arguments", "sentence"),
    [
        (
            make_table([[np.inf, 1], [1, 1]]),
            {"pins": {"group0": "DEV0"}},
            "group 'group0' is pinned to DEV0, which cannot run it",
        ),
        (make_table([[np.inf, np.inf], [1, 1]]), {}, "group 'group0' can run on none of DEV0, DEV1"),
        (
            make_table([[np.inf, 1], [1, np.inf]], colocation=[0, 0]),
            {},
            "groups 'group0', 'group1' must share a device",
        ),
        (
            make_table([[np.inf, 1], [1, np.inf]], [(0, 1.0, [1])], tensor_uncuttable=np.array([True])),
            {},
            "groups 'group0', 'group1' must share a device",
        ),
        (
            make_table([[np.inf, 1], [1, np.inf]]),
            {"solver": "single"},
            "no single device can take every group: DEV0 may not run 'group0'; DEV1 may not run 'group1'",
        ),
        (
            make_table([[1, 1]] * 20, memory_bytes=np.full(20, 10.0)),
            {"memory_limits": {"DEV0": 50, "DEV1": 60}},
            "the model does not fit into 50 bytes on DEV0, 60 bytes on DEV1; it needs at least "
            "140 bytes on DEV0 or 150 bytes on DEV1 or 100 bytes each on DEV0, DEV1",
        ),
        (
            make_table([[1, 1]] * 20, memory_bytes=np.r_[70.0, np.full(19, 1.0)]),
            {"memory_limits": {"DEV0": 50, "DEV1": 60}},
            "it needs at least 70 bytes on DEV0 or 70 bytes on DEV1 or 70 bytes each on DEV0, DEV1",
        ),
    ],
)
def test_what_cannot_be_met_is_said_in_one_sentence(table, arguments: dict, sentence: str) -> None:
    with pytest.raises(PlacementError) as raised:
        solve(table, **arguments)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "given", "sentence"),
    [
        (make_table([[np.inf, 1], [1, np.inf]]), {}, "no single device can run every op"),
        (
            make_table([[1, 1], [1, 1]]),
            {"pins": {"group0": "DEV0", "group1": "DEV1"}},
            "the pins ask for DEV0 and DEV1, so no single device was compared",
        ),
        (
            make_table([[1, 1], [1, np.inf]]),
            {"pins": {"group0": "DEV1"}},
            "the pins ask for DEV1, which cannot run every op",
        ),
        (
            make_table([[1, 1]] * 4, memory_bytes=np.full(4, 10.0)),
            {"memory_limits": {"DEV0": 25, "DEV1": 25}},
            "no single device has room for the model",
        ),
    ],
)
def test_a_problem_says_why_no_single_device_is_an_answer(table, given, sentence: str) -> None:
    assert Problem.of(table, **given).why_no_single == sentence


@pytest.mark.parametrize("pinned", ["GPU", "NPU", "XCPU"])
def test_a_device_that_is_not_there_is_no_misspelling_of_another(pinned: str) -> None:
    with pytest.raises(OptionError) as raised:
        solve(replace(make_table(FAST_FIRST, CHAIN), devices=("CPU", "VPU")), pins={"group1": pinned})
    assert "did you mean" not in str(raised.value)
    with pytest.raises(OptionError, match="did you mean 'CPU'"):
        solve(replace(make_table(FAST_FIRST, CHAIN), devices=("CPU", "VPU")), pins={"group1": "cpu"})


def test_mincut_refuses_three_devices_and_says_what_to_use() -> None:
    with pytest.raises(OptionError, match="use 'expansion' or 'portfolio'"):
        solve(make_table([[1, 2, 3]] * 4), "mincut")


def test_mincut_takes_three_devices_of_which_one_can_run_nothing() -> None:
    table = make_table([[1, np.inf, 9], [9, np.inf, 1]], [(0, 1.0, [1])])
    assert solve(table, "mincut").assignment.tolist() == [0, 2]


def test_the_smaller_of_table_capacity_and_user_limit_holds() -> None:
    table = make_table(FAST_FIRST, CHAIN, memory_bytes=np.ones(3), memory_capacity=np.array([2.0, np.inf]))
    assert Constraints.of(table, {"DEV0": 1e9}).memory_capacity.tolist() == [2.0, np.inf]
    assert Constraints.of(table, {"DEV0": 1.0, "DEV1": 3.0}).memory_capacity.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("devices", "refused"), [([[0, 1], [1, 2], [2, 0]], True), ([[0, 1], [1, 2], [1]], False)]
)
def test_a_unit_needs_one_device_that_all_its_groups_share(devices: list[list[int]], refused: bool) -> None:
    """Two by two they would share one; and that another unit may run anywhere helps nobody."""
    seconds = np.full((4, 3), np.inf)
    for group, able in enumerate(devices):
        seconds[group, able] = 1.0
    seconds[3] = 1.0
    table = make_table(seconds.tolist(), colocation=[5, 5, 5, -1])
    if refused:
        with pytest.raises(PlacementError, match="'group0', 'group1', 'group2' must share a device"):
            Constraints.of(table)
    else:
        assert solve(table).assignment[:3].tolist() == [1, 1, 1]


def test_units_join_classes_and_uncuttable_tensors_transitively() -> None:
    table = make_table(
        [[1, 1]] * 5,
        [(0, 1.0, [1, 3]), (3, 1.0, [4])],
        tensor_uncuttable=np.array([False, True]),
        colocation=[0, -1, 0, 0, -1],
    )
    assert Constraints.of(table).unit_of.tolist() == [0, 1, 0, 0, 0]
