"""What crossing devices costs in a model, from placements that were run as probes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.cost.table import CostTable
from ov_autoplace.measure.crossings import probe_assignments, with_crossing_costs
from ov_autoplace.plan.simulator import simulate, wiring_of_groups

PAIR = ("XCPU", "CPU")


def chain_table(groups: int = 12) -> CostTable:
    """A chain of groups; 1 ms each on the first device and 0.5 ms on the second."""
    tensors = groups - 1
    return CostTable(
        devices=PAIR,
        names=tuple(f"g{i}" for i in range(groups)),
        op_seconds=np.tile([1e-3, 0.5e-3], (groups, 1)),
        tensor_producer=np.arange(tensors, dtype=np.int32),
        tensor_bytes=np.random.default_rng(0).integers(1, 1000, tensors) * 1024.0,
        tensor_offsets=np.arange(tensors + 1, dtype=np.int32),
        tensor_consumers=np.arange(1, groups, dtype=np.int32),
        tensor_is_constant=np.zeros(tensors, bool),
        tensor_uncuttable=np.zeros(tensors, bool),
        transfer_latency=np.full((2, 2), 5e-6),
        transfer_seconds_per_byte=np.full((2, 2), 1e-10),
        launch_seconds=np.array([1e-6, 2e-6]),
        memory_bytes=np.zeros(groups),
        memory_capacity=np.full(2, np.inf),
    )


def test_crossing_costs_are_found_from_placements_that_pay_them() -> None:
    table = chain_table()
    truth = replace(
        table,
        transfer_latency=np.full((2, 2), 25e-6),
        transfer_seconds_per_byte=np.full((2, 2), 4e-10),
        mix_seconds=90e-6,
    )
    probes = probe_assignments(table)
    seconds = [simulate(truth, probe).latency_seconds for probe in probes]
    fitted = with_crossing_costs(table, probes, seconds)
    np.testing.assert_allclose(fitted.transfer_latency, truth.transfer_latency, rtol=1e-6)
    np.testing.assert_allclose(fitted.transfer_seconds_per_byte, truth.transfer_seconds_per_byte, rtol=1e-6)
    assert fitted.mix_seconds == pytest.approx(truth.mix_seconds, rel=1e-6)
    np.testing.assert_array_equal(fitted.op_seconds, table.op_seconds)


def test_a_probe_that_the_table_calls_impossible_teaches_nothing() -> None:
    """The simulator may be wrong about it, but an infinite prediction has no error to learn from."""
    table = chain_table()
    wiring = wiring_of_groups(table)
    bonded = replace(table, wiring=replace(wiring, bonds=np.array([[0, 11]], np.int32)))
    probes = probe_assignments(table)
    assert not any(np.isfinite(simulate(bonded, probe).latency_seconds) for probe in probes)
    assert with_crossing_costs(bonded, probes, [1e-2] * len(probes)) is bonded
    runs = np.zeros(12, np.int32)
    runs[4:8] = 1
    loose = replace(table, wiring=replace(wiring, bonds=np.array([[0, 3]], np.int32)))
    cut = np.r_[0, np.ones(11)].astype(np.int32)
    seconds = simulate(replace(table, mix_seconds=50e-6), runs).latency_seconds
    alone = with_crossing_costs(loose, [runs], [seconds])
    both = with_crossing_costs(loose, [cut, runs], [1.0, seconds])
    assert simulate(both, runs).latency_seconds == pytest.approx(simulate(alone, runs).latency_seconds)


def test_crossing_costs_are_never_lowered() -> None:
    table = chain_table()
    probes = probe_assignments(table)
    seconds = [0.9 * simulate(table, probe).latency_seconds for probe in probes]
    fitted = with_crossing_costs(table, probes, seconds)
    np.testing.assert_allclose(fitted.transfer_latency, table.transfer_latency)
    assert with_crossing_costs(table, [], []) is table


def test_probes_cross_devices_and_respect_what_a_device_supports() -> None:
    op_seconds = np.ones((30, 3))
    op_seconds[10:15, 1] = np.inf
    table = on_devices(chain_table(30), op_seconds)
    probes = probe_assignments(table, seed=3)
    assert len(probes) >= 2
    for probe in probes:
        assert len(set(probe.tolist())) >= 2
        assert np.all(np.isfinite(op_seconds[np.arange(30), probe]))
    assert [p.tolist() for p in probes] == [p.tolist() for p in probe_assignments(table, seed=3)]
    assert probe_assignments(on_devices(chain_table(30), np.ones((30, 1)))) == ()
    assert probe_assignments(on_devices(chain_table(1), np.ones((1, 2)))) == ()


def limited(table: CostTable, first_device_holds: float) -> CostTable:
    """The table with one byte per group, and so many on the first of its devices."""
    memory = np.full(table.num_devices, np.inf)
    memory[0] = first_device_holds
    return replace(table, memory_bytes=np.ones(len(table)), result_bytes=None, memory_capacity=memory)


def test_probes_fill_a_limited_device_without_overfilling_it() -> None:
    table = limited(chain_table(40), 6)
    held = [[np.count_nonzero(p == 0) for p in probe_assignments(table, seed=seed)] for seed in range(10)]
    assert all(0 < count <= 6 for counts in held for count in counts)
    # The first probe has one run on the device; where that begins short, there is nothing to fill it with.
    assert np.median([counts[0] for counts in held]) >= 4


def test_a_device_that_can_hold_no_group_takes_part_in_no_probe() -> None:
    assert probe_assignments(limited(chain_table(40), 0.5)) == ()


def test_two_groups_are_enough_for_a_probe() -> None:
    probes = probe_assignments(chain_table(2))
    assert probes
    assert all(sorted(probe.tolist()) == [0, 1] for probe in probes)


def on_devices(table: CostTable, op_seconds: np.ndarray) -> CostTable:
    """The table with other times, and as many devices as these have columns."""
    D = op_seconds.shape[1]
    return replace(
        table,
        devices=tuple(f"D{d}" for d in range(D)),
        op_seconds=op_seconds,
        transfer_latency=np.zeros((D, D)),
        transfer_seconds_per_byte=np.zeros((D, D)),
        launch_seconds=np.zeros(D),
        memory_capacity=np.full(D, np.inf),
    )


def with_a_bond(table: CostTable, first: int, second: int) -> CostTable:
    """The table of a chain in which two groups must share a subgraph."""
    wiring = replace(wiring_of_groups(table), bonds=np.array([[first, second]], np.int32))
    return replace(table, wiring=wiring)


def test_a_placement_that_cannot_run_is_no_probe() -> None:
    # Few of the cuts leave both ends of a bond over half the chain in one subgraph.
    table = with_a_bond(chain_table(40), 10, 26)
    for seed in range(20):
        probes = probe_assignments(table, seed=seed)
        assert all(np.isfinite(simulate(table, probe).latency_seconds) for probe in probes)
    assert probe_assignments(with_a_bond(chain_table(40), 0, 39)) == ()


def test_a_probe_that_ran_against_the_prediction_tells_nothing_of_crossings() -> None:
    table = with_a_bond(chain_table(), 3, 4)
    truth = replace(table, transfer_latency=np.full((2, 2), 25e-6))
    probes = [*probe_assignments(table), (np.arange(12) < 4).astype(np.int32)]
    assert np.isinf(simulate(table, probes[-1]).latency_seconds)
    seconds = [simulate(truth, probe).latency_seconds for probe in probes[:-1]]
    fitted = with_crossing_costs(table, probes, [*seconds, 0.007])
    np.testing.assert_allclose(fitted.transfer_latency, truth.transfer_latency, rtol=1e-6)
    assert with_crossing_costs(table, probes[-1:], [0.007]) is table
