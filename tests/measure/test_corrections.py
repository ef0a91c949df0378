from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.measure.corrections import Observation, corrected_table
from ov_autoplace.plan.simulator import simulate
from reference_hetero import random_table


def _table(seed: int, groups: int, devices: int):
    table = random_table(np.random.default_rng(seed), groups, devices)
    return replace(table, op_seconds=np.where(table.supported, table.op_seconds, 1e-3))


@pytest.mark.seeds(5)
def test_a_table_that_is_wrong_by_device_factors_is_mended(seed):
    table = _table(seed, 12, 2)
    truth = replace(table, op_seconds=table.op_seconds * [1.5, 0.8])
    random = np.random.default_rng(seed)
    seen = [random.integers(2, size=12).astype(np.int32) for _ in range(30)]
    observations = [Observation(a, simulate(truth, a).latency_seconds) for a in seen]
    mended = corrected_table(table, observations)
    unseen = random.integers(2, size=12).astype(np.int32)
    wanted = simulate(truth, unseen).latency_seconds
    before = abs(simulate(table, unseen).latency_seconds / wanted - 1)
    after = abs(simulate(mended, unseen).latency_seconds / wanted - 1)
    assert after < 0.02
    assert after < before
    assert mended.source == "measured"


def test_a_table_that_is_right_stays_as_it_is():
    table = _table(0, 10, 3)
    random = np.random.default_rng(1)
    seen = [random.integers(3, size=10).astype(np.int32) for _ in range(8)]
    mended = corrected_table(table, [Observation(a, simulate(table, a).latency_seconds) for a in seen])
    np.testing.assert_allclose(mended.op_seconds, table.op_seconds, rtol=1e-9)
    np.testing.assert_allclose(mended.launch_seconds, table.launch_seconds, rtol=1e-9)


def test_one_observation_changes_little():
    table = _table(0, 10, 2)
    everywhere = np.zeros(10, dtype=np.int32)
    twice = 2 * simulate(table, everywhere).latency_seconds
    mended = corrected_table(table, [Observation(everywhere, twice)])
    grown = simulate(mended, everywhere).latency_seconds / simulate(table, everywhere).latency_seconds
    assert 1.5 < grown < 2
    other = np.ones(10, dtype=np.int32)
    assert simulate(mended, other).latency_seconds == pytest.approx(
        simulate(table, other).latency_seconds, rel=0.5
    )


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        (["launch_seconds"], 3.0),
        (["transfer_latency", "transfer_seconds_per_byte"], 2.5),
        (["mix_seconds", "transfer_latency", "transfer_seconds_per_byte"], 2.5),
    ],
)
def test_a_table_whose_launches_or_transfers_are_wrong_is_mended(fields, factor):
    table = _table(3, 12, 2)
    enough = float(table.op_seconds.mean())  # to be seen
    table = replace(table, launch_seconds=np.full(2, enough), mix_seconds=enough * ("mix_seconds" in fields))
    truth = replace(table, **{field: factor * getattr(table, field) for field in fields})
    random = np.random.default_rng(3)
    seen = [random.integers(2, size=12).astype(np.int32) for _ in range(40)]
    mended = corrected_table(table, [Observation(a, simulate(truth, a).latency_seconds) for a in seen])
    unseen = random.integers(2, size=12).astype(np.int32)
    assert simulate(mended, unseen).latency_seconds == pytest.approx(
        simulate(truth, unseen).latency_seconds, rel=0.03
    )
    # How a latency divides between launches and transfers is seen only as far as placements differ in it.
    for field in fields:
        assert np.all(getattr(mended, field) > (1 + 0.25 * (factor - 1)) * getattr(table, field))
