"""METIS parts against enumeration, and what is added around them."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from rival_tables import random_problem

from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError
from ov_autoplace.problem.problem import Problem
from random_tables import make_table
from rivals import RIVALS, RivalOptions


def answer(table: CostTable, seed: int = 0) -> np.ndarray:
    return RIVALS["multilevel"](Problem.of(table), RivalOptions(seed=seed)).assignment


def test_without_pymetis_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(OptionError, match="pip install pymetis"):
        answer(random_problem(0, 2))


@pytest.mark.metis
class TestWithMetis:
    @pytest.mark.seeds(5)
    def test_the_cut_is_the_smallest_of_all_balanced_ones(self, seed: int) -> None:
        """Two rings of six equal groups, with two thin links between them: METIS's own kind of problem."""
        random = np.random.default_rng(seed)
        name = random.permutation(12)
        rings = [(i, 6 * (i // 6) + (i + 1) % 6, 10.0) for i in range(12)]
        links = [(int(random.integers(6)), 6 + int(random.integers(6)), 1.0) for _ in range(2)]
        ends = [(*sorted((int(name[a]), int(name[b]))), size) for a, b, size in rings + links]
        table = make_table([[1.0, 1.0]] * 12, [(a, size, [b]) for a, b, size in ends])

        def cut(side: np.ndarray) -> float:
            return sum(size for a, b, size in ends if side[a] != side[b])

        balanced = (np.array(row) for row in itertools.product((0, 1), repeat=12) if sum(row) == 6)
        found = answer(table)
        assert np.bincount(found).tolist() == [6, 6]
        assert cut(found) == min(cut(side) for side in balanced)

    def test_a_device_gets_the_share_that_its_speed_is_of_all_speeds(self) -> None:
        # Device 1 is three times as fast at everything.
        table = make_table([[3.0, 1.0]] * 80, [(g, 1.0, [g + 1]) for g in range(79)])
        assert np.bincount(answer(table)) == pytest.approx([20, 60], abs=3)

    def test_a_part_goes_to_the_device_that_is_good_at_it(self) -> None:
        # Two cliques; each device is fast at one of them, and both are equally fast at the whole.
        seconds = [[1.0, 4.0]] * 8 + [[4.0, 1.0]] * 8
        within = [(a, 5.0, [b]) for c in (0, 8) for a in range(c, c + 8) for b in range(a + 1, c + 8)]
        assert answer(make_table(seconds, [*within, (7, 1.0, [8])])).tolist() == [0] * 8 + [1] * 8

    @pytest.mark.parametrize("devices", [1, 2, 3, 4])
    @pytest.mark.seeds(5)
    def test_every_group_is_where_it_can_run(self, seed: int, devices: int) -> None:
        table = random_problem(seed, devices)
        assert table.supported[np.arange(len(table)), answer(table)].all()

    def test_the_same_seed_gives_the_same_parts(self) -> None:
        table = random_problem(3, 3)
        assert answer(table, 4).tolist() == answer(table, 4).tolist()

    def test_memory_limits_hold(self) -> None:
        table = make_table(
            [[1.0, 1.0]] * 20,
            [(g, 1.0, [g + 1]) for g in range(19)],
            memory_bytes=np.ones(20),
            memory_capacity=np.array([3.0, 20.0]),
        )
        assert (np.bincount(answer(table), minlength=2) <= [3, 20]).all()

    def test_graphs_without_edges_or_with_one_group_have_an_answer(self) -> None:
        assert answer(make_table([[2.0, 1.0]], [])).tolist() == [1]
        assert set(answer(make_table([[1.0, 1.0]] * 4, [])).tolist()) == {0, 1}
