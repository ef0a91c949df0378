"""Models on lanes as compiled models: answers, types, state, errors, requests, files, caches, profiles."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from lane_models import F32, NARROW, by_name, on_lanes, sizes_that_clash, towers, typed
from ov_autoplace import place
from ov_autoplace.devices.extension import schedule_ops
from ov_autoplace.errors import ModelError
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.scheduled import lanes_of, scheduled_model
from ov_autoplace.plugin.scheduled import compile_scheduled


@pytest.fixture
def core() -> ov.Core:
    return ov.Core()


def half_of_f32(values: np.ndarray) -> np.ndarray:
    """Numbers as bf16, in the bytes of ``uint16``."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize(
    "element",
    ["f32", "bf16", "f16", "f64", "i64", "u64", "i32", "u32", "i16", "u16", "i8", "u8", "boolean"],
)
def test_every_type_crosses_the_boundary_as_on_one_device(core, element: str) -> None:
    element_type = getattr(ov.Type, element)
    model = typed(element_type)
    low = -100 if element_type.is_real() or element_type.is_signed() else 0
    low, high = (0, 2) if element == "boolean" else (low, 120)
    random = np.random.default_rng(8)
    inputs = [random.integers(low, high, [2, 3]) for _ in range(2)]
    if element == "bf16":
        inputs = [ov.Tensor(half_of_f32(values), [2, 3], element_type) for values in inputs]
    else:
        inputs = [values.astype(element_type.to_dtype()) for values in inputs]

    compiled = on_lanes(core, model, by_name(model, (0, 1)))
    expected = core.compile_model(model, "CPU", F32)(inputs)
    answer = compiled(inputs)

    for i in range(2):
        assert compiled.outputs[i].element_type == element_type
        np.testing.assert_array_equal(answer[i], expected[i])
    assert np.unique(answer[0]).size > 1


ON_ONE_CORE = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
sys.path[:0] = sys.argv[1:]
import numpy as np, openvino as ov
from lane_models import F32, NARROW, adding, by_name, on_cpu, on_lanes, ramps, sizes_that_clash, towers, typed
from ov_autoplace.plan.scheduled import scheduled_model
from ov_autoplace.plugin.scheduled import compile_scheduled
model = sizes_that_clash()
request = compile_scheduled(
    ov.Core(), scheduled_model(model, by_name(model, (0, 1, 0))), {}
).create_infer_request()
for _ in range(3):
    try:
        request.infer([np.ones(3, np.float32), np.ones(2, np.float32)])
    except RuntimeError as cause:
        print("submodel '2/add' on CPU" in str(cause))
"""


def test_errors_are_kept_on_one_core_too() -> None:
    tests = str(Path(__file__).resolve().parent.parent)
    told = subprocess.run(
        [sys.executable, "-c", ON_ONE_CORE, tests], capture_output=True, text=True, check=True, timeout=120
    )
    assert told.stdout.split() == ["True"] * 3


OFF_THE_CALLERS_CORE = """
import os, sys
sys.path[:0] = sys.argv[1:]
import openvino as ov
from lane_models import by_name, on_lanes, ramps, towers
everywhere = os.sched_getaffinity(0)
model = towers()
compiled = on_lanes(ov.Core(), model, by_name(model, (0, 1, 0)))
for own in sorted(everywhere):
    os.sched_setaffinity(0, {own})
    # Workers move when a run wants one, which on a busy machine may not be soon.
    for _ in range(100):
        for _ in range(200):
            compiled(ramps())
        masks = [os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")]
        if everywhere - {own} in masks:
            break
    print(everywhere - {own} in masks, [m for m in masks if m != everywhere])
"""


def check_on_each_core(script: str) -> None:
    """Run a script that prints a line for each core, which begins with whether all was well."""
    tests = str(Path(__file__).resolve().parent.parent)
    told = subprocess.run([sys.executable, "-c", script, tests], capture_output=True, text=True, timeout=120)
    lines = told.stdout.splitlines()
    assert len(lines) == len(os.sched_getaffinity(0)), told.stderr
    assert all(line.startswith("True ") for line in lines), lines


@pytest.mark.alone
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no other core")
def test_a_worker_keeps_off_the_core_of_the_one_that_calls_it() -> None:
    check_on_each_core(OFF_THE_CALLERS_CORE)


NARROWED_MASK = """
import os, sys
sys.path[:0] = sys.argv[1:]
import openvino as ov
from lane_models import by_name, on_lanes, ramps, towers
def threads(): return set(os.listdir("/proc/self/task"))
everywhere, model = os.sched_getaffinity(0), towers()
on_lanes(ov.Core(), model, by_name(model, (0, 1, 0)))(ramps())  # all libraries are loaded and have run
for own in sorted(everywhere):
    os.sched_setaffinity(0, {own})
    before = threads()
    compiled = on_lanes(ov.Core(), model, by_name(model, (0, 1, 0)))
    # A worker takes the mask when it begins to run, which on a busy machine may not be soon.
    for _ in range(1000):
        compiled(ramps())
        masks = [os.sched_getaffinity(int(thread)) for thread in threads() - before]
        if masks and all(mask == {own} for mask in masks):
            break
    print(bool(masks) and all(mask == {own} for mask in masks), masks)
"""


@pytest.mark.alone
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no other core")
def test_threads_keep_to_the_mask_that_the_process_has_when_they_are_compiled_for() -> None:
    check_on_each_core(NARROWED_MASK)


def test_the_profile_lists_the_nodes_of_the_submodels_with_their_lanes(core) -> None:
    model = towers(layers=3, width=256)
    compiled = on_lanes(core, model, by_name(model, (0, 1, 0)), PERF_COUNT=True)
    request = compiled.create_infer_request()
    x = [np.ones((1, 256), np.float32)] * 2
    for _ in range(3):
        request.infer(x)

    for nodes in (request.profiling_info, request.get_profiling_info()):
        inner = [node for node in nodes if ": " in node.node_name]
        assert {node.node_name.split(": ")[0].split(" ", 1)[1] for node in inner} == {
            "0/product0 .. 0/relu2",
            "1/product0 .. 1/relu2",
            "2/sum",
        }
        assert {node.node_name.split(" ")[0] for node in inner} <= {"CPU#0", "CPU#1"}
        run = [node for node in inner if node.status == ov.ProfilingInfo.Status.EXECUTED]
        assert sum(node.real_time.total_seconds() for node in run) > 0
        assert all(node.exec_type for node in run)
        assert not any(node.node_type == "Schedule" for node in nodes)


def test_properties_of_the_core_and_of_the_user_reach_the_lanes(core) -> None:
    core.set_property("CPU", {"PERF_COUNT": True})
    properties = {
        "DEVICE_PROPERTIES": {"CPU": {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 7}}
    }
    compiled_with: list[Lane] = []

    def compile_native(model: ov.Model, device: str, config: dict[str, object]) -> ov.CompiledModel:
        (op,) = schedule_ops(model)
        compiled_with.extend(lanes_of(op))
        return core.compile_model(model, device, config)

    model = towers()
    compile_scheduled(core, scheduled_model(model, by_name(model, (0, 1, 0))), properties, compile_native)

    assert len(compiled_with) == 2
    for lane in compiled_with:
        told = dict(lane.properties)
        assert told["PERF_COUNT"] == "YES"
        assert told["INFERENCE_PRECISION_HINT"] == "f32"
        assert told["INFERENCE_NUM_THREADS"] == NARROW["INFERENCE_NUM_THREADS"]


def test_properties_are_those_of_the_lanes(core) -> None:
    """The model around them has two threads, computes in f32 and is not profiled."""
    model = towers()
    properties = {**NARROW, "INFERENCE_PRECISION_HINT": "f16", "EXECUTION_MODE_HINT": "ACCURACY"}
    alone = core.compile_model(model, "CPU", properties)
    compiled = on_lanes(core, model, by_name(model, (0, 1, 0), properties))

    assert compiled.get_property("INFERENCE_NUM_THREADS") == 1
    assert alone.get_property("EXECUTION_MODE_HINT") == ov.properties.hint.ExecutionMode.ACCURACY
    for name in (
        "INFERENCE_PRECISION_HINT",
        "EXECUTION_MODE_HINT",
        "NUM_STREAMS",
        "ENABLE_CPU_PINNING",
        "SCHEDULING_CORE_TYPE",
        "MODEL_DISTRIBUTION_POLICY",
        "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE",
        "KV_CACHE_PRECISION",
    ):
        assert compiled.get_property(name) == alone.get_property(name), name
        assert type(compiled.get_property(name)) is type(alone.get_property(name)), name


def test_every_property_is_told_also_after_import(core) -> None:
    model = towers()
    compiled = on_lanes(core, model, by_name(model, (0, 1, 0)))
    supported = compiled.get_property("SUPPORTED_PROPERTIES")
    by_lane = compiled.get_property("DEVICE_PROPERTIES")
    imported = core.import_model(compiled.export_model(), "AUTOPLACE:CPU")

    assert {"DEVICE_PROPERTIES", "INFERENCE_PRECISION_HINT", "EXECUTION_DEVICES"} <= set(supported)
    assert set(by_lane) == {"CPU#0", "CPU#1"}
    for name in supported:
        compiled.get_property(name)
    assert imported.get_property("DEVICE_PROPERTIES") == by_lane


def test_a_property_in_which_lanes_differ_is_asked_for_by_lane(core) -> None:
    model = towers()
    plan = by_name(model, (0, 1, 0))
    lanes = tuple(
        Lane.of("CPU", {**NARROW, "EXECUTION_MODE_HINT": mode}) for mode in ("ACCURACY", "PERFORMANCE")
    )
    compiled = compile_scheduled(core, scheduled_model(model, replace(plan, lanes=lanes)), {})

    with pytest.raises(RuntimeError, match=r"lanes of this model differ in EXECUTION_MODE_HINT"):
        compiled.get_property("EXECUTION_MODE_HINT")
    told = compiled.get_property("DEVICE_PROPERTIES")
    modes = {lane: own["EXECUTION_MODE_HINT"].name for lane, own in told.items()}
    assert modes == {"CPU#0": "ACCURACY", "CPU#1": "PERFORMANCE"}


def test_a_model_on_lanes_is_not_placed_again(core) -> None:
    model = towers()
    scheduled = scheduled_model(model, by_name(model, (0, 1, 0)))
    with pytest.raises(ModelError, match="cut for lanes and holds their plan; compile it as it is"):
        place(scheduled, "CPU", core=core)


def test_a_run_that_fails_keeps_no_tensor_of_the_caller() -> None:
    def used() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    model = sizes_that_clash()
    scheduled = scheduled_model(model, by_name(model, (0, 1, 0)))
    (op,) = schedule_ops(scheduled)
    elements = 16 << 20
    outputs = [ov.Tensor(ov.Type.f32, [2])]
    inputs = [ov.Tensor(ov.Type.f32, [elements]), ov.Tensor(ov.Type.f32, [2])]
    for tensor in inputs:
        tensor.data[:] = 0
    with pytest.raises(RuntimeError, match="2/add"):
        op.evaluate(outputs, inputs)
    held = used()
    del inputs, tensor
    assert held - used() > 0.9 * 4 * elements
