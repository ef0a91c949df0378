"""Models and plans that cannot run on lanes are refused, in one sentence that says why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from lane_models import adding, by_name, sizes_that_clash, towers, typed
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.schedulable import reason_not_schedulable
from ov_autoplace.plan.scheduled import scheduled_model


def cycle() -> tuple[ov.Model, LanePlan]:
    x = ops.parameter([2], np.float32, name="x")
    value: ov.Node = x
    for i, submodel in enumerate((0, 1, 0)):
        value = ops.relu(value, name=f"{submodel}/relu{i}")
    model = ov.Model([ops.result(value)], [x], "cycle")
    return model, by_name(model, (0, 1))


def unknown_op() -> tuple[ov.Model, LanePlan]:
    model = towers()
    plan = by_name(model, (0, 1, 0))
    return model, LanePlan(plan.lanes, {**plan.submodel_of, "elsewhere": 0}, plan.lane_of, plan.rank)


def forgotten_op() -> tuple[ov.Model, LanePlan]:
    model = towers()
    plan = by_name(model, (0, 1, 0))
    ops_left = {op: s for op, s in plan.submodel_of.items() if op != "2/sum"}
    return model, LanePlan(plan.lanes, ops_left, plan.lane_of, plan.rank)


def scheduled_already() -> tuple[ov.Model, LanePlan]:
    model = towers()
    scheduled = scheduled_model(model, by_name(model, (0, 1, 0)))
    return scheduled, LanePlan((Lane.of("CPU"),), {"autoplace/schedule": 0}, (0,), (0,))


class Doubling(ov.Op):
    """An op of the caller's own."""

    def __init__(self, inputs: list[ov.Output] | None = None) -> None:
        super().__init__(self, inputs)

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))


def custom() -> tuple[ov.Model, LanePlan]:
    x = ops.parameter([2], np.float32, name="x")
    own = Doubling([x.output(0)])
    own.set_friendly_name("0/own")
    model = ov.Model([ops.result(own)], [x], "custom")
    return model, by_name(model, (0,))


def strings() -> tuple[ov.Model, LanePlan]:
    x, i = ops.parameter([3], ov.Type.string, name="x"), ops.parameter([1], np.int64, name="i")
    read = ops.gather(x, i, ops.constant(np.int64(0)), name="0/read")
    model = ov.Model([ops.result(read)], [x, i], "strings")
    return model, by_name(model, (0,))


def choice_of_unknown_shape() -> tuple[ov.Model, LanePlan]:
    x = ops.parameter(ov.PartialShape([-1]), np.float32, name="x")
    inner = [ops.parameter(ov.PartialShape([-1]), np.float32) for _ in range(2)]
    condition = ops.greater(ops.reduce_sum(x, ops.constant([0]), name="0/total"), np.float32(0), name="0/is")
    choice = ops.if_op(condition)
    choice.set_friendly_name("0/choice")
    bodies = [
        ov.Model([ops.result(op(i))], [i], "body") for op, i in zip((ops.relu, ops.tanh), inner, strict=True)
    ]
    choice.set_then_body(bodies[0])
    choice.set_else_body(bodies[1])
    choice.set_input(x.output(0), *inner)
    output = choice.set_output(bodies[0].results[0], bodies[1].results[0])
    model = ov.Model([ops.result(output)], [x], "choice")
    return model, by_name(model, (0,))


REFUSED: dict[str, tuple[Callable[[], tuple[ov.Model, LanePlan]], str]] = {
    "submodels that wait for each other": (cycle, "'0/relu0' and '1/relu1'.* all that lies between"),
    "an op that is not there": (unknown_op, "'elsewhere'; was the plan made for another model"),
    "an op that was left out": (forgotten_op, "'2/sum'; a plan names one for each"),
    "a model with a schedule": (scheduled_already, "has a schedule already"),
    "an op of the caller's own": (custom, "'0/own' is a Doubling"),
    "texts": (strings, "Parameter 'x', whose type string cannot be passed"),
    "an If of unknown shape": (choice_of_unknown_shape, "If '0/choice' makes is not known"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_run_on_lanes_is_refused_in_one_sentence(case: str) -> None:
    make, sentence = REFUSED[case]
    model, plan = make()
    with pytest.raises(PlacementError, match=sentence) as failure:
        scheduled_model(model, plan)
    assert "\n" not in str(failure.value)


def test_some_reasons_are_known_before_there_is_a_plan() -> None:
    for make in (scheduled_already, custom, strings, choice_of_unknown_shape):
        assert reason_not_schedulable(make()[0]) is not None
    for model in (towers(), adding(), sizes_that_clash(), typed(ov.Type.i64)):
        assert reason_not_schedulable(model) is None
