"""The shipped policy is still good: zero-shot, on families and machines that it was not trained on.

Networks of the held-out families are built here, put on random machines from seeds that training never uses,
and solved; then the policy's greedy answer alone has to come close. Only the last test needs torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import zoo
from ov_autoplace.cost.table import CostTable
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import solve
from ov_autoplace.training.targets import RandomTargets, random_task
from ov_autoplace.training.workload import Workload

SEED = 3_000_017  # pretraining and the benchmarks use others
MACHINES = 6  # per network
NUM_OPS = 250
FLOOR = 0.05


class HeldOut(NamedTuple):
    """One problem with what is known about it, in seconds."""

    family: str
    table: CostTable
    best: float
    best_single: float


@pytest.fixture(scope="module")
def problems() -> list[HeldOut]:
    """Each held-out family on machines of two devices of about equal speed, both of which run everything.

    Transfers are rather cheap, so that there is something to decide.
    """
    targets = RandomTargets(balance=0.2, crossing=(-1.5, 0.5), unsupported=0.0, estimate=0.0, untyped=0.0)
    made = []
    for number, family in enumerate(zoo.HELD_OUT_FAMILIES):
        model = zoo.build_scaled(family, NUM_OPS, SEED)
        workload = Workload.of(prepare(model).groups({}), family, family)
        for machine in range(MACHINES):
            random = np.random.default_rng((SEED, number, machine))
            table = random_task(workload, random, targets, devices=2).true
            best = solve(table).latency_seconds
            single = solve(table, "single").latency_seconds
            assert best is not None
            assert single is not None
            made.append(HeldOut(family, table, best, single))
    return made


def mean_gap(policy: PolicyRunner, problems: list[HeldOut]) -> float:
    """Of the policy's greedy answers, to the solver's."""
    gaps = []
    for problem in problems:
        graph = policy_graph(Problem.of(problem.table))
        answer = policy.greedy(graph)[graph.problem.units.unit_of]
        gaps.append(simulate(problem.table, answer).latency_seconds / problem.best - 1)
        print(f"{problem.family}: {100 * gaps[-1]:.2f} %")  # shown when a test fails
    return float(np.mean(gaps))


def single_gap(problems: list[HeldOut]) -> float:
    """The mean gap of the best single device."""
    return float(np.mean([problem.best_single / problem.best - 1 for problem in problems]))


def test_the_problems_are_worth_placing(problems: list[HeldOut]) -> None:
    assert len(problems) == MACHINES * len(zoo.HELD_OUT_FAMILIES)
    assert single_gap(problems) > FLOOR


def test_the_shipped_policy_is_above_the_floor_and_better_than_one_device(problems: list[HeldOut]) -> None:
    gap = mean_gap(PolicyRunner(), problems)
    assert gap <= FLOOR
    assert gap < single_gap(problems)


@pytest.mark.torch
def test_a_policy_that_learned_nothing_is_below_the_floor(problems: list[HeldOut], tmp_path: Path) -> None:
    from ov_autoplace.policy.networks.checkpoint import save_checkpoint
    from ov_autoplace.policy.networks.network import make_network

    save_checkpoint(tmp_path / "random", make_network("autoplace-base", seed=0), {}, {})
    assert mean_gap(PolicyRunner(tmp_path / "random"), problems) > FLOOR
