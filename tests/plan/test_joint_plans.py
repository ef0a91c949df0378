"""Plans of several models: how their parts are found, and for which machine they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.joint import EVERY_KIND, JointPlan, Part, read_joint_plan
from ov_autoplace.plan.plan import PoolPlan, WholePlan, read_plan

ONE = WholePlan("CPU", Width(1, in_caller=True))
TWO = WholePlan("CPU", Width(2))
HINT = WholePlan("CPU", properties={"PERFORMANCE_HINT": "THROUGHPUT"})
MACHINE = ("OpenVINO 2026", "CPU: EPYC", "2 of 2 processors")

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
plans = st.sampled_from([ONE, TWO, HINT, WholePlan("GPU"), PoolPlan("2 x", ONE, (ONE, ONE), 2)])
parts = st.builds(
    Part,
    texts,
    plans,
    st.integers(1, 1000),
    texts,
    texts,
    st.dictionaries(texts, texts, max_size=2),
    st.lists(st.integers(0, 1000), max_size=3).map(tuple),
)
joint_plans = st.builds(
    JointPlan,
    texts,
    st.lists(parts, min_size=1, max_size=4, unique_by=lambda part: part.name).map(tuple),
    st.booleans(),
    st.lists(texts, max_size=3).map(tuple),
    st.lists(st.integers(0, 1000), max_size=3).map(tuple),
)


@given(joint_plans)
def test_all_of_it_is_read_as_it_was_written(plan: JointPlan) -> None:
    again = read_plan(json.loads(json.dumps(plan.to_json())), kinds=EVERY_KIND)
    assert isinstance(again, JointPlan)
    assert again == plan
    assert {**vars(again), "parts": ()} == {**vars(plan), "parts": ()}
    assert [vars(part) for part in again.parts] == [vars(part) for part in plan.parts]


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"plan": TWO},
        {"callers": 2},
        {"digest": "ff"},
        {"properties": {"A": "b"}},
        {"cores": (1,)},
    ],
)
def test_plans_with_another_part_are_others(change: dict[str, Any]) -> None:
    part = Part("det", ONE, 1, "00")
    assert JointPlan("a", (part,)) != JointPlan("a", (replace(part, **change),))
    assert JointPlan("a", (part,)) == JointPlan("another name", (replace(part, source="moved.xml"),))


def test_parts_are_found_by_name_and_by_content() -> None:
    plan = JointPlan("a", (Part("det", ONE, digest="00"), Part("cls", TWO, digest="11")))
    assert plan.part("cls") is plan.part_of("11") is plan.parts[1]
    with pytest.raises(PlacementError, match=r"'clss'.*'cls'"):
        plan.part("clss")
    with pytest.raises(PlacementError, match="other models: det, cls"):
        plan.part_of("22")


@pytest.mark.parametrize(
    ("change", "is_clear"),
    [
        ({}, True),
        ({"callers": 3}, True),
        ({"plan": WholePlan("CPU", Width(1, in_caller=True))}, True),
        ({"plan": TWO}, False),
        ({"properties": {"INFERENCE_PRECISION_HINT": "f32"}}, False),
    ],
)
def test_the_same_model_twice_is_one_part_where_it_is_compiled_alike(
    change: dict[str, Any], is_clear: bool
) -> None:
    first = Part("left", ONE, digest="00")
    plan = JointPlan("a", (first, replace(first, name="right", **change)))
    if is_clear:
        assert plan.part_of("00").plan == ONE
        return
    with pytest.raises(PlacementError, match="left, right"):
        plan.part_of("00")


def test_a_plan_is_for_its_machine() -> None:
    plan = JointPlan("a", (Part("det", ONE),), machine=MACHINE)
    plan.check_machine(MACHINE)
    plan.check_machine(MACHINE[::-1])
    JointPlan("a", (Part("det", ONE),)).check_machine(())
    for here in ((*MACHINE[:2], "8 of 8 processors"), MACHINE[:2]):
        with pytest.raises(PlacementError, match="2 of 2 processors") as refusal:
            plan.check_machine(here)
        assert "\n" not in str(refusal.value)
        assert all(line in str(refusal.value) for line in here if line not in MACHINE)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"schema": "other"}', json.dumps(ONE.to_json())],
    ids=["nothing", "half", "a list", "another schema", "one model"],
)
def test_a_file_that_is_none_is_one_sentence_with_its_name(content: str, tmp_path: Path) -> None:
    path = tmp_path / "net.plan.json"
    path.write_text(content)
    with pytest.raises(PlacementError, match=r"net\.plan\.json") as refusal:
        read_joint_plan(path)
    assert "\n" not in str(refusal.value)
    path.unlink()
    with pytest.raises(PlacementError, match=r"net\.plan\.json"):
        read_joint_plan(path)
