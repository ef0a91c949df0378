"""What estimates leave nothing to measure of: what surely gains on fewer threads, and what cannot gain."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from command_line import two_layers
from ov_autoplace.cost.estimate import Estimate
from ov_autoplace.cost.table import ANALYTIC, LEARNED
from ov_autoplace.decide import outlook
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.outlook import Outlook, settled
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.findings import Kind
from ov_autoplace.plan.plan import WholePlan

ONE_THREAD = WholePlan("CPU", Width(1))


@pytest.fixture(autouse=True)
def _chain(two_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, and a model that lanes cannot run faster."""
    monkeypatch.setattr(outlook, "is_worth_dividing", lambda *_: False)


@pytest.fixture
def estimated(monkeypatch: pytest.MonkeyPatch) -> object:
    """Sets what a model is estimated to take on one thread, over what it takes on two."""

    def say(share: float, doubt: float = 1.1, source: str = LEARNED) -> None:
        def estimates(graph: object, devices: object) -> list[Estimate]:
            return [Estimate(np.array([t]), 10, t, doubt, source) for t in (1e-4, share * 1e-4)]

        monkeypatch.setattr(outlook, "estimates", estimates)

    return say


@pytest.fixture
def never_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProfilingSession, "__init__", lambda *_, **__: pytest.fail("it was measured"))


def plan_of(model: ov.Model | None = None, **options: object) -> WholePlan | None:
    """What is settled for a model on a CPU."""
    machine = Machine(ov.Core(), ("CPU",), PlacerOptions.from_arguments(options))
    verdict = settled(machine, prepare(model or two_layers([1, 3, 16, 16])).model)
    return None if verdict is None else verdict.winner.plan


def products() -> ov.Model:
    """Products of two computed matrices, whose merging could end the process that compiles them."""
    x = ops.parameter([4, 4], np.float32)
    left, right = (ops.matmul(x, ops.constant(np.eye(4, dtype=np.float32)), False, False) for _ in range(2))
    return ov.Model([ops.result(ops.matmul(left, right, False, False))], [x], "products")


@pytest.mark.parametrize(
    ("share", "plan"),
    [(0.4, ONE_THREAD), (0.69, ONE_THREAD), (0.71, None), (1.1, None), (1.3, WholePlan("CPU"))],
)
def test_only_what_is_expected_near_the_default_is_measured(estimated, share, plan):
    estimated(share)
    assert plan_of() == plan


def test_what_is_sure_says_so_and_is_compiled_as_it_is(estimated, never_measured):
    estimated(0.5)
    placement = ov_autoplace.place(two_layers([1, 3, 16, 16]), "CPU")
    assert placement.plan == ONE_THREAD
    assert set(placement.to_dict().values()) == {"CPU"}
    assert placement.decision.kind is Kind.SURELY_FASTER
    assert placement.decision.findings[0].numbers["ratio"] == pytest.approx(0.5)

    compiled = ov.Core().compile_model(two_layers([1, 3, 16, 16]), "AUTOPLACE:CPU")
    assert compiled.get_property("INFERENCE_NUM_THREADS") == 1
    assert compiled.get_property("AUTOPLACE_DECISION") == str(placement.decision)


@pytest.mark.parametrize("decide", ["NOW", "BEHIND"])
def test_it_is_kept_and_nobody_decides_behind(estimated, never_measured, tmp_path: Path, decide):
    estimated(0.5)
    settings = {"AUTOPLACE_DECIDE": decide, "CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        compiled = ov.Core().compile_model(two_layers([1, 3, 16, 16]), "AUTOPLACE:CPU", settings)
        assert compiled.get_property("INFERENCE_NUM_THREADS") == 1
    (entry,) = tmp_path.rglob("*.json")
    kept = json.loads(entry.read_text(encoding="utf-8"))
    assert "is estimated to take 0.50 of the time of CPU" in kept["decision"]
    assert not kept["disturbed"]


def test_an_estimate_needs_no_time(estimated, never_measured):
    estimated(0.5)
    settings = {"AUTOPLACE_TIME_BUDGET_MS": 0, "AUTOPLACE_CACHE": "NO"}
    compiled = ov.Core().compile_model(two_layers([1, 3, 16, 16]), "AUTOPLACE:CPU", settings)
    assert compiled.get_property("INFERENCE_NUM_THREADS") == 1


def test_who_doubts_or_did_not_learn_is_measured(estimated):
    for share, plan in ((0.5, None), (1.3, None), (1.6, WholePlan("CPU"))):
        estimated(share, doubt=1.3)
        assert plan_of() == plan
    estimated(0.1, source=ANALYTIC)
    assert plan_of() is None


@pytest.mark.parametrize(("threads", "plan"), [(2, ONE_THREAD), (16, None)])
def test_estimates_of_a_machine_with_other_cores_settle_nothing(estimated, monkeypatch, threads, plan):
    estimated(0.5)
    target = ov_autoplace.generic_target(ov.Core(), ("CPU",))
    device = replace(target.devices[0], threads=threads)
    monkeypatch.setattr(Machine, "target", replace(target, devices=(device,)))
    assert plan_of() == plan


@pytest.mark.parametrize(
    ("shares", "threads"), [((0.5, 0.4, 0.8), 2), ((0.3, 0.4, 0.8), 1), ((1.5, 0.9, 0.8), None)]
)
def test_of_many_widths_the_one_that_is_expected_to_be_fastest_is_taken(monkeypatch, shares, threads):
    target = ov_autoplace.generic_target(ov.Core(), ("CPU",))
    sixteen = replace(target, devices=(replace(target.devices[0], threads=16),))
    monkeypatch.setattr(outlook, "generic_target", lambda *_: sixteen)
    monkeypatch.setattr(Machine, "widths", lambda *_, **__: (Width(1), Width(2), Width(8)))
    found = [Estimate(np.array([t]), 10, t, 1.1, LEARNED) for t in (1e-4, *(1e-4 * s for s in shares))]
    monkeypatch.setattr(outlook, "estimates", lambda *_: found)
    plan = plan_of()
    assert plan == (None if threads is None else WholePlan("CPU", Width(threads)))


@pytest.mark.parametrize("options", [{"mode": "TUNE"}, {"executor": "OVERLAP"}])
def test_who_asks_for_measurements_gets_them(estimated, options):
    estimated(0.5)
    assert plan_of(**options) is None


def test_lanes_that_could_be_faster_still_are_measured(estimated, monkeypatch):
    asked = []
    monkeypatch.setattr(outlook, "is_worth_dividing", lambda *given: asked.append(given[3:]) or True)
    estimated(0.5)
    assert plan_of() is None
    assert asked == [({1: pytest.approx(0.5)}, Width(1))]


def test_what_may_be_compiled_otherwise_in_a_process_of_its_own_is_measured(estimated):
    estimated(0.5)
    assert plan_of(products()) is None


def test_under_a_quota_of_processor_time_nothing_is_settled(estimated, monkeypatch):
    estimated(0.5)
    monkeypatch.setattr(Cores, "quota", Quota(1.0, 0.1))
    assert plan_of() is None


def test_what_the_user_sets_is_not_asked_about(estimated):
    estimated(0.5)
    assert plan_of(properties={"INFERENCE_NUM_THREADS": 2}) == WholePlan("CPU")


def test_shapes_of_several_calls_count_as_often_as_they_come(monkeypatch):
    found = iter([(1e-4, 0.2e-4), (1e-4, 1.8e-4)] * 2)

    def estimates(graph: object, devices: object) -> list[Estimate]:
        return [Estimate(np.array([t]), 1, t, 1.1, LEARNED) for t in next(found)]

    monkeypatch.setattr(outlook, "estimates", estimates)
    shapes = [{"shapes": {"image": [1, 3, 16, 16]}, "times": 3}, {"shapes": {"image": [1, 3, 8, 8]}}]
    machine = Machine(ov.Core(), ("CPU",), PlacerOptions.from_arguments({"shapes": shapes}))
    model = prepare(two_layers([1, 3, -1, -1]), machine.options.shapes).model
    assert Outlook.of(machine, "CPU", model).shares == {1: pytest.approx((3 * 0.2 + 1.8) / 4)}
