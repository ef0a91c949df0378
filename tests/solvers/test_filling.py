"""Placements that fill devices as they go: they hold what fits, counted with results that are freed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.errors import PlacementError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.memory import fill_in_order, filled, first_fit
from random_tables import legal_assignments, make_table, random_table, with_results


def chain(groups: int, capacity: list[float]):
    """A chain of results of 10 bytes between groups of 1 byte each; as if none were freed, 11 per group."""
    tensors = [(g, 10.0, [g + 1]) for g in range(groups - 1)]
    devices = len(capacity)
    return make_table(
        np.ones((groups, devices)),
        tensors,
        memory_bytes=np.full(groups, 11.0),
        result_bytes=np.full(groups, 10.0),
        memory_capacity=np.array(capacity),
    )


def test_devices_are_filled_one_after_the_other_with_what_is_alive_at_once() -> None:
    table = chain(12, [24.0, 26.0, 40.0])
    units = Problem.of(table).units
    assert fill_in_order(units, [0, 1, 2]).tolist() == [0] * 4 + [1] * 6 + [2] * 2
    assert fill_in_order(units, [1, 0, 2]).tolist() == [1] * 6 + [0] * 4 + [2] * 2
    assert fill_in_order(Problem.of(chain(12, [24.0, 26.0, 20.0])).units, [0, 1, 2]) is None


def test_the_order_of_devices_is_that_in_which_least_is_cut() -> None:
    table = chain(12, [24.0, 26.0, 40.0])
    device = filled(Problem.of(table).units)
    assert device.tolist() == [2] * 12, "the third device holds everything"
    short = chain(12, [24.0, 26.0, 27.0])
    assert (np.diff(filled(Problem.of(short).units)) != 0).sum() == 1


def test_greedy_placement_and_first_fit_need_no_program_where_results_are_freed() -> None:
    table = chain(40, [34.0, 34.0, 34.0])
    units = Problem.of(table).units
    assert units.packing_bytes.sum() > 4 * units.memory_capacity.sum()
    for device in (greedy_assignment(table, units), first_fit(table, units)):
        assert units.fits(device)
        assert (np.diff(device) != 0).sum() == 2


@pytest.mark.seeds(30)
def test_a_placement_is_found_only_where_there_is_one_and_fits(seed: int) -> None:
    table = with_results(random_table(seed + 600, groups=7, devices=2), seed)
    table = replace(table, memory_capacity=np.full(2, 0.45 * table.memory_bytes.sum()))
    units = Problem.of(table).units
    rows = np.array(
        [
            units.from_groups(row)
            for row in legal_assignments(replace(table, memory_capacity=np.full(2, np.inf)))
        ]
    )
    exists = bool(len(rows)) and bool(units.fits_each(rows).any())
    device = filled(units)
    assert device is None or (exists and units.fits(device))
    if exists:
        assert units.fits(first_fit(table, units))
    else:
        with pytest.raises(PlacementError):
            first_fit(table, units)
