"""Solver ``policy``: the answer of a checkpoint, on any cost table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.errors import CheckpointError, OptionError
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import solve
from ov_autoplace.solvers.cuts import descend
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.list_schedulers import heft_assignment
from ov_autoplace.solvers.policy import refined_assignment
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.solvers.tasks import task_graphs
from policy_checkpoints import handmade
from random_tables import make_table, random_table

GRAPHS = Path(__file__).parents[1] / "data" / "dnn-partitioning"


@pytest.fixture(scope="module")
def fastest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that prefers the fastest device of each unit, whatever transfers cost."""
    return handmade(tmp_path_factory.mktemp("checkpoints") / "fastest")


def test_the_answer_is_no_slower_than_the_policys_own_or_a_single_device(fastest: Path) -> None:
    better = 0
    for seed in range(4):
        table = random_table(seed, groups=16, devices=2, constrained=False)
        placement = solve(table, "policy", policy=fastest)
        alone = [np.full(16, device) for device in range(2)]
        answers = [table.op_seconds.argmin(axis=1), *alone]
        best = min(simulate(table, answer).latency_seconds for answer in answers)
        assert placement.latency_seconds <= best * (1 + 1e-9)
        better += placement.latency_seconds < best * (1 - 1e-6)
        assert placement.solver == "policy"
        assert placement.lower_bound_seconds is None
        assert placement.latency_seconds == simulate(table, placement).latency_seconds
    assert solve(table, "policy", policy=fastest).assignment.tolist() == placement.assignment.tolist()
    assert better > 1, "nothing is searched around the policy's answer"


@pytest.mark.parametrize("devices", [2, 5])
def test_it_is_no_slower_than_where_cuts_and_a_walk_along_the_graph_lead(fastest: Path, devices: int) -> None:
    for seed in range(2):
        problem = Problem.of(random_table(seed + 300, groups=40, devices=devices, constrained=False))
        cut = descend(
            problem.units.with_launches(1.0), problem.table.op_seconds.argmin(axis=1), SolverOptions()
        )
        walked = greedy_assignment(problem.table, problem.units)
        answer = solve(problem.table, "policy", policy=fastest).assignment
        found = problem.evaluator.latencies([problem.units.from_groups(answer), cut, walked])
        assert found[0] <= found[1:].min() * (1 + 1e-9)


def test_units_leave_together_where_single_ones_would_cut_many_tensors() -> None:
    # A chain of pairs with heavy tensors inside each and light ones between them; half of it has to leave.
    tensors = [(u, 100.0 if u % 2 == 0 else 0.01, [u + 1]) for u in range(11)]
    table = make_table(
        [[1, 1.1]] * 12, tensors, memory_bytes=np.ones(12), memory_capacity=np.array([6.0, np.inf])
    )
    graph = policy_graph(Problem.of(table))
    noise = np.random.default_rng(0).normal(size=12)
    answer = refined_assignment(np.stack([5.0 + noise, np.zeros(12)], axis=1), graph)
    assert np.bincount(answer, minlength=2)[0] <= 6
    assert (answer[::2] == answer[1::2]).all()


def test_an_answer_on_estimates_is_the_policys_own(fastest: Path) -> None:
    searched = 0
    for seed in range(2):
        table = random_table(seed + 50, groups=20, devices=2, constrained=False)
        own = PolicyRunner(fastest).greedy(policy_graph(Problem.of(table))).tolist()
        estimate = replace(table, source="analytic")
        assert solve(estimate, "policy", policy=fastest).assignment.tolist() == own
        searched += solve(table, "policy", policy=fastest).assignment.tolist() != own
    assert searched, "these seeds are not a test"


@pytest.mark.parametrize("objective", ["hetero", "overlap", "rate"])
@pytest.mark.seeds(4, cost=30)
def test_no_answer_is_slower_than_the_placement_that_scores_ask_for(seed: int, objective: str) -> None:
    table = random_table(seed + 8_000, groups=60, devices=3, constrained=False)
    problem = Problem.of(table, objective=objective)
    graph = policy_graph(problem)
    good = solve(table, "portfolio", objective=objective)
    scores = np.where(np.arange(3) == good.assignment[:, None], 4.0, 0.0)
    found = problem.evaluator.latencies([refined_assignment(scores, graph)])[0]
    assert found <= good.latency_seconds * (1 + 1e-9)


def test_on_lanes_the_answer_is_no_slower_than_the_best_list_schedule(fastest: Path) -> None:
    better = 0
    for seed in range(4):
        table = random_table(seed + 9_000, groups=24, devices=4, constrained=False)
        problem = Problem.of(table, objective="overlap")
        schedules = [heft_assignment(problem, tasks) for tasks in task_graphs(problem)]
        best = problem.evaluator.latencies([s for s in schedules if s is not None]).min()
        placement = solve(table, "policy", objective="overlap", policy=fastest)
        assert placement.latency_seconds <= best * (1 + 1e-9)
        better += placement.latency_seconds < best * (1 - 1e-6)
    assert better > 1, "nothing is searched around the schedule"


def test_memory_that_results_share_one_after_the_other_is_used(fastest: Path) -> None:
    # Of 24 results in a row, each device has room for two and for a third of the weights: in this order, and
    # only in pieces of eight, everything fits. Crossing costs as much as two operations.
    chain = [(g, 10.0, [g + 1]) for g in range(23)]
    table = make_table(
        np.ones((24, 3)),
        chain,
        transfer_latency=np.full((3, 3), 2.0),
        transfer_seconds_per_byte=np.zeros((3, 3)),
        memory_bytes=np.full(24, 11.0),
        result_bytes=np.full(24, 10.0),
        memory_capacity=np.full(3, 8.0 + 2 * 10.0),
    )
    for solver, checkpoint in (("policy", fastest), ("portfolio", None)):
        placement = solve(table, solver, policy=checkpoint)
        assert placement.latency_seconds == pytest.approx(24.0 + 2 * 2.0)
        assert (held_bytes(table, placement.assignment) <= table.memory_capacity).all()


@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.json")), ids=lambda path: path.stem)
def test_a_graph_of_the_public_format_without_op_types_is_placed(fastest: Path, path: Path) -> None:
    table = load_dnn_partitioning(path, accelerators=1, memory=False)
    assert table.op_types is None
    graph = policy_graph(Problem.of(table))
    placement = solve(table, "policy", policy=fastest)
    own = graph.problem.units.to_groups(PolicyRunner(fastest).greedy(graph))
    assert placement.latency_seconds <= simulate(table, own).latency_seconds * (1 + 1e-9)


def test_a_checkpoint_that_cannot_be_used_is_an_error(tmp_path: Path, fastest: Path) -> None:
    table = random_table(0, groups=5, devices=3, constrained=False)
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        solve(table, "policy", policy=tmp_path / "nothing")
    two = handmade(tmp_path / "two", num_devices=2)
    with pytest.raises(CheckpointError, match="trained for exactly 2 devices and cannot place on 3"):
        solve(table, "policy", policy=str(two))


@pytest.mark.parametrize(("objective", "solver"), [("hetero", "portfolio"), ("rate", "local")])
def test_other_solvers_take_no_policy(fastest: Path, objective: str, solver: str) -> None:
    with pytest.raises(OptionError, match=f"the solver '{solver}' of {objective} takes no policy"):
        solve(make_table([[1, 2]]), solver, objective=objective, policy=fastest)


@pytest.mark.parametrize("objective", ["overlap", "rate"])
def test_the_default_solver_begins_at_the_policys_answer_where_nothing_is_exact(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fastest: Path, objective: str
) -> None:
    asked = []
    scores = PolicyRunner.scores
    monkeypatch.setattr(PolicyRunner, "scores", lambda self, graph: asked.append(1) or scores(self, graph))
    table = random_table(92_000, groups=20, devices=3, constrained=False)
    policy = solve(table, "policy", objective=objective, policy=fastest)
    answer = solve(table, objective=objective, policy=fastest)
    assert answer.latency_seconds <= policy.latency_seconds * (1 + 1e-9)
    assert asked
    asked.clear()
    solve(table, objective=objective, policy="none")
    assert not asked
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        solve(table, objective=objective, policy=tmp_path / "nothing")
