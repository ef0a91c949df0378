"""What every kind of plan can do: be named, compared, written and read, refused, and compiled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.joint import EVERY_KIND, JointPlan, Part
from ov_autoplace.plan.lane import Form, Lane
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import (
    LanePlan,
    Plan,
    PoolPlan,
    SplitPlan,
    WholePlan,
    plan_of_groups,
    read_plan,
)

OPS = ("x", "left", "right", "y")
DEVICE_OF = {"x": "GPU", "left": "GPU", "right": "CPU", "y": "CPU"}
CALLER = WholePlan("CPU", Width(1, in_caller=True))
SPLIT = SplitPlan.of(DEVICE_OF)
LANES = LanePlan(
    (Lane("CPU"), Lane("CPU", (("NUM_STREAMS", "1"),)), Lane("GPU")),
    {"left": 0, "right": 1},
    (0, 2),
    (1, 0),
    {"left": Form(bf16=True)},
)
PARTS = (Part("det", CALLER, 2, "00ff", "det.xml", {"PERF_COUNT": "YES"}, (0,)), Part("cls", SPLIT))
JOINT = JointPlan("det: 1 thread, cls: split", PARTS, machine=("OpenVINO 2026", "2 CPUs"), processors=(0, 1))
PLANS: dict[str, Plan] = {
    "device": WholePlan("GPU"),
    "width": CALLER,
    "hint": WholePlan("AUTO:GPU,CPU", properties={"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT"}),
    "split": SPLIT,
    "split with properties": SplitPlan.of(DEVICE_OF, {"DEVICE_PROPERTIES": "{GPU:{A:b}}"}),
    "lanes": LANES,
    "pool": PoolPlan("2 x CPU", WholePlan("CPU"), (CALLER, CALLER), requests=2),
    "mixture": PoolPlan("mixture", WholePlan("GPU"), (SPLIT, CALLER), 3, (0, 1, 1)),
    "joint": JOINT,
}
every_plan = pytest.mark.parametrize("name", PLANS)


def test_there_is_one_of_every_kind() -> None:
    assert {plan.kind for plan in PLANS.values()} == set(EVERY_KIND)


@every_plan
def test_it_is_read_as_it_was_written(name: str) -> None:
    plan = PLANS[name]
    again = read_plan(json.loads(json.dumps(plan.to_json())), kinds=EVERY_KIND)
    assert type(again) is type(plan)
    assert again == plan
    assert hash(again) == hash(plan)
    assert again.to_json() == plan.to_json()
    assert (again.name, again.devices, again.width, again.lane_count) == (
        plan.name,
        plan.devices,
        plan.width,
        plan.lane_count,
    )


def test_no_two_are_equal() -> None:
    assert len(set(PLANS.values())) == len(PLANS)


@every_plan
def test_it_is_for_its_devices_alone(name: str) -> None:
    plan = PLANS[name]
    plan.check_fits(plan.devices, OPS)
    with pytest.raises(PlacementError, match="it runs on"):
        plan.check_fits(plan.devices[1:], OPS)


@pytest.mark.parametrize("name", ["split", "split with properties", "lanes", "mixture"])
def test_it_is_for_its_ops_alone(name: str) -> None:
    with pytest.raises(PlacementError, match="it is for other ops, such as 'right'"):
        PLANS[name].check_fits(("GPU", "CPU"), ("x", "left", "y"))


class Recorder:
    """Compiles nothing, and says what it was asked for."""

    def compile_whole(self, plan: WholePlan) -> Any:
        return "whole", plan

    def compile_split(self, plan: SplitPlan) -> Any:
        return "split", plan

    def compile_lanes(self, plan: LanePlan) -> Any:
        return "lanes", plan

    def compile_pool(self, plan: PoolPlan) -> Any:
        return "pool", plan


@every_plan
def test_it_tells_what_it_is_compiled_as(name: str) -> None:
    plan = PLANS[name]
    if isinstance(plan, JointPlan):
        with pytest.raises(PlacementError, match="several models"):
            plan.compile(Recorder())
    else:
        assert plan.compile(Recorder()) == (plan.kind, plan)


@every_plan
def test_only_a_device_as_openvino_runs_it_needs_no_proof(name: str) -> None:
    assert PLANS[name].is_default is (name == "device")


def test_names_say_what_runs() -> None:
    named = {name: plan.name for name, plan in PLANS.items()}
    assert named["width"] == "CPU (1 thread, the caller's)"
    assert named["split"] == "GPU + CPU"
    assert named["lanes"] == "CPU (2 lanes) + GPU"


def test_only_one_compiled_model_can_be_measured_as_one() -> None:
    assert SPLIT.one_model is SPLIT
    with pytest.raises(PlacementError, match="2 x CPU is more than one compiled model"):
        _ = PLANS["pool"].one_model


def test_what_the_same_code_computes_is_told_by_what_the_device_is() -> None:
    makes = {"CPU": "a processor", "XCPU": "a processor"}
    alike = {plan.computes_like(makes) for plan in (CALLER, WholePlan("CPU"), WholePlan("XCPU"))}
    assert alike == {"a processor"}
    assert SPLIT.computes_like(makes) not in alike


def test_groups_on_one_device_are_that_device() -> None:
    placement = Placement.from_dict({"a": "CPU", "b": "CPU"})
    assert placement.plan == WholePlan("CPU")
    assert Placement.from_dict(DEVICE_OF).plan == SPLIT
    grouped = plan_of_groups(
        ("GPU", "CPU"), ("g", "h"), SPLIT.assignment[1:3], (("x", "left"), ("right", "y"))
    )
    assert isinstance(grouped, SplitPlan)
    assert grouped.device_of == DEVICE_OF


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("device", {"kind": "half"}),
        ("device", {"kind": 3}),
        ("device", {"version": 2}),
        ("device", {"schema": "another"}),
        ("device", {"device": ""}),
        ("device", {"device": "CPU\n"}),
        ("width", {"width": "one"}),
        ("width", {"width": 1}),
        ("hint", {"properties": {"": "1"}}),
        ("hint", {"properties": {"A": "\ud800"}}),
        ("split", {"device_of": {"x": "CPU"}}),
        ("split", {"device_of": {"x": "CPU", "y": 1}}),
        ("pool", {"base": {"kind": "pool"}}),
        ("pool", {"requests": 0}),
        ("pool", {"turns": [2]}),
        ("pool", {"members": "CPU"}),
        ("joint", {"parts": []}),
        ("joint", {"parts": [{"name": "det"}]}),
        ("joint", {"parts": JOINT.fields()["parts"][:1] * 2}),
        ("joint", {"parts": [{**JOINT.fields()["parts"][0], "plan": JOINT.to_json()}]}),
        ("joint", {"machine": "this one"}),
        ("joint", {"in_turn": 2}),
    ],
)
def test_what_is_none_is_refused_in_one_sentence(name: str, change: dict[str, Any]) -> None:
    with pytest.raises(PlacementError) as refusal:
        read_plan({**PLANS[name].to_json(), **change}, kinds=EVERY_KIND)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("data", [None, [], "plan", 3, {}])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(PlacementError):
        read_plan(data)
