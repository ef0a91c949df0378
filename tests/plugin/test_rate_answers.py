"""Models compiled for many requests in flight: plans, requests that are dealt out, what is kept in a
cache."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from candidates import FOUND
from ov_autoplace._base.releases import facts
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.widths import Width
from ov_autoplace.plan.decision import Decision
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import Plan, PoolPlan, SplitPlan, WholePlan
from ov_autoplace.plugin.compilation import _Compiler, compile_placed
from ov_autoplace.plugin.dealing import DealingModel

pytestmark = pytest.mark.alone

CALLER = WholePlan("CPU", Width(1, in_caller=True))
THROUGHPUT = {"PERFORMANCE_HINT": "THROUGHPUT"}
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
HINTED = WholePlan("CPU", properties=THROUGHPUT)
COPIES = PoolPlan("2 x CPU", CALLER, (CALLER, CALLER), requests=2)


@functools.cache
def _two_outputs() -> ov.Model:
    width = 16
    random = np.random.default_rng(0)
    x = ops.parameter([1, width], np.float32, name="x")
    y = ops.matmul(x, ops.constant(random.normal(size=(width, width)).astype(np.float32)), False, False)
    second = ops.sigmoid(y)
    second.output(0).set_names({"second"})
    return ov.Model([ops.result(ops.relu(y), name="first"), ops.result(second, name="last")], [x], "two")


def two_outputs() -> ov.Model:
    return _two_outputs().clone()  # with the same names every time


def compiled_by(plan: PoolPlan, core: ov.Core | None = None, **properties: str) -> ov.CompiledModel:
    core = core or ov.Core()
    options = PlacerOptions(properties={**THROUGHPUT, **EXACT, **properties})
    model = two_outputs()

    def search(machine: Machine, model: ov.Model) -> Placement:
        names = [op.get_friendly_name() for op in model.get_ordered_ops()]
        return replace(Placement.from_dict(dict.fromkeys(names, "CPU")), plan=plan)

    return compile_placed(Machine(core, ("CPU",), options), model, core.compile_model, search=search)


def test_a_plan_of_one_model_is_that_model() -> None:
    compiled = compiled_by(PoolPlan("CPU THROUGHPUT", HINTED))
    assert not isinstance(compiled, DealingModel)
    assert str(compiled.get_property("PERFORMANCE_HINT")).endswith("THROUGHPUT")


def test_requests_take_turns_and_the_first_copy_is_the_base() -> None:
    core, made = ov.Core(), []

    class Counting:
        def __init__(self, compiled: ov.CompiledModel) -> None:
            self.compiled, self.requests = compiled, 0

        def create_infer_request(self) -> ov.InferRequest:
            self.requests += 1
            return self.compiled.create_infer_request()

    compiled = core.compile_model(two_outputs(), "CPU")
    members = [Counting(compiled), Counting(compiled)]
    dealing = DealingModel(compiled, members, (0, 1, 1), 3)
    requests = [dealing.create_infer_request() for _ in range(7)]
    assert len(requests) == 7
    assert [member.requests for member in members] == [3, 4]

    options = PlacerOptions(properties=THROUGHPUT)

    def compile_native(*arguments: object) -> ov.CompiledModel:
        made.append(arguments)
        return core.compile_model(*arguments)

    placed = Placement.from_dict({op.get_friendly_name(): "CPU" for op in two_outputs().get_ops()})
    compile_placed(
        Machine(core, ("CPU",), options),
        two_outputs(),
        compile_native,
        search=lambda *_: replace(placed, plan=COPIES),
    )
    assert len(made) == 2  # two copies, of which one is the base
    assert all("PERFORMANCE_HINT" not in config for _, _, config in made)


def test_a_pipeline_is_not_taken_from_the_blob_of_one_with_other_properties(unequal_pair, tmp_path) -> None:
    names = [op.get_friendly_name() for op in two_outputs().get_ordered_ops()]
    device_of = {name: "CPU" if i > len(names) // 2 else "XCPU" for i, name in enumerate(names)}
    machine = Machine(unequal_pair, ("XCPU", "CPU"), PlacerOptions(properties=THROUGHPUT))
    unequal_pair.set_property({"CACHE_DIR": str(tmp_path)})
    for streams in (1, 2):
        own = f"{{XCPU:{{NUM_STREAMS:{streams}}},CPU:{{NUM_STREAMS:{streams}}}}}"
        plan = PoolPlan("pipeline", SplitPlan.of(device_of, {"DEVICE_PROPERTIES": own}))
        plan.compile(_Compiler(machine, two_outputs(), unequal_pair.compile_model))
    assert len(list(tmp_path.glob("*.blob"))) == (2 if facts().imports_mixes else 0)


@pytest.mark.parametrize("plan", [COPIES, CALLER], ids=["copies", "one model"])
@pytest.mark.parametrize(
    ("answer", "searches", "mark"), [(True, 0, False), (None, 0, True), (False, 1, False)]
)
def test_a_plan_from_a_busy_machine_is_checked_at_the_next_compile(
    plan, answer, searches, mark, tmp_path
) -> None:
    core, searched, checked = ov.Core(), [], []
    machine = Machine(
        core, ("CPU",), PlacerOptions(properties={**THROUGHPUT, **EXACT, "CACHE_DIR": str(tmp_path)})
    )

    def search(disturbed: bool) -> Callable[[Machine, ov.Model], Placement]:
        decision = Decision(plan.name, FOUND, "PROFILE", (), {}, disturbed=disturbed)

        def found(_: Machine, model: ov.Model) -> Placement:
            searched.append(model)
            names = [op.get_friendly_name() for op in model.get_ordered_ops()]
            return replace(Placement.from_dict(dict.fromkeys(names, "CPU")), plan=plan, decision=decision)

        return found

    def confirm(_: Machine, __: ov.Model, stored: Plan) -> bool | None:
        checked.append(stored)
        return answer

    def mark_of_entry() -> bool:
        (entry,) = tmp_path.glob("autoplace-*.json")
        return json.loads(entry.read_text())["disturbed"]

    compile_placed(machine, two_outputs(), core.compile_model, search=search(True), confirm=confirm)
    assert mark_of_entry() is True
    assert (len(searched), checked) == (1, [])
    compile_placed(machine, two_outputs(), core.compile_model, search=search(False), confirm=confirm)
    assert (len(searched), checked) == (1 + searches, [plan])
    assert mark_of_entry() is mark
    compile_placed(machine, two_outputs(), core.compile_model, search=search(False), confirm=confirm)
    assert len(checked) == 1 + mark  # what is settled is not checked again
