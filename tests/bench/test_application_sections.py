"""The sections of several models: bars from figures that are made up, and pieces that run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino.op.util import Variable, VariableInfo

from harness.applications import DEFAULT, of_settings
from ov_autoplace.application.race import Result
from ov_autoplace.application.workload import Demand
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.measure.workload import Outcome
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.joint import JointPlan, Part
from ov_autoplace.plan.plan import WholePlan
from problems.xrbench import SCENARIOS, build, layers, macs, scenario
from sections import application_predictions, application_processes, application_rates, language_model
from sections import xrbench as xrbench_section


def test_rates_of_two_processes_count_relative_to_the_default_alone() -> None:
    rates = {
        # Alone, the second model is a hundred times faster.
        "alone": [[10.0] * 6, [1000.0] * 6],
        "plan": [[9.0] * 6, [900.0] * 6],
        DEFAULT: [[4.0] * 6, [500.0] * 6],
        "one thread each": [[9.0] * 6, [1100.0] * 6],
    }
    found = {"a pair": {"chosen": "a plan", "decision_seconds": 2.0, "rates": rates}}
    result = application_processes.result_of(found, ["another: it failed"])
    (row,) = result.tables[0].rows
    assert row[2:6] == ("2.00 [2.00, 2.00]", "2.25, 1.80", "0.90 [0.90, 0.90]", "1.00, 0.82")
    assert row[6] == "1.80, 0.90, 2.00"
    assert {case.rival: case.ratio for case in result.winning} == {DEFAULT: 0.5}
    assert [case.rival for case in result.losing] == ["one thread each"]
    assert result.remarks == ("another: it failed",)
    assert [(claim.reached, claim.holds) for claim in result.claims] == [(0.5, True)]


@pytest.mark.alone
@pytest.mark.skipif(Cores.of_this_process().usable < 2, reason="two models need a core each")
def test_a_pair_is_decided_and_its_programs_run_on_cores_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"_ROUNDS": 2, "_SECONDS": 0.02, "_REQUESTS": 1}.items():
        monkeypatch.setattr(application_processes, name, value)
    found = application_processes.decide_and_run("two of 0.1 ms", seed=0, starts=1)
    assert found["rates"].keys() == {"plan", DEFAULT, "one thread each", "alone"}
    assert np.shape(list(found["rates"].values())) == (4, 2, 2)
    assert np.min(list(found["rates"].values())) > 0


def test_random_plans_are_predicted_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_predictions, "_ROUNDS", 1)
    found = application_predictions.predict_and_run("two of 0.1 ms", seed=0, count=2)
    assert len(set(found["plans"])) == 2
    for what in ("predicted", "measured"):
        # Of two models with equal weight, the mean of the seconds is the geometric one.
        rates = found["rates" if what == "predicted" else "measured rates"]
        np.testing.assert_allclose(found[what], 1 / np.sqrt(np.prod(rates, axis=1)))


def small_decoder(*_: object) -> ov.Model:
    """What a decoder of optimum-intel takes and keeps: every token is added to a state."""
    shapes = {"input_ids": [1, -1], "attention_mask": [1, -1], "position_ids": [1, -1], "beam_idx": [-1]}
    inputs = {
        name: ops.parameter(shape, np.int32 if name == "beam_idx" else np.int64, name=name)
        for name, shape in shapes.items()
    }
    for name, node in inputs.items():
        node.output(0).get_tensor().set_names({name})
    info = VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape([1, -1]), ov.Type.f32, "past"
    past = Variable(info)
    before = ops.gather(
        ops.read_value(np.zeros((1, 0), np.float32), past), inputs["beam_idx"], ops.constant(0, np.int64)
    )
    now = ops.add(inputs["input_ids"], inputs["position_ids"])
    whole = ops.concat([before, ops.convert(now, "f32")], 1)
    kept = ops.multiply(whole, ops.convert(inputs["attention_mask"], "f32"))
    result = ops.result(ops.reduce_sum(kept, ops.constant(1, np.int64)))
    return ov.Model([result], [ops.assign(whole, past)], list(inputs.values()))


@pytest.mark.alone
def test_a_decoder_answers_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "exported", small_decoder)
    monkeypatch.setattr(language_model, "_ROUNDS", 2)
    found = language_model.decide_and_run("llama 4 x 128", seed=0, starts=1, prompt=6, tokens=3)
    assert np.shape(list(found["seconds"].values())) == (2, 2, 2)
    # The state is empty again before each prompt, and grows by every token: 1 + position, 9 of them.
    request = ov.Core().compile_model(small_decoder(), "CPU").create_infer_request()
    for _ in range(2):
        language_model.answer(request, prompt=6, tokens=3)
    assert request.get_output_tensor().data == pytest.approx(sum(range(1, 10)))


def test_phases_of_a_decoder_are_compared_in_the_same_rounds() -> None:
    seconds = {"AUTOPLACE:CPU": [[0.02, 0.05]] * 6, "CPU": [[0.01, 0.09]] * 6}
    found = {"llama": {"threads": [1, 1], "decision_seconds": [3.0], "seconds": seconds}}
    result = language_model.result_of(found, 10, [])
    (row,) = result.tables[0].rows
    assert [cell.split(" ")[0] for cell in row[1:5]] == ["1", "0.700", "2.000", "0.556"]
    assert row[5] == "10.00, 9.000"
    assert [case.ratio for case in result.winning] == pytest.approx([0.7])
    assert [claim.holds for claim in result.claims] == [True]
    assert result.remarks[0].endswith("llama, whole answer; llama, decode")


@pytest.mark.parametrize(
    ("name", "count", "gigas"),
    [("ES_RITNet", 42, 1.085), ("AS_ED_TCN", 4, 0.372), ("KD_res8_narrow", 8, 0.00676)],
)
def test_networks_of_layer_lists_multiply_as_often_as_the_lists_say(
    name: str, count: int, gigas: float
) -> None:
    convolutions = [op for op in build(name).get_ops() if op.get_type_name() == "Convolution"]
    assert len(convolutions) == len(layers(name)) == count
    found = 0
    for op in convolutions:
        weights, pixels = op.input(1).get_shape(), op.output(0).get_shape()[2:]
        found += int(np.prod(weights) * np.prod(pixels))
    assert found == macs(name) == pytest.approx(gigas * 1e9, rel=2e-3)


def test_scenarios_ask_for_the_work_that_the_lists_say() -> None:
    asked = {
        name: sum(macs(network) * frames * (follows[1:] or [1])[0] for network, frames, *follows in rows)
        for name, rows in SCENARIOS.items()
    }
    assert {name: round(work / 1e9) for name, work in asked.items()} == {
        "VR gaming": 678,
        "AR gaming": 1454,
        "AR assistant": 1694,
        "social interaction A": 1187,
        "social interaction B": 501,
        "outdoor activity A": 707,
        "outdoor activity B": 436,
    }
    application = scenario("outdoor activity B", 16, 2.0)
    by_name = {demand.start: (demand.rate, demand.deadline_seconds) for demand in application.load}
    assert by_name["KD_res8_narrow"] == pytest.approx((1.5, 2 / 3))
    assert by_name["OD_D2go_FasterRCNN"] == pytest.approx((15, 2 / 30))
    (chain,) = application.chains
    assert (chain.source, chain.target, chain.times) == ("KD_res8_narrow", "ASR_EM_24L", 0.2)


def test_the_score_is_the_share_in_time_times_the_share_that_was_not_dropped() -> None:
    latencies = (np.array([5e-3, 15e-3, np.inf]), np.array([9e-3, 10e-3]))
    ran = Result([Outcome(np.ones(2), latencies, np.ones(2), np.ones(2), 1.0)])
    load = [Demand(name, rate=1.0, deadline_seconds=10e-3) for name in "ab"]
    assert xrbench_section.score(load, ran) == pytest.approx((1 / 3 * 2 / 3 + (1 + 1 / 2) / 2) / 2, rel=1e-5)


def test_a_plan_that_is_not_proposed_again_is_made_of_the_ways_its_models_run() -> None:
    plans = [WholePlan("CPU"), WholePlan("CPU", Width(1))]
    models: Any = [
        SimpleNamespace(name=name, settings=[Candidate(p.name, p) for p in plans]) for name in "ab"
    ]
    plan = JointPlan("reversed", (Part("b", plans[0]), Part("a", plans[1])))
    found = of_settings(plan, models)
    assert found.plan == plan
    assert found.settings == (models[0].settings[1], models[1].settings[0])


def test_headrooms_are_compared_with_the_best_of_openvinos() -> None:
    levels = {DEFAULT: 0.5, "no pinning": 2.0, "one thread each": 4.0, "ours": 3.0}
    one = {"chosen": "ours", "decision_seconds": 1.0, "headrooms": levels}
    late = one | {"headrooms": dict.fromkeys(levels, 0.0), "scores": dict.fromkeys(levels, 0.25)}
    result = application_rates.result_of({"in time": one}, [], "", 1.3)
    assert result.tables[0].rows[0][2:5] == ("3.00", "no pinning", "1.50")
    assert [(claim.reached, claim.holds) for claim in result.claims] == [(pytest.approx(1 / 1.5), True)]
    result = application_rates.result_of({"late": late}, [], "")
    assert result.tables[0].rows[0][2:5] == ("0.00", DEFAULT, "1.00")
    assert "0.25, 0.25" in result.tables[0].rows[0]
