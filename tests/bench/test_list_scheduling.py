"""HEFT against the example of its publication, and our constraints."""

from __future__ import annotations

import numpy as np
import pytest
from rival_tables import random_problem

from ov_autoplace.cost.table import CostTable
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions
from random_tables import make_table
from rivals import RIVALS

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
PUBLISHED_PROCESSORS = [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]


@pytest.fixture
def published() -> CostTable:
    return make_table(COSTS, [(a - 1, cost, [b - 1]) for (a, b), cost in EDGES.items()])


def test_devices_are_those_of_the_publication(published: CostTable) -> None:
    answer = RIVALS["list scheduling"](Problem.of(published), SolverOptions())
    assert (answer.assignment + 1).tolist() == PUBLISHED_PROCESSORS


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
    answer = RIVALS["list scheduling"](Problem.of(tight), SolverOptions()).assignment
    assert answer.tolist() == [0, 0, 1]
