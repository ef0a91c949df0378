"""Peak memory against a plain walk through the schedule, moment by moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ov_autoplace.cost.liveness import held_bytes, liveness_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from random_tables import consumers_of, make_table, random_table, with_results


def walked(table: CostTable, device: list[int]) -> list[float]:
    """The most that each device holds, found by running the groups one after the other."""
    peak = [0.0] * table.num_devices
    tensors = range(len(table.tensor_producer))
    for now in range(len(table)):
        for d in range(table.num_devices):
            held = 0.0
            for g, on in enumerate(device):
                own = [t for t in tensors if table.tensor_producer[t] == g]
                handed_on = sum(table.tensor_bytes[t] for t in own if not table.tensor_is_constant[t])
                shared = sum(table.tensor_bytes[t] for t in own if table.tensor_is_constant[t])
                if on == d:
                    held += table.memory_bytes[g] - table.result_bytes[g] - shared  # weights of its own
                    held += (table.result_bytes[g] - handed_on) * (g == now)
            for t in tensors:
                made, readers = int(table.tensor_producer[t]), consumers_of(table, t)
                alive = table.tensor_is_constant[t] or made <= now <= max([made, *readers])
                if alive and d in {device[i] for i in [made, *readers]}:
                    held += table.tensor_bytes[t]
            peak[d] = max(peak[d], held)
    return peak


@pytest.mark.seeds(30)
def test_peaks_equal_those_of_a_plain_walk(seed: int) -> None:
    table = with_results(random_table(seed, groups=9, devices=2 + seed % 2), seed)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        device = rng.integers(0, table.num_devices, len(table)).astype(np.int32)
        expected = walked(table, device.tolist())
        np.testing.assert_allclose(held_bytes(table, device), expected, rtol=1e-9)
        np.testing.assert_allclose(simulate(table, device).memory_bytes, expected, rtol=1e-9)


@pytest.mark.seeds(8)
def test_several_assignments_hold_and_fit_as_each_does_alone(seed: int) -> None:
    table = with_results(random_table(seed + 40, groups=12, devices=3), seed)
    half = np.full(3, 0.5 * table.memory_bytes.sum())
    units = Problem.of(replace(table, memory_capacity=half)).units
    rows = np.random.default_rng(seed).integers(0, 3, (40, len(units))).astype(np.int32)
    held = np.array([held_bytes(table, units.to_groups(row)) for row in rows])
    np.testing.assert_allclose(units.memory_of(rows), held)
    fits = (held <= half).all(axis=1)
    assert units.fits_each(rows).tolist() == fits.tolist() == [units.fits(row) for row in rows]
    assert 0 < fits.sum() < 40, "this seed is not a test"


def test_results_of_a_chain_are_freed_behind_the_last_reader() -> None:
    chain = [(g, 10.0, [g + 1]) for g in range(9)]
    table = make_table(
        np.ones((10, 2)), chain, memory_bytes=np.full(10, 11.0), result_bytes=np.full(10, 10.0)
    )
    # Ten weights of one byte, and never more than a group's input and output.
    assert held_bytes(table, np.zeros(10, dtype=np.int32)).tolist() == [30.0, 0.0]
    # A tensor that is transferred is held on both sides.
    halves = np.repeat([0, 1], 5).astype(np.int32)
    assert held_bytes(table, halves).tolist() == [25.0, 25.0]


def test_a_table_that_does_not_know_its_results_frees_nothing() -> None:
    table = make_table(np.ones((3, 2)), [(0, 10.0, [1]), (1, 10.0, [2])], memory_bytes=np.full(3, 11.0))
    assert liveness_of(table) is None
    assert held_bytes(table, np.array([0, 0, 1], dtype=np.int32)).tolist() == [22.0, 11.0]


@pytest.mark.seeds(20)
def test_critical_moments_hold_every_set_of_results_that_live_together(seed: int) -> None:
    liveness = liveness_of(with_results(random_table(seed, groups=12), seed))
    critical = [set(moment.tolist()) for moment in liveness.critical_moments()]
    for now in range(liveness.moments):
        alive = set(np.flatnonzero((liveness.first <= now) & (now <= liveness.last)).tolist())
        assert any(alive <= moment for moment in critical)
    assert not any(a < b for a in critical for b in critical)


def test_results_survive_saving(tmp_path: Path) -> None:
    table = with_results(random_table(3), 3)
    save_table(table, tmp_path / "table.json")
    np.testing.assert_array_equal(load_table(tmp_path / "table.json").result_bytes, table.result_bytes)
