"""Who is proposed, and in which order; and what is taken where costs are estimates."""

from __future__ import annotations

import numpy as np
import pytest

from candidates import kinds, numbers, on_groups
from ov_autoplace._base.statistics import ESTIMATE_MARGIN
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.decide.verdict import predicted
from ov_autoplace.plan.findings import Kind
from ov_autoplace.problem.problem import Problem
from random_tables import make_table, random_table


def test_a_placement_that_several_propose_is_one_candidate_that_names_them() -> None:
    # No transfer costs anything, so the optimum and the greedy answer are the same.
    table = make_table(
        [[1, 9], [9, 1], [1, 9], [9, 1]],
        [(g, 1.0, [g + 1]) for g in range(3)],
        transfer_seconds_per_byte=np.zeros((2, 2)),
    )
    found = propose(Problem.of(table), ProposalSource())
    (mix,) = (p for p in found if p.assignment.tolist() == [0, 1, 0, 1])
    assert (mix.name, mix.also) == ("portfolio", ("greedy",))
    assert mix.lower_bound_seconds is not None


def test_without_solvers_there_are_single_devices_and_hetero() -> None:
    table = random_table(4, groups=14, devices=2, constrained=False)
    found = propose(Problem.of(table), ProposalSource(()))
    assert {name for c in found for name in (c.name, *c.also)} == {*table.devices, "HETERO"}


@pytest.mark.seeds(3, cost=30)
def test_pins_and_memory_limits_bind_everybody(seed: int) -> None:
    table = random_table(seed, groups=12, devices=2, constrained=False)
    limits = dict.fromkeys(table.devices, 0.7 * float(table.memory_bytes.sum()))
    found = propose(Problem.of(table, limits, {"group3": "DEV1"}), ProposalSource())
    assert found
    for p in found:
        assert p.assignment[3] == 1
        assert (np.bincount(p.assignment, table.memory_bytes, 2) <= list(limits.values())).all()


def test_a_mix_that_is_predicted_faster_by_less_than_estimates_are_wrong_is_not_taken() -> None:
    single, other = on_groups("GPU", [0, 0], 1.0), on_groups("CPU", [1, 1], 3.0)
    near = on_groups("portfolio", [0, 1], 1 - 0.9 * ESTIMATE_MARGIN)
    verdict = predicted([single, other, near])
    assert verdict.winner is single
    assert kinds(verdict) == [Kind.SINGLE_PREDICTED, Kind.NOTHING_MEASURED]
    assert numbers(verdict, Kind.SINGLE_PREDICTED)["gain"] == pytest.approx(90 * ESTIMATE_MARGIN)


def test_a_mix_that_is_predicted_clearly_faster_is_taken() -> None:
    single, mix = on_groups("GPU", [0, 0], 1.0), on_groups("portfolio", [0, 1], 1 - 1.1 * ESTIMATE_MARGIN)
    assert predicted([single, mix]).winner is mix


def test_where_one_device_is_predicted_fastest_it_is_taken() -> None:
    verdict = predicted([on_groups("GPU", [0, 0], 1.0), on_groups("greedy", [1, 0], 1.001)])
    assert verdict.winner.name == "GPU"
    assert kinds(verdict) == [Kind.PREDICTED, Kind.NOTHING_MEASURED]


def test_where_no_device_can_run_everything_the_lowest_prediction_is_taken() -> None:
    mixes = [on_groups("greedy", [0, 1], 1.0), on_groups("portfolio", [1, 0], 0.99)]
    verdict = predicted(mixes)
    assert verdict.winner is mixes[1]
    assert kinds(verdict) == [Kind.PREDICTED, Kind.NOTHING_MEASURED]
