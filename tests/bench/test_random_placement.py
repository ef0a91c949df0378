"""The random rival is uniform, legal and repeatable."""

from __future__ import annotations

import numpy as np
from rival_tables import random_problem

from ov_autoplace.cost.table import CostTable
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions
from random_tables import make_table
from rivals import RIVALS


def answer(table: CostTable, seed: int) -> np.ndarray:
    return RIVALS["random"](Problem.of(table), SolverOptions(seed=seed)).assignment


def test_every_allowed_device_is_drawn_equally_often_and_no_other() -> None:
    table = random_problem(1, 3)
    draws = np.stack([answer(table, seed) for seed in range(600)])
    share = np.stack([(draws == d).mean(axis=0) for d in range(3)], axis=1)
    expected = table.supported / table.supported.sum(axis=1, keepdims=True)
    # 600 draws: five standard deviations of a share of one half are 0.10.
    assert np.abs(share - expected).max() < 0.1
    assert (share[~table.supported] == 0).all()


def test_the_same_seed_draws_the_same_placement_and_another_seed_another() -> None:
    table = random_problem(2, 2)
    assert answer(table, 5).tolist() == answer(table, 5).tolist()
    assert answer(table, 5).tolist() != answer(table, 6).tolist()


def test_memory_limits_are_kept_even_where_chance_never_finds_a_way() -> None:
    # Of 2 ** 20 placements one fits.
    table = make_table([[1, 1]] * 20, [], memory_bytes=np.ones(20), memory_capacity=np.array([0.0, 20.0]))
    assert answer(table, 0).tolist() == [1] * 20


def test_what_must_share_a_device_does() -> None:
    together = np.array([0, 0, -1, 0], dtype=np.int32)
    table = make_table([[1, 1, 1]] * 4, [], colocation=together)
    for seed in range(20):
        assert len(set(answer(table, seed)[together == 0].tolist())) == 1
