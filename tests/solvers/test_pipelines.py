"""Where many requests flow through a few devices, one after the other."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest

from ov_autoplace.plan.simulator import simulate_batch
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.pipelines import pipelines
from random_tables import make_table, random_table


def chain(seed: int, groups: int, devices: int) -> Problem:
    rng = np.random.default_rng(seed)
    tensors = [(g, float(rng.exponential(0.2)), [g + 1]) for g in range(groups - 1)]
    table = make_table(
        rng.lognormal(0, 1, (groups, 1)) * rng.lognormal(0, 0.5, (groups, devices)),
        tensors,
        transfer_latency=rng.exponential(0.1, (devices, devices)),
        transfer_seconds_per_byte=rng.exponential(1.0, (devices, devices)),
        launch_seconds=rng.exponential(0.1, devices),
    )
    return Problem.of(table, objective="rate")


@pytest.mark.parametrize(("devices", "groups"), [(2, 9), (3, 9), (4, 9), (5, 7), (6, 6)])
@pytest.mark.seeds(10)
def test_no_stages_of_a_chain_are_faster(seed: int, devices: int, groups: int) -> None:
    problem = chain(seed + 700, groups, devices)
    stages = [
        np.repeat(order, np.diff([0, *ends, groups]))
        for size in range(2, devices + 1)
        for order, ends in product(
            permutations(range(devices), size), combinations(range(1, groups), size - 1)
        )
    ]  # fmt: skip
    best = simulate_batch(problem.table, np.array(stages, dtype=np.int32), objective="rate").min()
    assert problem.evaluator.latencies(pipelines(problem.units)).min() == pytest.approx(best, rel=1e-12)


@pytest.mark.seeds(30)
def test_every_pipeline_is_allowed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(seed + 71_000, 12, 2 + seed % 3, constrained=False)
    may_run = rng.random(table.op_seconds.shape) < 0.6
    may_run[np.arange(12), rng.integers(table.num_devices, size=12)] = True
    table = replace(table, op_seconds=np.where(may_run, table.op_seconds, np.inf))
    problem = Problem.of(table, objective="rate")
    found = pipelines(problem.units)
    assert found
    assert np.isfinite(problem.evaluator.latencies(found)).all()


def test_of_more_than_eight_devices_those_count_that_are_fastest_alone() -> None:
    problem = chain(5, 12, 11)
    table = problem.table
    slow = [2, 5, 7]
    table = replace(table, op_seconds=np.where(np.isin(range(11), slow), 9.0, 1.0) * table.op_seconds)
    found = np.array(pipelines(Problem.of(table, objective="rate").units))
    assert not np.isin(found, slow).any()
    assert len(np.unique(found)) == 8


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_fewer_units_than_devices(groups: int) -> None:
    problem = chain(1, groups, 4)
    found = np.array(pipelines(problem.units)).reshape(-1, groups)
    assert np.isin(found, range(4)).all()
    assert len(found) == 12 * (groups - 1) + (4 if groups > 2 else 0)
