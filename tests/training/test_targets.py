from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.targets import RandomTargets, random_task

WORKLOAD = random_workload("random_layered", 60, 0)
ALWAYS = RandomTargets(estimate=1.0, untyped=0.0, unsupported=0.0)


def draw(seed, targets=ALWAYS, devices=2):
    return random_task(WORKLOAD, np.random.default_rng(seed), targets, devices)


def test_a_machine_depends_on_the_seed_alone():
    left, right, other = draw(1), draw(1), draw(2)
    np.testing.assert_array_equal(left.true.op_seconds, right.true.op_seconds)
    np.testing.assert_array_equal(left.shown.op_seconds, right.shown.op_seconds)
    assert not np.array_equal(left.true.op_seconds, other.true.op_seconds)


def test_an_estimate_is_wrong_and_says_so():
    task = draw(3)
    assert (task.shown.source, task.true.source) == ("analytic", "profiled")
    busy = task.true.op_seconds > 0
    error = np.log(task.shown.op_seconds[busy] / task.true.op_seconds[busy])
    assert 0.3 < error.std() < 1.2
    # Where things are known exactly, the truth is shown itself.
    exact = draw(3, replace(ALWAYS, estimate=0.0))
    assert exact.shown is exact.true


def test_one_device_can_run_everything_even_where_others_lack_ops():
    lacking = [draw(seed, replace(ALWAYS, unsupported=1.0), 3) for seed in range(12)]
    assert all(task.true.supported.all(axis=0).any() for task in lacking)
    assert any(not task.true.supported.all() for task in lacking)


def test_the_number_of_devices_is_drawn_as_often_as_asked():
    targets = replace(ALWAYS, devices=((2, 1.0), (4, 3.0)))
    counts = [
        random_task(WORKLOAD, np.random.default_rng(seed), targets).true.num_devices for seed in range(200)
    ]
    assert set(counts) == {2, 4}
    assert 0.6 < np.mean(np.array(counts) == 4) < 0.9


def test_dear_crossings_are_dear_compared_to_what_ops_can_win():
    cheap, dear = (
        draw(5, replace(ALWAYS, crossing=(power, power))).true.transfer_latency for power in (-1.0, 1.0)
    )
    np.testing.assert_allclose(dear / cheap, 100.0)


@pytest.mark.parametrize("devices", [2, 3])
def test_groups_that_do_nothing_take_no_time(devices):
    task = draw(6, devices=devices)
    assert (task.true.op_seconds[~WORKLOAD.busy] == 0).all()
    assert (task.true.op_seconds[WORKLOAD.busy] > 0).all()
