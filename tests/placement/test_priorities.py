"""What free lanes take first: priorities of groups under the objective ``overlap``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate, simulate_batch, simulator_of
from random_tables import make_table, random_table

# Lane 0 may begin with 0, for which 3 on lane 1 waits, or with 1, for which 2 waits for much longer.
CHOICE_LANES = np.array([0, 0, 1, 1], dtype=np.int32)


def choice() -> CostTable:
    """Two equal lanes that hand over in a second."""
    table = make_table([[3.0], [3.0], [9.0], [1.0]], [(1, 0.0, [2]), (0, 0.0, [3])])
    return with_lanes(table, "DEV0", 2, hand_over_seconds=1.0, corun_factor=1.0)


def test_priorities_go_before_the_way_to_the_end() -> None:
    table = choice()

    def starts(priority: list[float] | None) -> list[float]:
        return simulate(table, CHOICE_LANES, "overlap", priority).start_seconds.tolist()

    assert starts(None) == [3.0, 0.0, 4.0, 13.0]
    assert starts([2, 1, 0, 0]) == [0.0, 3.0, 7.0, 4.0]
    assert starts([-1.5, 0, 9, 9]) == starts(None)
    assert starts([5, 5, 5, 5]) == starts(None)


def test_a_placement_brings_its_priorities_unless_others_are_given() -> None:
    table = choice()
    placement = replace(Placement.of_groups(table, CHOICE_LANES), priority=np.array([2.0, 1.0, 0.0, 0.0]))
    assert simulate(table, placement, "overlap").latency_seconds == 16.0
    assert simulate(table, placement, "overlap", [0, 1, 0, 0]).latency_seconds == 14.0
    # In turns, where nothing waits, they change nothing.
    assert simulate(table, placement).latency_seconds == simulate(table, CHOICE_LANES).latency_seconds


@pytest.mark.seeds(20)
def test_equal_priorities_change_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random_table(seed + 20_000, 40, 3, constrained=False)
    lanes = random.integers(3, size=40)
    free = simulate(table, lanes, "overlap")
    again = simulate(table, lanes, "overlap", np.full(40, 7.0))
    assert again.start_seconds.tolist() == free.start_seconds.tolist()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_a_batch_takes_priorities_for_all_or_for_each(threads: int) -> None:
    random = np.random.default_rng(threads)
    table = random_table(threads, 60, 3)
    rows = random.integers(3, size=(100, 60))
    priorities = random.normal(size=(100, 60))
    latencies = simulate_batch(table, rows, threads=threads, objective="overlap", priority=priorities)
    assert latencies.tolist() == [
        simulate(table, row, "overlap", priority).latency_seconds
        for row, priority in zip(rows, priorities, strict=True)
    ]
    one = simulate_batch(table, rows, threads=threads, objective="overlap", priority=priorities[0])
    assert one.tolist() == [simulate(table, row, "overlap", priorities[0]).latency_seconds for row in rows]


def test_bad_priorities_are_refused_in_words() -> None:
    table = make_table([[1.0] * 2] * 2, [(0, 0.0, [1])])
    with pytest.raises(OptionError, match="the objective 'hetero' has no priorities"):
        simulate(table, [0, 0], priority=[0, 1])
    with pytest.raises(OptionError, match="the objective 'rate' has no priorities"):
        simulate_batch(table, [[0, 0]], objective="rate", priority=[0, 1])
    with pytest.raises(PlacementError, match=r"the priorities must be float64\[2\], not \[3\]"):
        simulate(table, [0, 0], "overlap", [0, 1, 2])
    with pytest.raises(PlacementError, match=r"the priorities must be float64\[2, 2\], not \[1, 2\]"):
        simulate_batch(table, [[0, 0], [0, 1]], objective="overlap", priority=[[0, 1]])
    with pytest.raises(PlacementError, match="a priority is a number, the higher the sooner"):
        simulate(table, [0, 0], "overlap", [0, np.nan])
    with pytest.raises(PlacementError, match="a priority is a number, the higher the sooner"):
        simulate(table, [0, 0], "overlap", ["a", "b"])


def test_the_core_refuses_priorities_that_are_no_numbers_or_too_few() -> None:
    simulator = simulator_of(make_table([[1.0] * 2] * 2), "overlap")
    lanes = np.array([0, 1], np.int32)
    for method, row in ((simulator.simulate, lanes), (simulator.breakdown, lanes)):
        with pytest.raises(ValueError, match="the priority of group 1 is no number"):
            method(row, priority=np.array([0.0, np.nan]))
        with pytest.raises(ValueError, match="priority has 1 entries instead of 2"):
            method(row, priority=np.zeros(1))
    with pytest.raises(ValueError, match="the priority of group 0 is no number"):
        simulator.simulate_batch(np.stack([lanes, lanes]), priorities=np.array([[0.0, 0.0], [np.nan, 0.0]]))
    with pytest.raises(ValueError, match="priorities has 3 entries instead of 2"):
        simulator.simulate_batch(np.stack([lanes, lanes]), priorities=np.zeros((3, 2)))
