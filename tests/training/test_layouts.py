from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.plan.simulator import simulate_batch
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.pooling import copies_of
from ov_autoplace.training.layouts import Layout
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.targets import EVERY_OBJECTIVE, RandomTargets, random_task

WORKLOAD = random_workload("random_fan_out", 40, 3)
KINDS = random_task(WORKLOAD, np.random.default_rng(1), RandomTargets(estimate=0.0, unsupported=0.0), 2).true


def draw(seed, objective, devices, **changes):
    targets = replace(EVERY_OBJECTIVE, estimate=0.0, unsupported=0.0, **changes)
    return random_task(WORKLOAD, np.random.default_rng(seed), targets, devices, objective).true


@pytest.mark.parametrize("objective", ["hetero", "overlap", "rate"])
def test_exchanging_copies_changes_no_cost(objective):
    table = Layout((0, 0, 1, 1, 1), between_copies=0.7).laid_out(KINDS)
    assert copies_of(Problem.of(table, objective=objective).units) == [[0, 1], [2, 3, 4]]
    rng = np.random.default_rng(2)
    placements = rng.integers(5, size=(30, 40)).astype(np.int32)
    exchanged = np.array([1, 0, 4, 2, 3], dtype=np.int32)[placements]
    seconds = [simulate_batch(table, rows, objective=objective) for rows in (placements, exchanged)]
    np.testing.assert_allclose(*seconds, rtol=1e-12)


def test_lanes_share_memory_and_stand_beside_other_devices():
    table = Layout((0, 1), lanes=3, hand_over=0.5, corun_factor=1.1).laid_out(KINDS)
    assert table.lane_devices == ("DEVICE0", "DEVICE0", "DEVICE0", "DEVICE1")
    assert table.device_of.tolist() == [0, 0, 0, 3]
    assert table.corun_factor == 1.1
    lane = table.op_seconds[:, 0]
    np.testing.assert_array_equal(table.op_seconds[:, 2], lane)
    assert table.transfer_latency[0, 2] == pytest.approx(0.5 * lane.mean())


def test_limits_make_a_difference():
    for seed in range(20):
        table = draw(seed, "hetero", 4, limits=(("hetero", 1.0),))
        assert Problem.of(table).units.has_memory_limits
    free = draw(0, "hetero", 4, limits=())
    assert np.isinf(free.memory_capacity).all()


def test_every_layout_is_drawn():
    overlap = [draw(seed, "overlap", 4) for seed in range(60)]
    lanes = [0 if t.lane_devices is None else t.lane_devices.count("DEVICE0") for t in overlap]
    assert {0, 2, 3, 4} <= set(lanes)
    several = [draw(seed, "hetero", 4) for seed in range(60)]
    classes = [len(copies_of(Problem.of(table).units)) for table in several]
    assert {1, 2, 3, 4} <= set(classes)
    assert 30 < classes.count(4) < 60  # a quarter has copies


def test_plain_machines_have_neither_copies_nor_lanes_nor_limits():
    for seed in range(20):
        task = random_task(WORKLOAD, np.random.default_rng(seed), RandomTargets())
        assert task.objective == "hetero"
        assert task.true.lane_devices is None
        assert np.isinf(task.true.memory_capacity).all()
        assert len(copies_of(Problem.of(task.true).units)) == task.true.num_devices


def test_lanes_of_a_device_that_runs_nothing_have_a_price():
    idle = replace(KINDS, op_seconds=np.column_stack((np.full(40, np.inf), KINDS.op_seconds[:, 1])))
    table = Layout((0, 1), lanes=2, hand_over=0.5).laid_out(idle)
    assert table.transfer_latency[0, 1] == pytest.approx(0.5 * KINDS.op_seconds[:, 1].mean())
