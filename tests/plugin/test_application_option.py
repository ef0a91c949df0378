"""A model that belongs to a plan of several is compiled as its part says, and nothing is decided."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from ov_autoplace import ApplicationPlan
from ov_autoplace.devices.conditions import machine_lines
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import AutoplaceError, OptionError, PlacementError
from ov_autoplace.graph.model_hash import model_hash
from ov_autoplace.graph.passes import NAMED, formed
from ov_autoplace.plan.joint import JointPlan, Part
from ov_autoplace.plan.plan import Plan, SplitPlan, WholePlan

CALLER = WholePlan("CPU", Width(1, in_caller=True))
RATE = WholePlan("CPU", properties={"PERFORMANCE_HINT": "THROUGHPUT"})
OPTION = "AUTOPLACE_APPLICATION"


def model(op: str) -> ov.Model:
    x = ops.parameter([1, 4], np.float32, name="x")
    return ov.Model([ops.result(getattr(ops, op)(x, name=op), name="y")], [x], op)


def part(name: str, op: str, plan: Plan, folder: Path, **more: Any) -> Part:
    """The part of a model that lies in a folder."""
    path = folder / f"{op}.xml"
    given = model(op)
    if not path.exists():
        ov.save_model(given, path)
    return Part(name, plan, 1, model_hash(formed(given, NAMED)), str(path), **more)


def written(folder: Path, *parts: Part, machine: tuple[str, ...] | None = None) -> Path:
    """A plan's file."""
    here = machine_lines(ov.Core(), ("CPU",)) if machine is None else machine
    path = folder / "net.plan.json"
    ApplicationPlan(JointPlan("by hand", parts, machine=here)).save(path)
    return path


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """``one`` runs in the calling thread, ``many`` with a hint and a property that the user asks for."""
    return written(
        tmp_path,
        part("one", "relu", CALLER, tmp_path),
        part("many", "tanh", RATE, tmp_path, properties={"INFERENCE_PRECISION_HINT": "f32"}),
    )


@pytest.fixture(autouse=True)
def _nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was decided")

    monkeypatch.setattr("ov_autoplace.decide.place.place_fitted", refuse)


def check(compiled: ov.CompiledModel, op: str) -> None:
    """It computes what its model computes."""
    x = np.array([[-1.0, 0.5, 2.0, -3.0]], np.float32)
    expected = {"relu": np.maximum(x, 0), "tanh": np.tanh(x)}[op]
    np.testing.assert_allclose(compiled(x)[0], expected, atol=1e-3)


def runs_as_one(compiled: ov.CompiledModel) -> bool:
    return (compiled.get_property("INFERENCE_NUM_THREADS"), compiled.get_property("NUM_STREAMS")) == (1, 0)


def runs_for_a_rate(compiled: ov.CompiledModel) -> bool:
    return str(compiled.get_property("PERFORMANCE_HINT")) == "THROUGHPUT"


Way = Callable[[ov.Core, str, Path, str], ov.CompiledModel]


def _set_before(core: ov.Core, op: str, folder: Path, named: str) -> ov.CompiledModel:
    core.set_property("AUTOPLACE", {OPTION: named})
    return core.compile_model(model(op), "AUTOPLACE")


WAYS: dict[str, Way] = {
    "model": lambda core, op, folder, named: core.compile_model(model(op), "AUTOPLACE", {OPTION: named}),
    "file": lambda core, op, folder, named: core.compile_model(
        folder / f"{op}.xml", "AUTOPLACE:CPU", {OPTION: named}
    ),
    "property": _set_before,
}
every_way = pytest.mark.parametrize("way", WAYS)


@every_way
def test_a_model_is_found_by_its_content_and_compiled_as_its_part_says(
    plan: Path, tmp_path: Path, way: str
) -> None:
    one = WAYS[way](ov.Core(), "relu", tmp_path, str(plan))
    many = WAYS[way](ov.Core(), "tanh", tmp_path, str(plan))
    assert runs_as_one(one)
    assert not runs_for_a_rate(one)
    assert runs_for_a_rate(many)
    assert many.get_property("INFERENCE_PRECISION_HINT") == ov.Type.f32
    check(one, "relu")
    check(many, "tanh")


def test_what_the_program_asks_for_besides_is_done(plan: Path) -> None:
    compiled = ov.Core().compile_model(model("tanh"), "AUTOPLACE", {OPTION: str(plan), "PERF_COUNT": True})
    assert compiled.get_property("PERF_COUNT") == "YES"
    assert runs_for_a_rate(compiled)


def test_the_same_model_twice_is_told_apart_by_its_name(tmp_path: Path) -> None:
    parts = part("left", "relu", CALLER, tmp_path), part("right", "relu", RATE, tmp_path)
    plain, core = written(tmp_path, *parts), ov.Core()
    assert runs_as_one(core.compile_model(model("relu"), "AUTOPLACE", {OPTION: f"{plain}#left"}))
    assert runs_for_a_rate(core.compile_model(model("relu"), "AUTOPLACE", {OPTION: f"{plain}#right"}))
    with pytest.raises(PlacementError, match="left, right"):
        core.compile_model(model("relu"), "AUTOPLACE", {OPTION: str(plain)})


def test_a_file_may_have_the_sign_in_its_name(plan: Path, tmp_path: Path) -> None:
    odd = plan.rename(tmp_path / "a#b.plan.json")
    assert runs_as_one(ov.Core().compile_model(model("relu"), "AUTOPLACE", {OPTION: str(odd)}))


def edited(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def _with_gpu(data: dict[str, Any]) -> None:
    """The other model is on a GPU of the plan's machine."""
    data["parts"][1]["plan"]["device"] = "GPU"
    data["machine"].append("GPU=Arc|1|2")


REFUSALS: dict[str, tuple[Callable[[Path], object], str, str, tuple[str, ...]]] = {
    # What happens to the plan's file, which model is compiled, what follows the file's name, what is said.
    "another model": (lambda path: None, "sigmoid", "", ("one", "many")),
    "the name of another model": (lambda path: None, "tanh", "#one", ("'one'",)),
    "an unknown name": (lambda path: None, "relu", "#onee", ("'onee'", "'one'")),
    "another machine": (
        lambda path: edited(path, lambda data: data["machine"].append("64 of 64 processors")),
        "relu",
        "",
        ("another machine", "64 of 64 processors"),
    ),
    "no file": (Path.unlink, "relu", "", ()),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "relu", "", ()),
    "garbage": (lambda path: path.write_bytes(b"\xff{"), "relu", "", ()),
    "half of it": (lambda path: path.write_text(path.read_text()[:-20]), "relu", "", ("JSON",)),
    "the plan of one model": (lambda path: path.write_text(json.dumps(CALLER.to_json())), "relu", "", ()),
    "a machine that lacks a device": (
        lambda path: edited(path, _with_gpu),
        "relu",
        "",
        ("GPU=Arc", "no GPU"),
    ),
    "a plan on another device": (
        lambda path: edited(path, lambda data: data["parts"][0]["plan"].update(device="GPU.7")),
        "relu",
        "",
        ("GPU.7",),
    ),
}


@every_way
@pytest.mark.parametrize("what", REFUSALS)
def test_what_does_not_fit_is_one_sentence_that_names_the_file(
    plan: Path, tmp_path: Path, what: str, way: str
) -> None:
    happens, op, name, words = REFUSALS[what]
    happens(plan)
    part("it", op, CALLER, tmp_path)  # so that there is a file
    with pytest.raises(AutoplaceError) as refusal:
        WAYS[way](ov.Core(), op, tmp_path, f"{plan}{name}")
    said = str(refusal.value)
    assert "\n" not in said
    for word in (plan.name, *words):
        assert word in said


def test_a_model_stays_on_the_devices_that_its_program_names(tmp_path: Path, unequal_pair: ov.Core) -> None:
    plan = written(tmp_path, part("one", "relu", CALLER, tmp_path), machine=())
    with pytest.raises(PlacementError, match=r"'CPU'.*XCPU"):
        unequal_pair.compile_model(model("relu"), "AUTOPLACE:XCPU", {OPTION: str(plan)})


def test_where_something_is_decided_a_plan_is_refused(plan: Path) -> None:
    with pytest.raises(OptionError, match=OPTION):
        ov.Core().query_model(model("relu"), "AUTOPLACE", {OPTION: str(plan)})
    with pytest.raises(OptionError, match="'application'"):
        ov_autoplace.finetune(model("relu"), out="nowhere", budget=1, application=str(plan))


def test_a_plan_is_loaded_as_it_was_saved(plan: Path, tmp_path: Path) -> None:
    loaded = ApplicationPlan.load(plan)
    again = tmp_path / "again.json"
    loaded.save(again)
    assert ApplicationPlan.load(again).plan == loaded.plan
    assert again.read_text() == plan.read_text()
    assert loaded.decision is None


def test_all_models_of_a_plan_are_compiled_once_each(plan: Path) -> None:
    compiled = ApplicationPlan.load(plan).compile()
    assert list(compiled) == ["one", "many"]
    assert runs_as_one(compiled["one"])
    assert runs_for_a_rate(compiled["many"])
    check(compiled["one"], "relu")
    check(compiled["many"], "tanh")


def test_models_may_be_given_where_the_files_are_gone(plan: Path, tmp_path: Path) -> None:
    for path in tmp_path.glob("*.xml"):
        path.unlink()
    with pytest.raises(AutoplaceError, match=r"relu\.xml"):
        ApplicationPlan.load(plan).compile()
    given = {"one": model("relu"), "many": model("tanh")}
    assert runs_as_one(ApplicationPlan.load(plan, given).compile()["one"])
    with pytest.raises(PlacementError, match="'one'"):
        ApplicationPlan.load(plan, {**given, "one": model("tanh")}).compile()
    edited(plan, lambda data: [own.update(source="") for own in data["parts"]])
    with pytest.raises(PlacementError, match="'many'"):
        ApplicationPlan.load(plan, {"one": model("relu")}).compile()


def test_properties_make_any_program_run_a_model_so(plan: Path, tmp_path: Path) -> None:
    loaded = ApplicationPlan.load(plan)
    device, properties = loaded.properties("one")
    assert (device, properties) == ("CPU", {"INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "0"})
    check(ov.Core().compile_model(tmp_path / "relu.xml", device, properties), "relu")
    device, properties = loaded.properties("many")
    assert properties == {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
    assert runs_for_a_rate(ov.Core().compile_model(tmp_path / "tanh.xml", device, properties))
    with pytest.raises(PlacementError, match="'onee'"):
        loaded.properties("onee")
    mix = SplitPlan.of({"x": "CPU", "relu": "GPU", "y": "GPU"})
    path = written(tmp_path, part("mix", "relu", mix, tmp_path))
    with pytest.raises(PlacementError, match="'mix'"):
        ApplicationPlan.load(path).properties("mix")
