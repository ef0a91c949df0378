"""Models cut by random plans answer as on one device; ``tools/lane_checks.py`` does that with many more."""

from __future__ import annotations

from collections import Counter

import numpy as np
import openvino as ov
import pytest

import lane_checks
import zoo
from lane_models import quantized
from model_checks import inputs_in_range
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.schedulable import reason_not_schedulable
from random_dynamic_models import random_dynamic_model
from random_models import random_model


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return ov.Core()


@pytest.mark.seeds(zoo.NAMES, argument="name", cost=3)
def test_known_networks(core, name: str) -> None:
    outcomes = dict(lane_checks.check_model(core, zoo.build(name), {}, 1, 8_300))
    assert outcomes == {8_300: "same"}


@pytest.mark.seeds(8_400, 8_408, cost=6)
def test_random_static_networks(core, seed: int) -> None:
    model = random_model(seed, size=5 + 6 * (seed % 8), shared_constants=seed % 4, locality=2 + seed % 9)
    outcomes = dict(lane_checks.check_model(core, model, {}, 3, seed))
    assert set(outcomes.values()) == {"same"}


def test_random_dynamic_networks(core) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(8_500, 8_506):
        model, shapes = random_dynamic_model(seed)
        for number, outcome in lane_checks.check_model(core, model, shapes, 2, seed):
            kind = outcome.partition(":")[0]
            assert kind not in lane_checks.FAULTS, f"model {seed}, plan {number}: {outcome}"
            assert (kind == "refused") == (reason_not_schedulable(model) is not None) or kind == "no plan"
            outcomes[kind] += 1
    assert outcomes["same"] > 5


@pytest.mark.seeds(3)
def test_quantized_networks(core, seed: int) -> None:
    model = quantized(seed)
    steps = [inputs_in_range(model, {}, seed + step) for step in range(2)]
    for number in range(3):
        plan = lane_checks.plan_of_ops(model, 2, 4, seed * 10 + number)
        # Where a submodel ends beside a FakeQuantize, one step of 256 may be rounded the other way.
        assert lane_checks.check(core, model, plan, steps, tolerance=2e-2) == "same"


def test_a_state_that_grows_goes_on_for_200_steps(core) -> None:
    model = zoo.build("decoder")
    plan = lane_checks.plan_of_ops(model, 2, 3, 7)
    steps = [inputs_in_range(model, {}, step) for step in range(200)]
    assert lane_checks.check(core, model, plan, steps) == "same"


def test_a_cut_in_the_wrong_place_would_be_seen(core, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(8_600)
    plan = lane_checks.plan_of_ops(model, 2, 4, 8_600)
    inputs = [inputs_in_range(model, {}, 1)]
    scheduled_model = lane_checks.scheduled_model

    def other_weights(model: ov.Model, plan: LanePlan) -> ov.Model:
        changed = model.clone()
        for op in changed.get_ops():
            if op.get_type_name() == "Constant" and op.get_element_type() == ov.Type.f32:
                twin = ov.op.Constant(op.get_data() * np.float32(1.5))
                for reader in op.output(0).get_target_inputs():
                    reader.replace_source_output(twin.output(0))
                break
        return scheduled_model(changed, plan)

    monkeypatch.setattr(lane_checks, "scheduled_model", other_weights)
    assert lane_checks.check(core, model, plan, inputs).startswith("different")
