"""Solver ``policy``: the answer of a checkpoint, on any cost table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.errors import CheckpointError, OptionError, PlacementError
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import solve
from policy_checkpoints import handmade
from random_tables import legal_assignments, make_table, random_table

GRAPHS = Path(__file__).parents[1] / "data" / "dnn-partitioning"


@pytest.fixture
def fastest(tmp_path: Path) -> Path:
    """A policy that prefers the fastest device of each unit, whatever transfers cost."""
    return handmade(tmp_path / "fastest")


def test_the_answer_is_the_policys_or_a_single_device(fastest: Path) -> None:
    mixed = 0
    for seed in range(10):
        table = random_table(seed, groups=30, devices=2, constrained=False)
        placement = solve(table, "policy", policy=fastest)
        alone = [np.full(30, device) for device in range(2)]
        answers = [table.op_seconds.argmin(axis=1), *alone]
        best = min(answers, key=lambda answer, table=table: simulate(table, answer).latency_seconds)
        assert placement.assignment.tolist() == best.tolist()
        mixed += len(set(best.tolist())) == 2
        assert placement.solver == "policy"
        assert placement.lower_bound_seconds is None
        assert placement.latency_seconds == simulate(table, placement).latency_seconds
    assert 0 < mixed < 10, "these seeds are not a test"


@pytest.mark.parametrize("devices", [2, 3])
@pytest.mark.parametrize("seed", range(25))
def test_answers_honour_every_constraint_of_the_table(fastest: Path, seed: int, devices: int) -> None:
    table = random_table(seed, groups=6, devices=devices)
    legal = legal_assignments(table).tolist()
    for checkpoint in (fastest, handmade(fastest.with_name("slowest"), 1.0)):
        try:
            placement = solve(table, "policy", policy=checkpoint)
        except PlacementError:
            assert not legal
        else:
            assert placement.assignment.tolist() in legal


@pytest.mark.parametrize("seed", range(20))
def test_pins_and_memory_limits_are_honoured(fastest: Path, seed: int) -> None:
    table = random_table(seed, groups=12, devices=2, constrained=False)
    limits = dict.fromkeys(table.devices, 0.7 * float(table.memory_bytes.sum()))
    placement = solve(table, "policy", policy=fastest, memory_limits=limits, pins={"group2": "DEV1"})
    assert placement.to_dict()["group2"] == "DEV1"
    held = np.bincount(placement.assignment, table.memory_bytes, 2)
    assert (held <= [limits[d] for d in table.devices]).all()


@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.json")), ids=lambda path: path.stem)
def test_a_graph_of_the_public_format_without_op_types_is_placed(fastest: Path, path: Path) -> None:
    table = load_dnn_partitioning(path, accelerators=1, memory=False)
    assert table.op_types is None
    graph = policy_graph(Problem.of(table))
    placement = solve(table, "policy", policy=fastest)
    assert (
        placement.assignment.tolist()
        == graph.problem.units.to_groups(PolicyRunner(fastest).greedy(graph)).tolist()
    )
    assert np.isfinite(placement.latency_seconds)


def test_one_device_leaves_no_choice_and_needs_no_checkpoint() -> None:
    assert solve(make_table([[2.0], [1.0]]), "policy").assignment.tolist() == [0, 0]


def test_a_checkpoint_that_cannot_be_used_is_an_error(tmp_path: Path, fastest: Path) -> None:
    table = random_table(0, groups=5, devices=3, constrained=False)
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        solve(table, "policy", policy=tmp_path / "nothing")
    two = handmade(tmp_path / "two", num_devices=2)
    with pytest.raises(CheckpointError, match="trained for exactly 2 devices and cannot place on 3"):
        solve(table, "policy", policy=str(two))


def test_other_solvers_take_no_policy(fastest: Path) -> None:
    with pytest.raises(OptionError, match="the solver 'auto' takes no policy; use solver='policy'"):
        solve(make_table([[1, 2]]), policy=fastest)
