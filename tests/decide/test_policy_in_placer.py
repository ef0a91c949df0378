"""The learned policy among the placer's candidates: when it is asked, and when its answer is taken."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from candidates import kinds, numbers, on_groups
from command_line import Command, proposers_of
from ov_autoplace._base.statistics import ESTIMATE_MARGIN
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.decide.verdict import predicted
from ov_autoplace.errors import CheckpointError, PlacementError
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.findings import Kind
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.plugin.decision_cache import DecisionCache
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.readout import draw
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.problem.problem import Problem
from policy_checkpoints import handmade
from random_tables import make_table, random_table

TARGET = {"mode": "ZERO_SHOT", "target": "core-ultra-7-155h"}  # estimates only: none of it need be here


@pytest.fixture
def fastest(tmp_path: Path) -> Path:
    """A policy that prefers the fastest device of each unit, whatever transfers cost."""
    return handmade(tmp_path / "fastest")


@pytest.fixture
def slowest(tmp_path: Path) -> Path:
    return handmade(tmp_path / "slowest", 1.0)


def matmuls(count: int = 6) -> ov.Model:
    """A chain of matrix products that are light for one device and heavy for another."""
    random = np.random.default_rng(0)
    x = ops.parameter([64, 512], name="x")
    y = x
    for i in range(count):
        weights = ops.constant(random.normal(size=(512, 512)).astype(np.float32), name=f"weights{i}")
        y = ops.tanh(ops.matmul(y, weights, False, False, name=f"matmul{i}"), name=f"tanh{i}")
    return ov.Model([ops.result(y, name="answer")], [x], "matmuls")


def names_of(proposals: list[Candidate]) -> list[str]:
    return [p.name for p in proposals]


def test_the_policy_proposes_its_refined_answer_and_the_best_few_of_its_draws(fastest: Path) -> None:
    table = random_table(1, groups=14, devices=2, constrained=False)
    runner = PolicyRunner(fastest)
    proposals = propose(Problem.of(table), ProposalSource(seed=5, policy=runner))
    (own,) = (p for p in proposals if "policy" in (p.name, *p.also))
    assert own.predicted_seconds < simulate(table, table.op_seconds.argmin(axis=1)).latency_seconds
    found = {p.name: p for p in proposals}
    graph = policy_graph(Problem.of(table))
    drawn = draw(runner.scores(graph), graph, 8, seed=5)
    others = [p.assignment.tobytes() for p in found.values() if not p.name.startswith("policy")]
    latency = [simulate(table, row).latency_seconds for row in drawn]
    best = sorted(range(8), key=latency.__getitem__)[:3]
    assert drawn[best[0]].tobytes() not in others, "this seed is not a test"
    assert {n for n in found if n.startswith("policy sample")} == {f"policy sample {i + 1}" for i in best}
    for i in best:
        assert found[f"policy sample {i + 1}"].assignment.tolist() == drawn[i].tolist()
        assert found[f"policy sample {i + 1}"].predicted_seconds == latency[i]


def test_a_placement_that_several_propose_is_one_candidate_that_names_them(fastest: Path) -> None:
    # No transfer costs anything, so the optimum, the greedy answer and the policy's are the same.
    table = make_table(
        [[1, 9], [9, 1], [1, 9], [9, 1]],
        [(g, 1.0, [g + 1]) for g in range(3)],
        transfer_seconds_per_byte=np.zeros((2, 2)),
    )
    found = propose(Problem.of(table), ProposalSource(policy=PolicyRunner(fastest)))
    (mix,) = (p for p in found if p.assignment.tolist() == [0, 1, 0, 1])
    assert (mix.name, mix.also[:2]) == ("portfolio", ("greedy", "policy"))
    assert mix.lower_bound_seconds is not None


def test_without_a_policy_nobody_asks_it() -> None:
    table = random_table(4, groups=14, devices=2, constrained=False)
    assert not [n for n in names_of(propose(Problem.of(table), ProposalSource())) if "policy" in n]


@pytest.mark.seeds(3, cost=30)
def test_pins_and_memory_limits_bind_the_policy_too(slowest: Path, seed: int) -> None:
    table = random_table(seed, groups=12, devices=2, constrained=False)
    limits = dict.fromkeys(table.devices, 0.7 * float(table.memory_bytes.sum()))
    problem = Problem.of(table, limits, {"group3": "DEV1"})
    source = ProposalSource((), policy=PolicyRunner(slowest))
    found = [p for p in propose(problem, source) if "policy" in p.name]
    assert found
    for p in found:
        assert p.assignment[3] == 1
        assert (np.bincount(p.assignment, table.memory_bytes, 2) <= list(limits.values())).all()


def test_a_policy_that_finds_nothing_within_memory_proposes_what_fits_first(fastest: Path) -> None:
    table = make_table(
        [[1, 5], [1, 3], [1, 9], [1, 2], [1, 2], [1, 2]],
        memory_bytes=np.array([4.0, 5.0, 6.0, 6.0, 7.0, 8.0]),
        memory_capacity=np.array([18.0, 18.0]),
    )
    with pytest.raises(PlacementError):
        PolicyRunner(fastest).greedy(policy_graph(Problem.of(table)))
    found = propose(Problem.of(table), ProposalSource(policy=PolicyRunner(fastest)))
    assert "policy" in {name for c in found for name in (c.name, *c.also)}


def test_a_policy_that_cannot_be_run_costs_a_warning_unless_it_was_demanded(
    fastest: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: PolicyRunner, graph: object) -> None:
        raise CheckpointError("it cannot be run")

    monkeypatch.setattr(PolicyRunner, "scores", broken)
    source = ProposalSource(policy=PolicyRunner(fastest))
    table = random_table(4, groups=14, devices=2, constrained=False)
    assert names_of(propose(Problem.of(table), source))
    assert "the policy proposes nothing: it cannot be run" in caplog.text
    with pytest.raises(CheckpointError, match="cannot be run"):
        propose(Problem.of(table), replace(source, policy_is_required=True))


def test_on_estimated_costs_the_policys_answer_is_taken_where_predictions_say_nothing() -> None:
    single, mix = on_groups("GPU", [0, 0], 1.0), on_groups("portfolio", [0, 1], 0.8)
    near = on_groups("policy", [1, 0], 0.8 * (1 + 0.9 * ESTIMATE_MARGIN))
    verdict = predicted([single, mix, near, on_groups("policy sample 1", [1, 0], 0.81)])
    assert verdict.winner is near
    assert kinds(verdict) == [Kind.POLICY_PREDICTED, Kind.GAIN_PREDICTED, Kind.NOTHING_MEASURED]
    assert numbers(verdict, Kind.POLICY_PREDICTED)["behind"] == pytest.approx(90 * ESTIMATE_MARGIN)
    gain = 100 * (1 - near.predicted_seconds)
    assert numbers(verdict, Kind.GAIN_PREDICTED)["gain"] == pytest.approx(gain)


@pytest.mark.parametrize("seconds", [0.8 * (1 + 1.1 * ESTIMATE_MARGIN), 1.001, 5.0])
def test_on_estimated_costs_a_clearly_worse_answer_of_the_policy_is_not_taken(seconds: float) -> None:
    single, mix = on_groups("GPU", [0, 0], 1.0), on_groups("portfolio", [0, 1], 0.8)
    assert predicted([single, mix, on_groups("policy", [1, 0], seconds)]).winner.name == "portfolio"


def test_an_answer_predicted_slower_than_one_device_is_never_taken() -> None:
    proposals = [on_groups("GPU", [0, 0], 1.0), on_groups("policy", [1, 0], 1.001)]
    verdict = predicted(proposals)
    assert verdict.winner.name == "GPU"
    assert kinds(verdict) == [Kind.PREDICTED, Kind.NOTHING_MEASURED]


def test_the_policys_answer_counts_also_where_somebody_else_named_it_first() -> None:
    single, mix = on_groups("GPU", [0, 0], 1.0, also=("policy",)), on_groups("portfolio", [0, 1], 0.97)
    verdict = predicted([single, mix])
    assert verdict.winner is single
    assert verdict.kind is Kind.POLICY_PREDICTED


def test_zero_shot_asks_the_policy_and_says_who_won(fastest: Path) -> None:
    model = matmuls()
    placement = ov_autoplace.place(model, "GPU,CPU", policy=fastest, **TARGET)
    found = {name for c in placement.decision.candidates for name in (c.name, *c.also)}
    assert "policy" in found
    without = ov_autoplace.place(model, "GPU,CPU", policy="none", **TARGET)
    assert not [c for c in without.decision.candidates if "policy" in (c.name, *c.also)]
    assert set(placement.to_dict()) == {op.get_friendly_name() for op in model.get_ops()}


def test_a_bad_policy_changes_no_answer(slowest: Path) -> None:
    model = matmuls()
    with_policy = ov_autoplace.place(model, "GPU,CPU", policy=slowest, **TARGET)
    without = ov_autoplace.place(model, "GPU,CPU", policy="none", **TARGET)
    assert with_policy.to_dict() == without.to_dict()


def test_a_policy_that_was_asked_for_and_cannot_be_used_stops_the_request(tmp_path: Path) -> None:
    for asked in (tmp_path / "nothing", handmade(tmp_path / "three", num_devices=3)):
        with pytest.raises(CheckpointError):
            ov_autoplace.place(matmuls(1), "GPU,CPU", policy=asked, **TARGET)


def test_modes_that_measure_race_the_policys_answer(
    unequal_pair: ov.Core, fastest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ov_autoplace.decide.stages.splits.unbeatable_device", lambda *_: None
    )  # else nothing is raced
    placement = ov_autoplace.place(matmuls(1), ["XCPU", "CPU"], "PROFILE", unequal_pair, policy=fastest)
    candidates = placement.decision.candidates
    assert "policy" in {name for c in candidates for name in (c.name, *c.also)}
    assert any(len(c.samples) for c in candidates)


def test_the_property_is_taken_by_compile_model_and_kept_by_the_core(
    unequal_pair: ov.Core, fastest: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert unequal_pair.get_property("AUTOPLACE", "AUTOPLACE_POLICY") is None
    unequal_pair.set_property("AUTOPLACE", {"AUTOPLACE_POLICY": str(fastest)})
    assert unequal_pair.get_property("AUTOPLACE", "AUTOPLACE_POLICY") == str(fastest)
    with caplog.at_level(logging.INFO, "ov_autoplace"):
        compiled = unequal_pair.compile_model(
            matmuls(1), "AUTOPLACE:XCPU,CPU", {"AUTOPLACE_TIME_BUDGET_MS": 50}
        )
    assert compiled(np.zeros((64, 512), dtype=np.float32))[0].shape == (64, 512)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        unequal_pair.compile_model(matmuls(1), "AUTOPLACE:XCPU,CPU", {"AUTOPLACE_POLICY": "nowhere"})


def test_a_stored_decision_is_not_used_for_another_policy(tmp_path: Path, unequal_pair: ov.Core) -> None:
    model, folder = matmuls(1), tmp_path / "net"

    def key(policy: str | None) -> str:
        options = PlacerOptions(policy=policy, properties={"CACHE_DIR": str(tmp_path)})
        return DecisionCache.of(unequal_pair, model, ["XCPU", "CPU"], options).path.name

    handmade(folder)
    first = key(str(folder))
    assert key(str(folder)) == first
    assert key("none") != first
    handmade(folder, 1.0)  # tuned in place
    assert key(str(folder)) != first


def test_the_commands_take_a_policy_and_say_who_proposed_what_was_chosen(
    cli: Command, small_ir: Path, fastest: Path
) -> None:
    quick = ("-d", "XCPU,CPU", "--mode", "zero-shot", "--json")
    report = cli("annotate", small_ir, *quick, "--policy", fastest).json()
    asked = proposers_of(report)
    assert "policy" in asked
    (small_ir.parent / "net.autoplace.xml").unlink()
    report = cli("explain", small_ir, *quick, "--policy", fastest).json()
    assert report["chosen"] in asked
    text = cli("explain", small_ir, *quick[:-1], "--policy", fastest).out
    assert f"chosen: {report['chosen']}" in text
    report = cli("annotate", small_ir, *quick, "--policy", "none").json()
    assert "policy" not in proposers_of(report)
    outcome = cli("annotate", small_ir, *quick, "--policy", small_ir.parent)
    assert outcome.code == 2
    assert "is not a policy checkpoint: it holds no card.json" in outcome.err
