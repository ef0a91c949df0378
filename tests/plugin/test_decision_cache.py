"""Stored decisions: what they are a key of, what makes one unusable, how many are kept."""

from __future__ import annotations

import functools
import json
import logging
import operator
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

from measuring_faults import Compilations, RaceTakes
from ov_autoplace.cost.target_json import catalogue
from ov_autoplace.decide import place
from ov_autoplace.decide.confirmation import confirm
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions, split_config
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import OptionError
from ov_autoplace.graph.shapes import Call
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import PoolPlan, SplitPlan, WholePlan
from ov_autoplace.plugin.blob_lock import tell_blobs_apart
from ov_autoplace.plugin.compilation import compile_placed
from ov_autoplace.plugin.decision_cache import DecisionCache, reason_of

ROOT = Path(__file__).resolve().parents[2]
PAIR = ["XCPU", "CPU"]
# Pinned to both devices, so that the answer is a mix whatever the measurements say.
PINS = {"first": "XCPU", "second": "CPU"}


def matmuls(scale: float = 1.0) -> ov.Model:
    x = opset.parameter([1, 64], np.float32, name="x")
    weights = scale * np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    first = opset.matmul(x, opset.constant(weights, name="w1"), False, False, name="first")
    second = opset.matmul(
        opset.softmax(first, 1, name="middle"),
        opset.constant(weights, name="w2"),
        False,
        False,
        name="second",
    )
    return ov.Model([opset.result(second, name="y")], [x], "pair")


@pytest.mark.parametrize(("tolerance", "is_shared"), [("AUTO", False), (1e-2, False), ("OFF", True)])
def test_decisions_are_for_one_training_where_outputs_were_compared(tmp_path, tolerance, is_shared):
    asked = PlacerOptions.from_arguments(
        {"output_tolerance": tolerance, "properties": {"CACHE_DIR": str(tmp_path)}}
    )
    paths = {DecisionCache.of(ov.Core(), matmuls(scale), ["CPU"], asked).path for scale in (1.0, 2.0)}
    assert len(paths) == (1 if is_shared else 2)


@pytest.fixture
def config(tmp_path: Path) -> dict[str, object]:
    return {"CACHE_DIR": str(tmp_path / "cache"), "AUTOPLACE_PINS": PINS}


def entry_of(config: dict[str, object]) -> Path:
    (entry,) = Path(str(config["CACHE_DIR"])).glob("autoplace-*.json")
    return entry


SPLIT = SplitPlan.of({"first": "XCPU", "middle": "CPU", "second": "CPU"})
ONE = WholePlan("CPU", Width(1), {"NUM_STREAMS": "1"})
COPIES = PoolPlan("2 x CPU", ONE, (ONE, ONE), requests=2)


@pytest.mark.parametrize(
    ("plan", "place", "value"),
    [
        (SPLIT, "schema", 99),
        (SPLIT, "version", 0),
        (SPLIT, "disturbed", "no"),
        (SPLIT, "plan", ["CPU"]),
        (SPLIT, "plan", None),
        (SPLIT, "plan.device_of.first", "GPU.9"),
        (SPLIT, "plan.device_of.first", ["CPU"]),
        (SPLIT, "plan.device_of.nowhere", "CPU"),
        (SPLIT, "plan.device_of", {"first": "XCPU", "second": "CPU"}),
        (ONE, "plan.width", "1 thread"),
        (ONE, "plan.device", "GPU"),
        (ONE, "plan.device", "AUTO:GPU,CPU"),
        (ONE, "plan.properties", {"NUM_STREAMS": 1}),
        (COPIES, "plan.requests", 0),
        (COPIES, "plan.turns", [7]),
        (COPIES, "plan.base.device", "GPU"),
        (COPIES, "plan.base.kind", "split"),
    ],
)
def test_an_entry_that_does_not_fit_is_dropped_with_a_warning(tmp_path, caplog, plan, place, value):
    ops = list(SPLIT.device_of)
    cache = DecisionCache(tmp_path / "autoplace-0.json", tuple(PAIR))
    cache.store(replace(Placement.from_dict(dict.fromkeys(ops, "CPU")), plan=plan))
    assert cache.load(ops).plan == plan
    data = json.loads(cache.path.read_text())
    *outer, key = place.split(".")
    functools.reduce(operator.getitem, outer, data)[key] = value
    cache.path.write_text(json.dumps(data))
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        assert cache.load(ops) is None
    assert "does not fit and is made anew" in caplog.text
    assert not cache.path.exists()


@pytest.mark.parametrize(
    "damage",
    [lambda text: text[: len(text) // 2], lambda text: text.replace('"middle"', '"other"')],
    ids=["half", "other ops"],
)
def test_an_entry_of_no_use_is_made_anew(unequal_pair, config, caplog, damage):
    config["AUTOPLACE_MODE"] = "ZERO_SHOT"
    unequal_pair.compile_model(matmuls(), "AUTOPLACE:XCPU,CPU", config)
    entry = entry_of(config)
    whole = entry.read_text()
    entry.write_text(damage(whole))
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        compiled = unequal_pair.compile_model(matmuls(), "AUTOPLACE:XCPU,CPU", config)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}
    assert "is made anew" in caplog.text
    assert json.loads(entry.read_text())["plan"] == json.loads(whole)["plan"]
    caplog.clear()
    unequal_pair.compile_model(matmuls(), "AUTOPLACE:XCPU,CPU", config)
    assert not caplog.records


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of a user who turned nothing off."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("AUTOPLACE_CACHE")
    return tmp_path / "ov-autoplace"


def compile_pinned(core: ov.Core, **config: object) -> ov.CompiledModel:
    config = {"AUTOPLACE_MODE": "ZERO_SHOT", "AUTOPLACE_PINS": PINS} | config
    return core.compile_model(matmuls(), "AUTOPLACE:XCPU,CPU", config)


def test_decisions_are_kept_in_the_users_cache_folder_without_being_asked(unequal_pair, home, monkeypatch):
    first = compile_pinned(unequal_pair)
    (entry,) = home.glob("decisions/*.json")
    monkeypatch.setattr(place, "place_fitted", lambda *_: pytest.fail("nothing is to be decided"))
    again = compile_pinned(unequal_pair, AUTOPLACE_CACHE="YES")
    assert again.get_property("EXECUTION_DEVICES") == first.get_property("EXECUTION_DEVICES")
    assert list(home.glob("decisions/*.json")) == [entry]  # the option decides nothing
    assert not [*home.rglob("*.blob")]


@pytest.mark.parametrize("variable", [{}, {"AUTOPLACE_CACHE": "no"}, {"AUTOPLACE_CACHE": "FALSE"}])
def test_whoever_turns_it_off_leaves_no_decision_behind(unequal_pair, home, variable, monkeypatch):
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    compile_pinned(unequal_pair, **({} if variable else {"AUTOPLACE_CACHE": False}))
    assert not home.exists()


def test_a_folder_that_is_named_is_the_only_one(unequal_pair, home, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOPLACE_CACHE", "NO")
    compile_pinned(unequal_pair, CACHE_DIR=str(tmp_path / "named"))
    assert len([*tmp_path.glob("named/autoplace-*.json")]) == 1
    assert not home.exists()


def test_the_variable_is_yes_or_no(unequal_pair, home, monkeypatch):
    monkeypatch.setenv("AUTOPLACE_CACHE", "perhaps")
    with pytest.raises(OptionError, match="AUTOPLACE_CACHE is 'perhaps'; it can be YES or NO"):
        compile_pinned(unequal_pair)


@pytest.mark.parametrize("home_is", ["a file", "missing"])
def test_a_home_that_cannot_be_written_is_no_fault(unequal_pair, home, home_is, monkeypatch, caplog):
    if home_is == "a file":
        home.write_text("not a folder")
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        compiled = compile_pinned(unequal_pair)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}
    assert not caplog.records


def test_a_stored_placement_that_cannot_be_compiled_is_made_anew(unequal_pair, config, caplog, monkeypatch):
    config["AUTOPLACE_MODE"] = "ZERO_SHOT"
    unequal_pair.compile_model(matmuls(), "AUTOPLACE:XCPU,CPU", config)
    from ov_autoplace.plugin import device

    native, calls = device._originals["compile_model"], []

    def refusing(*arguments: object, **options: object) -> ov.CompiledModel:
        calls.append(arguments)
        if len(calls) == 1:
            raise RuntimeError("a submodel is refused")
        return native(*arguments, **options)

    monkeypatch.setitem(device._originals, "compile_model", refusing)
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        compiled = unequal_pair.compile_model(matmuls(), "AUTOPLACE:XCPU,CPU", config)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}
    assert "cannot be run: a submodel is refused" in caplog.text


def test_a_plan_that_failed_leaves_no_trace_in_what_is_searched_next(unequal_pair, config):
    own, properties = split_config(config)
    machine = Machine(unequal_pair, tuple(PAIR), PlacerOptions(**own, properties=properties))
    given = matmuls()
    halves = {op.get_friendly_name(): PAIR[op.get_friendly_name() == "first"] for op in given.get_ops()}
    searched, compiled = [], []

    def search(_: Machine, model: ov.Model) -> Placement:
        searched.append(any("affinity" in op.get_rt_info() for op in model.get_ops()))
        return Placement.from_dict(halves)

    def refusing(model: ov.Model, *_: object) -> ov.CompiledModel:
        compiled.append(model)
        if len(compiled) == 2:
            raise RuntimeError("a submodel is refused")
        return unequal_pair.compile_model(model, "HETERO:XCPU,CPU")

    for _ in range(2):
        compile_placed(machine, given, refusing, search=search)
    assert (len(compiled), searched) == (3, [False, False])
    assert not any("affinity" in op.get_rt_info() for op in given.get_ops())


def test_properties_that_were_set_on_the_core_are_part_of_the_key(unequal_pair, tmp_path):
    options = PlacerOptions(properties={"CACHE_DIR": str(tmp_path)})
    before = DecisionCache.of(unequal_pair, matmuls(), PAIR, options).path
    assert before == DecisionCache.of(unequal_pair, matmuls(), PAIR, options).path
    unequal_pair.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})
    assert before != DecisionCache.of(unequal_pair, matmuls(), PAIR, options).path


OTHER_VALUES = {
    "mode": "TUNE",
    "time_budget_ms": 7,
    "pins": {"first": "CPU"},
    "memory_limits": {"CPU": 1e9},
    "shapes": {"x": [1, 64]},
    "target": "other.json",
    "solvers": ("local",),
    "seed": 7,
    "isolation": False,
    "executor": "HETERO",
    "lanes": "2x1",
    "arrivals": "STEADY",
    "output_tolerance": 1e-3,
    "application": "cameras.plan.json",
    "calls": (Call({"x": [1, 64]}, 2.0),),
    "properties": {"PERFORMANCE_HINT": "LATENCY"},
}
"""Of every option, one that is not its default."""


def path_of(core: ov.Core, folder: Path, devices: Sequence[str] = PAIR, **options: object) -> Path:
    properties = {**options.pop("properties", {}), "CACHE_DIR": str(folder)}
    cache = DecisionCache.of(core, matmuls(), devices, PlacerOptions(**options, properties=properties))
    return cache.path


def test_every_option_that_decides_is_part_of_the_key(unequal_pair, tmp_path):
    """All but how progress is shown, and whether decisions are kept and when; a new option belongs here."""
    others = {"progress", "cache", "decide"}
    assert OTHER_VALUES.keys() == {field.name for field in fields(PlacerOptions)} - others
    paths = [path_of(unequal_pair, tmp_path, **{name: value}) for name, value in OTHER_VALUES.items()]
    default = path_of(unequal_pair, tmp_path)
    assert default == path_of(unequal_pair, tmp_path)
    assert len({default, *paths}) == 1 + len(OTHER_VALUES)


@pytest.mark.parametrize("devices", [["CPU", "XCPU"], ["CPU"]])
def test_the_devices_in_their_order_are_part_of_the_key(unequal_pair, tmp_path, devices):
    assert path_of(unequal_pair, tmp_path, devices) != path_of(unequal_pair, tmp_path)


@pytest.mark.parametrize(
    "cores",
    [{"all": 3}, {"quota": Quota(0.06, 0.1)}, {"of_kind": {"P": 1, "E": 1}}],
    ids=["cores", "quota", "kinds"],
)
def test_the_cores_that_the_process_may_use_are_part_of_the_key(unequal_pair, tmp_path, cores, monkeypatch):
    for name, value in {"all": 2, "quota": None, "of_kind": {}}.items():
        monkeypatch.setattr(Cores, name, value)
    before = path_of(unequal_pair, tmp_path)
    assert before == path_of(unequal_pair, tmp_path)
    for name, value in cores.items():
        monkeypatch.setattr(Cores, name, value)
    assert before != path_of(unequal_pair, tmp_path)


def test_a_folder_named_like_a_profile_of_the_catalogue_is_none(unequal_pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = catalogue()[0]
    before = path_of(unequal_pair, tmp_path, target=name)
    Path(name).mkdir()
    assert path_of(unequal_pair, tmp_path, target=name) == before


def test_how_blobs_are_encrypted_decides_nothing(unequal_pair, tmp_path):
    """Callbacks are others in every process, and a decision is to be found by the next one."""
    callbacks = [lambda text: text, lambda text: text[::-1]]
    paths = {
        path_of(unequal_pair, tmp_path, properties={"CACHE_ENCRYPTION_CALLBACKS": [one, one]})
        for one in callbacks
    }
    assert paths == {path_of(unequal_pair, tmp_path)}


def test_blobs_of_a_mix_are_for_what_its_devices_are_told(unequal_pair, tmp_path):
    """On the Core as in the call, whatever property it is; where the blobs lie is no such thing."""

    def told(folder: str = "a", **config: object) -> str:
        model, config = matmuls(), {"CACHE_DIR": str(tmp_path / folder), **config}
        tell_blobs_apart(unequal_pair, model, PAIR, config)
        return str(model.get_rt_info(["ov_autoplace", "device_properties"]).value)

    default = told()
    assert told("b") == default
    given = told(DEVICE_PROPERTIES={"CPU": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "64"}})
    unequal_pair.set_property("CPU", {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "64"})
    assert told() == given != default


def test_the_key_holds_what_a_target_says_and_neither_the_folder_nor_the_progress(unequal_pair, tmp_path):
    target = tmp_path / "machine.json"

    def key(folder: str, progress: object = None) -> str:
        options = PlacerOptions(
            target=str(target), properties={"CACHE_DIR": str(tmp_path / folder)}, progress=progress
        )
        return DecisionCache.of(unequal_pair, matmuls(), PAIR, options).path.name

    missing = key("a")
    target.write_text("one")
    one = key("a")
    assert one != missing
    assert key("b", progress=print) == one
    target.write_text("two")
    assert key("a") != one


def test_the_decisions_that_were_not_used_for_longest_go_first(tmp_path):
    answer = Placement.from_dict({"op": "CPU"})
    entries = [DecisionCache(tmp_path / f"autoplace-{i}.json", ("CPU",)) for i in range(4)]
    for age, entry in enumerate(entries[:3]):
        entry.store(answer)
        os.utime(entry.path, (age + 1, age + 1))
    foreign = tmp_path / "other.blob"
    foreign.write_bytes(b"x" * 10_000)
    assert entries[0].load(["op"]) == (
        answer.plan,
        False,
        reason_of(answer.plan),
    )  # now it is the one that was used last
    most_bytes = 3 * entries[0].path.stat().st_size
    replace(entries[3], most_bytes=most_bytes).store(answer)
    assert [entry.path.exists() for entry in entries] == [True, False, True, True]
    assert foreign.exists()


@pytest.mark.parametrize(("room", "stays"), [(4096, True), (0, False)])
def test_a_folder_takes_64_mib_of_decisions(tmp_path, room, stays):
    old = tmp_path / "autoplace-old.json"
    old.touch()
    os.truncate(old, 64 * 1024 * 1024 - room)
    DecisionCache(tmp_path / "autoplace-new.json", ("CPU",)).store(Placement.from_dict({"op": "CPU"}))
    assert old.exists() is stays


def test_checking_races_the_stored_answer_against_the_devices(unequal_pair, race_takes: RaceTakes):
    """A matrix product on one thread beside two: told from the samples that a scripted race gives."""
    model, machine = matmuls(), Machine(unequal_pair, PAIR)
    plan = WholePlan("XCPU")
    noise = np.random.default_rng(0).lognormal(sigma=0.1, size=40)
    race_takes(noise, noise)
    assert confirm(machine, model, plan).holds is True
    race_takes(1.1 * noise, noise)
    assert confirm(machine, model, plan).holds is False
    pinned = PlacerOptions(pins={"first": "XCPU"})
    assert confirm(Machine(unequal_pair, PAIR, pinned), model, plan).holds is True  # nothing else is allowed
    noise[0] = 1000.0
    race_takes(1.1 * noise, noise)
    assert confirm(machine, model, plan).holds is None


@pytest.mark.parametrize("isolation", [True, False])
def test_checking_a_stored_answer_measures_where_the_caller_wants(
    unequal_pair, compilations: Compilations, isolation
):
    machine = Machine(unequal_pair, PAIR, PlacerOptions(isolation=isolation))
    confirm(machine, matmuls(), WholePlan("XCPU"))
    assert bool(compilations()) is isolation


def test_processes_on_a_cold_cache_make_one_decision_and_none_dies(tmp_path: Path):
    """One round of the benchmark's, with two processes."""
    code = "from sections.compilation import cold_cache; print(cold_cache(1, 2)[1])"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools" / "bench")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 rounds of 2 processes went well" in done.stdout
