"""Lanes of a device as columns of a cost table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.errors import CostTableError
from random_tables import make_table


@pytest.fixture
def table() -> CostTable:
    return make_table(
        [[1, 2, 3], [4, np.inf, 6]],
        [(0, 5.0, [1])],
        devices=("GPU", "CPU", "NPU"),
        transfer_latency=np.arange(9.0).reshape(3, 3),
        launch_seconds=np.array([10.0, 20.0, 30.0]),
        memory_capacity=np.array([100.0, 200.0, np.inf]),
    )


def test_lanes_stand_where_their_device_was(table: CostTable) -> None:
    lanes = with_lanes(table, "CPU", 2, [7, np.inf], hand_over_seconds=0.5)
    assert lanes.devices == ("GPU", "CPU#0", "CPU#1", "NPU")
    assert lanes.lane_devices == ("GPU", "CPU", "CPU", "NPU")
    assert lanes.device_of.tolist() == [0, 1, 1, 3]
    assert lanes.op_seconds.tolist() == [[1, 7, 7, 3], [4, np.inf, np.inf, 6]]
    assert lanes.launch_seconds.tolist() == [10, 20, 20, 30]
    assert lanes.memory_capacity.tolist() == [100, 200, 200, np.inf]
    # To and from other devices as the device itself, between its lanes a hand-over.
    assert lanes.transfer_latency.tolist() == [[0, 1, 1, 2], [3, 4, 0.5, 5], [3, 0.5, 4, 5], [6, 7, 7, 8]]
    assert lanes.transfer_seconds_per_byte[1].tolist() == [1, 1, 0, 1]
    assert lanes.corun_factor > 1.0


def test_a_factor_scales_the_times_of_the_device_and_two_devices_may_have_lanes(table: CostTable) -> None:
    lanes = with_lanes(with_lanes(table, "CPU", 2, 1.5, corun_factor=1.06), "NPU", 3, corun_factor=1.01)
    assert lanes.devices == ("GPU", "CPU#0", "CPU#1", "NPU#0", "NPU#1", "NPU#2")
    assert lanes.lane_devices == ("GPU", "CPU", "CPU", "NPU", "NPU", "NPU")
    assert lanes.op_seconds[0].tolist() == [1, 3, 3, 3, 3, 3]
    assert lanes.corun_factor == 1.06


def test_one_lane_is_the_device_at_another_width(table: CostTable) -> None:
    lane = with_lanes(table, "GPU", 1, [0.5, 0.25])
    assert lane.devices == table.devices
    assert lane.op_seconds[:, 0].tolist() == [0.5, 0.25]


def test_tables_with_lanes_survive_a_file(table: CostTable, tmp_path: Path) -> None:
    lanes = with_lanes(table, "CPU", 2, corun_factor=1.05)
    save_table(lanes, tmp_path / "lanes.json")
    again = load_table(tmp_path / "lanes.json")
    assert again.lane_devices == lanes.lane_devices
    assert again.corun_factor == 1.05
    assert (again.op_seconds == lanes.op_seconds).all()
    save_table(table, tmp_path / "devices.json")
    assert load_table(tmp_path / "devices.json").lane_devices is None


@pytest.mark.parametrize(
    ("device", "lanes", "changes", "sentence"),
    [
        ("TPU", 2, {}, "no device 'TPU'; it has GPU, CPU, NPU"),
        ("CPU", 0, {}, "0 lanes were asked of CPU; give 1 or more"),
        ("CPU", 2, {"op_seconds": [1.0]}, r"one time per group \(2\), not \[1\]"),
        ("CPU", 2, {"op_seconds": float("nan")}, "the factor nan"),
        ("CPU", 2, {"hand_over_seconds": -1.0}, r"transfer_latency\[1, 2\] is -1.0"),
        ("CPU", 2, {"corun_factor": float("inf")}, "corun_factor is inf"),
    ],
)
def test_bad_lanes_are_refused_in_words(
    table: CostTable, device: str, lanes: int, changes: dict, sentence: str
) -> None:
    with pytest.raises(CostTableError, match=sentence):
        with_lanes(table, device, lanes, **changes)


def test_a_lane_has_no_lanes_and_every_column_has_a_device(table: CostTable) -> None:
    with pytest.raises(CostTableError, match="CPU#1 is a lane of CPU already"):
        with_lanes(with_lanes(table, "CPU", 2), "CPU#1", 2)
    with pytest.raises(CostTableError, match=r"one device per column \(3\), not 1"):
        replace(table, lane_devices=("CPU",))
