"""An answer of one thread as OpenVINO runs it: right, with its exceptions, and never killing the process."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino.preprocess import PrePostProcessor

import ov_autoplace
import zoo
from command_line import gated_unit
from ov_autoplace.decide import outlook
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan import annotation
from ov_autoplace.plan.annotation import annotated_placement
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import WholePlan
from ov_autoplace.plugin.compilation import compile_placed

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("two_cores")]

ONE, CALLER = Width(1), Width(1, in_caller=True)


def placed(names: Iterable[str], width: Width | None) -> Placement:
    return replace(Placement.from_dict(dict.fromkeys(names, "CPU")), plan=WholePlan("CPU", width))


def annotated(model: ov.Model, width: Width) -> ov.Model:
    """The model with the answer that it runs on so many threads of the CPU."""
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    ov_autoplace.annotate(model, placed(names, width))
    return model


_LOST = """
import numpy as np, openvino as ov
from openvino import opset13 as ops
x, size = ops.parameter([2, -1], np.float32), ops.parameter([2], np.int64)
model = ov.Model([ops.result(ops.reshape(ops.tanh(x), size, False))], [x, size])
request = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
request.infer([np.ones((2, 6), np.float32), np.array([3, 4])])
request.infer([np.ones((2, 6), np.float32), np.array([5, 7])])
print("nothing was said", flush=True)
"""


def test_openvino_itself_loses_them_on_one_thread():
    """What the setting is for. Where this fails, OpenVINO is mended, and docs/width.md with it.

    It runs in a process of its own, as what was refused writes beyond its memory.
    """
    done = subprocess.run([sys.executable, "-c", _LOST], capture_output=True, text=True, check=False)
    assert done.stdout == "nothing was said\n"


@pytest.mark.parametrize("name", ["mobilenet_v2", "bert_base", "ssdlite", "lstm_lm", "control_flow"])
def test_one_thread_gives_what_all_threads_give(name):
    model = zoo.build(name, "small")
    random = np.random.default_rng(5)
    core, exact = ov.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
    plain = core.compile_model(model, "CPU", exact)
    values = [
        random.integers(0, 2, list(value.shape)).astype(value.element_type.to_dtype())
        if value.element_type.is_integral()
        else random.normal(size=list(value.shape)).astype(np.float32)
        for value in model.inputs
    ]
    narrow = core.compile_model(annotated(model.clone(), ONE), "AUTOPLACE:CPU", exact)
    assert narrow.get_property("INFERENCE_NUM_THREADS") == 1
    for ours, theirs in zip(narrow(values).values(), plain(values).values(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def tokenised() -> ov.Model:
    """A graph on which OpenVINO crashes, on some processors, when it compiles for one thread."""
    random = np.random.default_rng(0)

    def weights() -> ov.Node:
        return ops.constant(random.normal(size=(128, 128)).astype(np.float32))

    x = ops.parameter([1, 128], np.float32, name="x")
    left = ops.relu(x)
    right = ops.matmul(ops.matmul(x, weights(), False, False), weights(), False, False)
    total = ops.add(left, right)
    results = [ops.matmul(total, weights(), False, False), ops.relu(total), right]
    return ov.Model([ops.result(node) for node in results], [x], "tokenised")


def test_what_crashes_the_compiler_on_one_thread_does_not_crash_the_caller(tmp_path):
    path = tmp_path / "model.xml"
    ov.save_model(tokenised(), path, compress_to_fp16=False)
    code = f"""
import numpy as np, openvino as ov, ov_autoplace
core, exact = ov.Core(), {{"INFERENCE_PRECISION_HINT": "f32"}}
x = np.random.default_rng(1).normal(size=(1, 128)).astype(np.float32)
expected = core.compile_model({str(path)!r}, "CPU", exact)([x])
for mode in ("PROFILE", "ZERO_SHOT"):
    ours = core.compile_model({str(path)!r}, "AUTOPLACE:CPU", {{**exact, "AUTOPLACE_MODE": mode}})([x])
    for one, other in zip(ours.values(), expected.values(), strict=True):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-3), mode
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "alive", done.stderr


def test_threads_that_are_asked_for_win_over_an_annotation():
    given = annotated(zoo.build("mobilenet_v2", "small"), ONE)
    asked = ov.Core().compile_model(given, "AUTOPLACE:CPU", {"INFERENCE_NUM_THREADS": 2})
    assert asked.get_property("INFERENCE_NUM_THREADS") == 2


def test_what_was_not_seen_to_compile_here_runs_in_the_calling_thread():
    """A changed model, another OpenVINO or another processor may be one on which the compiler crashes."""
    other = annotated(tokenised(), ONE)
    assert annotated_placement(other).plan.width == ONE
    other.set_rt_info("OpenVINO 2025.0 on Another Processor", ["autoplace", "width_for"])
    assert annotated_placement(other).plan.width == CALLER
    changed = PrePostProcessor(annotated(tokenised(), ONE))
    changed.input(0).tensor().set_element_type(ov.Type.u8)
    assert annotated_placement(changed.build()).plan.width == CALLER
    convolutions = PrePostProcessor(annotated(zoo.build("mobilenet_v2", "small"), ONE))
    convolutions.input(0).tensor().set_element_type(ov.Type.u8)
    assert annotated_placement(convolutions.build()).plan.width == ONE, "these cannot crash it"


def test_a_gated_unit_keeps_all_threads_where_one_would_crash_its_compiler(monkeypatch):
    given = annotated(gated_unit(), ONE)
    monkeypatch.setattr(annotation, "has_tiles", lambda: False)
    assert annotated_placement(given).plan.width == ONE
    monkeypatch.setattr(annotation, "has_tiles", lambda: True)
    assert annotated_placement(given).plan.width is None
    assert annotated_placement(annotated(zoo.build("mobilenet_v2", "small"), ONE)).plan.width == ONE


def test_what_cannot_be_compiled_for_one_thread_runs_in_the_calling_thread(monkeypatch):
    given = annotated(zoo.build("mobilenet_v2", "small"), ONE)
    impossible = {**ONE.properties, "SNIPPETS_MODE": "UNHEARD_OF"}
    original = Width.properties.fget
    monkeypatch.setattr(Width, "properties", property(lambda w: impossible if w == ONE else original(w)))
    compiled = ov.Core().compile_model(given, "AUTOPLACE:CPU")
    assert (compiled.get_property("NUM_STREAMS"), compiled.get_property("INFERENCE_NUM_THREADS")) == (0, 1)


@pytest.mark.parametrize("text", ["many", "0", "2+caller", ""])
def test_a_damaged_width_is_told(text):
    model = annotated(zoo.build("lstm_lm", "small"), ONE)
    model.set_rt_info(text, ["autoplace", "width"])
    with pytest.raises(PlacementError, match="annotation is damaged"):
        ov.Core().compile_model(model, "AUTOPLACE:CPU")


def test_a_width_of_a_larger_machine_is_left_aside(caplog):
    with caplog.at_level(logging.INFO, logger="ov_autoplace"):
        compiled = ov.Core().compile_model(
            annotated(zoo.build("lstm_lm", "small"), Width(48)), "AUTOPLACE:CPU"
        )
    default = ov.Core().compile_model(zoo.build("lstm_lm", "small"), "CPU")
    key = "INFERENCE_NUM_THREADS"
    assert compiled.get_property(key) == default.get_property(key)
    assert "48 threads cannot be chosen" in caplog.text


def test_a_width_of_another_machines_profile_is_not_compiled_here(tmp_path):
    here = ov_autoplace.generic_target(ov.Core(), ("CPU",))
    large = replace(here.devices[0], threads=64, synchronisation_seconds=2e-6, op_overhead_seconds=13e-6)
    ov_autoplace.save_target(replace(here, devices=(large,)), tmp_path / "large.json")
    options = PlacerOptions(mode="ZERO_SHOT", target=str(tmp_path / "large.json"))
    core, search = ov.Core(), _everywhere(Width(8))
    compiled = compile_placed(
        Machine(core, ("CPU",), options), zoo.build("lstm_lm", "small"), core.compile_model, search=search
    )
    default = core.compile_model(zoo.build("lstm_lm", "small"), "CPU")
    assert search.calls == 1
    key = "INFERENCE_NUM_THREADS"
    assert compiled.get_property(key) == default.get_property(key)


def _everywhere(width: Width | None) -> object:
    """A search that answers with one width, and counts how often it was asked."""

    def search(machine: Machine, model: ov.Model) -> Placement:
        search.calls += 1
        names = [op.get_friendly_name() for op in model.get_ordered_ops()]
        return placed(names, width)

    search.calls = 0
    return search


@pytest.mark.parametrize(
    ("name", "asked"), [("ssdlite", True), ("mobilenet_v2", True), ("transformer", False), ("large", False)]
)
def test_only_small_models_of_known_shapes_are_searched(name, asked, monkeypatch):
    monkeypatch.setattr(outlook, "SURELY_FASTER", 0.0)
    core, search = ov.Core(), _everywhere(CALLER)
    if name == "transformer":  # any number of tokens
        x = ops.parameter([1, -1, 64], np.float32)
        model = ov.Model([ops.result(ops.softmax(x, 2))], [x])
    elif name == "large":
        x = ops.parameter([4096, 4096], np.float32)
        weights = ops.constant(np.zeros((4096, 4096), np.float32))
        model = ov.Model([ops.result(ops.matmul(x, weights, False, False))], [x])
    else:
        model = zoo.build(name, "small")
    compiled = compile_placed(
        Machine(core, ("CPU",), PlacerOptions()), model, core.compile_model, search=search
    )
    assert search.calls == asked
    assert (compiled.get_property("NUM_STREAMS") == 0) == asked


def test_a_device_that_cannot_be_measured_is_taken_as_it_is(caplog, monkeypatch):
    monkeypatch.setattr(outlook, "SURELY_FASTER", 0.0)

    def search(machine: Machine, model: ov.Model) -> Placement:
        raise PlacementError("nothing can be measured")

    core = ov.Core()
    machine = Machine(core, ("CPU",), PlacerOptions())
    compiled = compile_placed(machine, zoo.build("lstm_lm", "small"), core.compile_model, search=search)
    assert compiled.get_property("EXECUTION_DEVICES") == ["CPU"]
    assert "CPU is not tried on fewer threads or in lanes: nothing can be measured" in caplog.text


def test_narrow_models_are_not_bound_to_a_core():
    """Threads are bound to the same cores in every process, so narrow models of two would share one."""
    code = """
import os, numpy as np, openvino as ov
from ov_autoplace.devices.widths import Width
x = ov.opset13.parameter([1, 8], np.float32)
model = ov.Model([ov.opset13.tanh(x)], [x])
for width in (Width(1), Width(1, in_caller=True)):
    compiled = ov.Core().compile_model(model, "CPU", width.properties)
    compiled([np.zeros((1, 8), np.float32)])
    masks = {frozenset(os.sched_getaffinity(int(thread))) for thread in os.listdir("/proc/self/task")}
    assert masks == {frozenset(os.sched_getaffinity(0))}, masks
"""
    if not Path("/proc/self/task").exists():
        pytest.skip("the system does not list threads")
    subprocess.run([sys.executable, "-c", code], check=True)


NARROWED = """
import os, sys
sys.path[:0] = sys.argv[1:]
import openvino as ov
import ov_autoplace, zoo
core, model = ov.Core(), zoo.build("mobilenet_v2", "small")
core.compile_model(model, "CPU")
everywhere = os.sched_getaffinity(0)
own = {max(everywhere)}
os.sched_setaffinity(0, own)
before = set(os.listdir("/proc/self/task"))
print(core.compile_model(model, "CPU").get_property("INFERENCE_NUM_THREADS") > 1)
for settings in ({}, {"INFERENCE_NUM_THREADS": 2}):
    compiled = core.compile_model(model, "AUTOPLACE:CPU", settings)
    print(compiled.get_property("INFERENCE_NUM_THREADS"))
    if not settings:
        compiled.create_infer_request().infer()
        print(os.sched_getaffinity(0) == own)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no other core")
def test_a_mask_that_became_narrower_is_kept_to_unless_the_user_chose():
    """OpenVINO itself takes all cores of the mask that it was loaded with; where that fails, it is mended."""
    tools = str(Path(zoo.__file__).parent)
    told = subprocess.run(
        [sys.executable, "-c", NARROWED, tools], capture_output=True, text=True, timeout=120
    )
    assert told.stdout.split() == ["True", "1", "True", "2"], told.stderr
