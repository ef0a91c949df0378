"""Memory of devices that get unit after unit, against what whole assignments hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.problem.device_memory import DeviceMemory
from ov_autoplace.problem.problem import Problem
from random_tables import make_table, random_table, with_results


def units_of(seed: int, share: float = 0.5):
    """Units on three devices, which hold so much of everything each; some share weights or a device."""
    table = with_results(random_table(seed, groups=12, devices=3), seed)
    capacity = np.full(3, share * table.memory_bytes.sum())
    return Problem.of(replace(table, memory_capacity=capacity)).units


@pytest.mark.seeds(12)
def test_in_whatever_order_units_come_a_device_holds_what_it_holds_with_all_of_them(seed: int) -> None:
    units, rng = units_of(seed), np.random.default_rng(seed)
    device = rng.integers(0, 3, len(units)).astype(np.int32)
    room = DeviceMemory(units)
    for unit in rng.permutation(len(units)).tolist():
        room.put(unit, int(device[unit]))

    np.testing.assert_allclose(room.beyond, units.memory_of(device) - units.memory_capacity, atol=1e-9)
    np.testing.assert_allclose(DeviceMemory(units, device).beyond, room.beyond, atol=1e-9)


@pytest.mark.seeds(12)
def test_a_device_takes_a_unit_if_it_could_hold_it_besides_what_it_has(seed: int) -> None:
    units, rng = units_of(seed, share=0.35), np.random.default_rng(seed)
    device = rng.integers(0, 3, len(units)).astype(np.int32)
    room = DeviceMemory(units, device)
    answers = []
    for unit, where in enumerate(device.tolist()):
        room.remove(unit, where)
        moved = np.repeat(device[None], 3, axis=0)
        moved[:, unit] = range(3)
        holds = units.memory_of(moved)[range(3), range(3)] <= units.memory_capacity
        assert room.takes(unit).tolist() == holds.tolist()
        answers += holds.tolist()
        room.put(unit, where)
    assert 0 < sum(answers) < len(answers), "this seed is not a test"


def test_a_unit_that_was_removed_leaves_nothing_behind() -> None:
    units = units_of(3)
    room = DeviceMemory(units)
    empty = room.beyond
    for unit in range(len(units)):
        room.put(unit, unit % 3)
    for unit in range(len(units)):
        room.remove(unit, unit % 3)
    np.testing.assert_allclose(room.beyond, empty, atol=1e-9)


def test_lanes_of_one_device_share_its_room() -> None:
    table = make_table(
        np.ones((3, 3)),
        memory_bytes=np.full(3, 10.0),
        memory_capacity=np.array([20.0, 20.0, 10.0]),
        lane_devices=("CPU", "CPU", "GPU"),
    )
    room = DeviceMemory(Problem.of(table, objective="overlap").units)
    room.put(0, 0)
    room.put(1, 1)
    assert room.takes(2).tolist() == [False, False, True]
