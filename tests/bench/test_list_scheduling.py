"""HEFT against the example of its publication, a direct reading of its rules, and our constraints."""

from __future__ import annotations

import numpy as np
import pytest
from rival_tables import random_problem

from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions
from random_tables import make_table
from rivals import RIVALS
from rivals.list_scheduling import list_schedule, upward_ranks

# Topcuoglu et al. 2002, figure 2: a graph of ten tasks on three processors.
COSTS = [
    [14, 16, 9],
    [13, 19, 18],
    [11, 13, 19],
    [13, 8, 17],
    [12, 13, 10],
    [13, 16, 9],
    [7, 15, 11],
    [5, 11, 14],
    [18, 12, 20],
    [21, 7, 16],
]
EDGES = {
    (1, 2): 18,
    (1, 3): 12,
    (1, 4): 9,
    (1, 5): 11,
    (1, 6): 14,
    (2, 8): 19,
    (2, 9): 16,
    (3, 7): 23,
    (4, 8): 27,
    (4, 9): 23,
    (5, 9): 13,
    (6, 8): 15,
    (7, 10): 17,
    (8, 10): 11,
    (9, 10): 13,
}
PUBLISHED_RANKS = [108.0, 77.0, 80.0, 80.0, 69.0, 63.333, 42.667, 35.667, 44.333, 14.667]
PUBLISHED_PROCESSORS = [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]
PUBLISHED_MAKESPAN = 80.0


@pytest.fixture
def published() -> CostTable:
    return make_table(COSTS, [(a - 1, cost, [b - 1]) for (a, b), cost in EDGES.items()])


def test_ranks_are_those_of_the_publication(published: CostTable) -> None:
    assert upward_ranks(published, published.op_seconds) == pytest.approx(PUBLISHED_RANKS, abs=5e-4)


def test_the_schedule_is_that_of_the_publication(published: CostTable) -> None:
    schedule = list_schedule(Problem.of(published))
    assert (schedule.assignment + 1).tolist() == PUBLISHED_PROCESSORS
    assert schedule.makespan_seconds == pytest.approx(PUBLISHED_MAKESPAN)


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.seeds(10)
def test_schedules_are_possible_and_every_group_finishes_as_early_as_it_can(seed: int, devices: int) -> None:
    """Each group is put where it finishes earliest, found here by trying every moment that could be one."""
    table = random_problem(seed, devices)
    schedule = list_schedule(Problem.of(table))
    start, finish, device = schedule.start_seconds, schedule.finish_seconds, schedule.assignment
    arcs = [
        (int(p), int(c), float(table.tensor_bytes[t]))
        for t, p in enumerate(table.tensor_producer)
        for c in table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
    ]

    def ready(g: int, d: int) -> float:
        times = [0.0]
        for p, c, size in arcs:
            if c == g:
                e = device[p]
                way = table.transfer_latency[e, d] + table.transfer_seconds_per_byte[e, d] * size
                times.append(finish[p] + (way if e != d else 0.0))
        return max(times)

    done: list[int] = []
    for g in sorted(range(len(table)), key=lambda g: (-upward_ranks(table, table.op_seconds)[g], g)):
        best = np.inf
        for d in range(devices):
            length = table.op_seconds[g, d]
            busy = [(start[o], finish[o]) for o in done if device[o] == d]
            for begin in [ready(g, d), *(end for _, end in busy)]:
                free = all(begin + length <= s + 1e-12 or begin >= e - 1e-12 for s, e in busy)
                if begin >= ready(g, d) and free:
                    best = min(best, begin + length)
        assert finish[g] == pytest.approx(best, rel=1e-12), f"seed {seed}, group {g}"
        assert finish[g] - start[g] == pytest.approx(table.op_seconds[g, device[g]])
        done.append(g)


def test_groups_that_must_share_a_device_do_and_pins_hold() -> None:
    table = random_problem(3, 3)
    together = np.full(len(table), -1, dtype=np.int32)
    free = np.flatnonzero(table.supported.all(axis=1))
    together[free[[0, 3, 5]]] = 7
    table = make_table(
        table.op_seconds,
        [
            (
                int(p),
                float(table.tensor_bytes[t]),
                table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]].tolist(),
            )
            for t, p in enumerate(table.tensor_producer)
        ],
        colocation=together,
    )
    pinned = Problem.of(table, pins={f"group{free[1]}": "DEV2"})
    answer = RIVALS["list scheduling"](pinned, SolverOptions()).assignment
    assert len(set(answer[together == 7].tolist())) == 1
    assert answer[free[1]] == 2
    assert table.supported[np.arange(len(table)), answer].all()


def test_full_devices_are_left_out_and_what_fits_nowhere_falls_back_to_first_fit() -> None:
    """All groups are faster on DEV0, which has room for two of them."""
    chain = [(g, 0.0, [g + 1]) for g in range(3)]
    table = make_table(
        [[1, 2]] * 4, chain, memory_bytes=np.full(4, 10.0), memory_capacity=np.array([20.0, np.inf])
    )
    answer = RIVALS["list scheduling"](Problem.of(table), SolverOptions()).assignment
    assert answer.tolist() == [0, 0, 1, 1]
    # The small groups are faster on DEV1, and the large one, which comes last, runs nowhere else.
    tight = make_table(
        [[2, 1], [2, 1], [np.inf, 1]],
        [(0, 0.0, [1]), (1, 0.0, [2])],
        memory_bytes=np.array([5.0, 5.0, 10.0]),
        memory_capacity=np.array([10.0, 10.0]),
    )
    with pytest.raises(PlacementError, match="'group2' is full"):
        list_schedule(Problem.of(tight))
    answer = RIVALS["list scheduling"](Problem.of(tight), SolverOptions()).assignment
    assert answer.tolist() == [0, 0, 1]


def test_constants_are_no_dependency() -> None:
    """A constant that a later group holds is read by an earlier one; neither waits for the other."""
    table = make_table([[1.0], [1.0]], [(1, 100.0, [0])], tensor_is_constant=np.array([True]))
    assert upward_ranks(table, table.op_seconds).tolist() == [1.0, 1.0]
    assert list_schedule(Problem.of(table)).makespan_seconds == 2.0
