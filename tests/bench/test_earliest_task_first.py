"""m-ETF against a schedule worked out by hand, a direct reading of its rule, and memory limits."""

from __future__ import annotations

import numpy as np
import pytest
from rival_tables import random_problem

from ov_autoplace.cost.table import CostTable
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.list_schedule import ListSchedule
from ov_autoplace.solvers.tasks import task_graphs
from random_tables import make_table
from rivals import RIVALS, RivalOptions
from rivals.earliest_task_first import earliest_task_first

# A graph of nine tasks; its schedule was worked out by hand.
TASKS = [2, 3, 3, 4, 5, 4, 4, 4, 1]
EDGES = {
    (1, 2): 4,
    (1, 3): 1,
    (1, 4): 1,
    (1, 5): 1,
    (1, 7): 10,
    (2, 6): 1,
    (2, 7): 1,
    (3, 8): 1,
    (4, 8): 1,
    (6, 9): 5,
    (7, 9): 6,
    (8, 9): 5,
}


@pytest.fixture
def nine_tasks() -> CostTable:
    return make_table([[t] * 4 for t in TASKS], [(a - 1, cost, [b - 1]) for (a, b), cost in EDGES.items()])


def schedule_of(table: CostTable) -> ListSchedule | None:
    problem = Problem.of(table, objective="overlap")
    return earliest_task_first(problem, next(task_graphs(problem)))


def starts_of(table: CostTable, schedule: ListSchedule) -> np.ndarray:
    return schedule.finish - table.op_seconds[np.arange(len(table)), schedule.lane]


def test_the_schedule_is_the_one_worked_out_by_hand(nine_tasks: CostTable) -> None:
    schedule = schedule_of(nine_tasks)
    assert schedule.finish.max() == 19
    assert schedule.lane.tolist() == [0, 0, 1, 0, 2, 0, 1, 1, 1]
    assert starts_of(nine_tasks, schedule).tolist() == [0, 6, 3, 2, 3, 9, 12, 7, 18]


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.seeds(10)
def test_no_other_group_and_no_other_device_could_have_started_earlier(seed: int, devices: int) -> None:
    table = random_problem(seed, devices)
    schedule = schedule_of(table)
    start, finish, device = starts_of(table, schedule), schedule.finish, schedule.lane
    arcs = [
        (int(p), int(c), float(table.tensor_bytes[t]))
        for t, p in enumerate(table.tensor_producer)
        for c in table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
    ]
    free = np.zeros(devices)
    done: set[int] = set()
    # Starts never fall from one decision to the next, and finish breaks ties of groups that take no time.
    for g in sorted(range(len(table)), key=lambda g: (start[g], finish[g])):
        for other in set(range(len(table))) - done:
            if not all(p in done for p, c, _ in arcs if c == other):
                continue
            for d in np.flatnonzero(np.isfinite(table.op_seconds[other])):
                begin = free[d]
                for p, c, size in arcs:
                    if c == other:
                        way = table.transfer_latency[device[p], d]
                        way += table.transfer_seconds_per_byte[device[p], d] * size
                        begin = max(begin, finish[p] + (way if device[p] != d else 0.0))
                assert begin >= start[g] * (1 - 1e-12), f"seed {seed}, group {other} on {d} before {g}"
        assert start[g] >= free[device[g]] * (1 - 1e-12)
        assert finish[g] - start[g] == pytest.approx(table.op_seconds[g, device[g]])
        free[device[g]] = finish[g]
        done.add(g)


def test_of_devices_that_are_equally_early_the_one_that_finishes_first_is_taken() -> None:
    table = make_table([[5, 1, 3]], [])
    assert schedule_of(table).assignment().tolist() == [1]


def test_a_device_that_is_full_takes_no_more() -> None:
    # Without limits each device would get three of the six equal groups.
    table = make_table([[1, 1]] * 6, [], memory_bytes=np.ones(6), memory_capacity=np.array([2.0, 4.0]))
    assignment = schedule_of(table).assignment()
    assert np.bincount(assignment, minlength=2).tolist() == [2, 4]


@pytest.mark.seeds(10)
def test_memory_limits_hold_and_a_corner_it_works_itself_into_is_left_by_first_fit(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = random.integers(1, 5, 30).astype(float)
    room = np.array([0.5, 0.55]) * size.sum()
    table = random_problem(seed, 2)
    table = make_table(
        np.where(np.isfinite(table.op_seconds), table.op_seconds, 9.0),
        [(int(p), 1.0, [int(p) + 1]) for p in range(29)],
        memory_bytes=size,
        memory_capacity=room,
    )
    assignment = RIVALS["m-etf"](Problem.of(table), RivalOptions()).assignment
    assert (np.bincount(assignment, size, 2) <= room).all()


def test_what_must_share_a_device_is_reserved_its_room_together() -> None:
    # Groups 0 and 3 are one unit of 2 bytes; group 1 would take the room on device 0 in between.
    table = make_table(
        [[1, 9], [1, 9], [1, 9], [1, 9]],
        [(0, 0.0, [1]), (1, 0.0, [2])],
        colocation=np.array([0, -1, -1, 0], dtype=np.int32),
        memory_bytes=np.ones(4),
        memory_capacity=np.array([2.0, 4.0]),
    )
    assert schedule_of(table).lane.tolist() == [0, 1, 1, 0]


def test_there_is_no_schedule_where_a_group_fits_nowhere() -> None:
    table = make_table([[1, 1]], [], memory_bytes=np.ones(1), memory_capacity=np.zeros(2))
    assert schedule_of(table) is None
