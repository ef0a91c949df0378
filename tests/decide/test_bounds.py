"""When a device is proven best without a race, against enumeration of all placements."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ov_autoplace._base.statistics import MINIMAL_GAIN
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.bounds import cheap_transfers, free_transfers, unbeatable_device
from ov_autoplace.plan.simulator import simulate_batch
from ov_autoplace.problem.problem import Problem
from reference_hetero import random_table


def tables(seed: int, count: int = 40):
    """Random tables whose second device is up to twice as fast or as slow in each group."""
    for i in range(count):
        random = np.random.default_rng([seed, i])
        table = random_table(random, int(random.integers(2, 8)), 2)
        base = random.uniform(0.5, 1.5, size=(len(table), 1))
        tilt = random.choice([0.05, 0.3, 1.0])
        seconds = base * np.hstack([np.ones_like(base), 2.0 ** random.uniform(-tilt, tilt, base.shape)])
        yield replace(table, op_seconds=seconds, memory_capacity=np.full(2, np.inf), colocation=None)


def samples_of(table, noise: float = 0.0) -> dict[str, np.ndarray]:
    """Latencies of each device alone; every fifth inference is ``noise`` faster than the others."""
    speed = np.where(np.arange(50) % 5 == 0, 1 - noise, 1.0)
    alone = [np.full(len(table), d, np.int32) for d in range(2)]
    return {name: simulate_batch(table, [a])[0] * speed for name, a in zip(table.devices, alone, strict=True)}


def test_no_placement_beats_a_device_that_is_said_to_be_unbeatable():
    proven = 0
    for table in tables(seed=7):
        best = unbeatable_device(Problem.of(table), samples_of(table))
        every = simulate_batch(table, np.array(list(product(range(2), repeat=len(table))), np.int32))
        if best is not None:
            proven += 1
            alone = simulate_batch(table, [best.assignment])[0]
            assert every.min() >= (1 - MINIMAL_GAIN) * alone
    assert 3 <= proven <= 37, "the tables are of both kinds"


def test_where_a_mix_is_faster_nothing_is_proven():
    table = next(tables(seed=1))
    seconds = np.ones((len(table), 2))
    seconds[0, 1], seconds[1:, 1] = 0.1, 2.0
    D = len(table.devices)
    free = {"transfer_latency": np.zeros((D, D)), "transfer_seconds_per_byte": np.zeros((D, D))}
    table = replace(table, op_seconds=seconds, launch_seconds=np.zeros(D), wiring=None, **free)
    assert unbeatable_device(Problem.of(table), samples_of(table)) is None


def test_a_device_that_is_sometimes_as_fast_as_the_best_one_has_to_be_raced():
    table = next(tables(seed=2))
    table = replace(table, op_seconds=np.ones((len(table), 2)) * [1.0, 1.2], wiring=None)
    steady = samples_of(table)
    assert unbeatable_device(Problem.of(table), steady).name == table.devices[0]
    unsteady = {**steady, table.devices[1]: samples_of(table, noise=0.3)[table.devices[1]]}
    assert unbeatable_device(Problem.of(table), unsteady) is None


def test_pins_that_forbid_the_best_device_leave_nothing_proven():
    table = next(tables(seed=3))
    table = replace(table, op_seconds=np.ones((len(table), 2)) * [1.0, 3.0], wiring=None)
    assert unbeatable_device(Problem.of(table), samples_of(table)) is not None
    pinned = Problem.of(table, pins={table.names[0]: table.devices[1]})
    assert unbeatable_device(pinned, samples_of(table)) is None


@pytest.mark.parametrize(("fit", "factor"), [("free", 0.0), ("cheap", 0.5)])
def test_crossings_are_taken_cheaper_than_measured(fit, factor):
    measured = TransferFit(("A", "B"), np.full((2, 2), 4.0), np.full((2, 2), 2.0), np.array([6.0, 8.0]))
    found = free_transfers(measured.devices) if fit == "free" else cheap_transfers(measured)
    for name in ("latency", "seconds_per_byte", "launch_seconds"):
        np.testing.assert_array_equal(getattr(found, name), factor * getattr(measured, name))
