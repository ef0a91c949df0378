"""What OpenVINO's Python API promises, of every kind of answer: compiled models, requests, queues, shapes,
state, blobs, caches.

Every test runs on the plain CPU as well, which is what AUTOPLACE is compared with.
"""

from __future__ import annotations

import functools
import io
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino.preprocess import PrePostProcessor

import lane_checks
import ov_autoplace
from ov_autoplace._base.releases import facts
from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import ModelError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import Plan, PoolPlan, WholePlan
from ov_autoplace.plugin import compilation
from places import CPU_PLUGIN

ESTIMATED = {"AUTOPLACE_MODE": "ZERO_SHOT"}
THROUGHPUT = {"PERFORMANCE_HINT": "THROUGHPUT"}
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
PAIR, ABLE = "AUTOPLACE:XCPU,CPU", "AUTOPLACE:CPU,XCPU"
PINS = {"first": "XCPU", "second": "CPU"}
ONE, CALLER = (WholePlan("CPU", Width(1, in_caller=own)) for own in (False, True))


class Kind(NamedTuple):
    """A device name, what goes with it, and the plan that a search is said to have found for a model."""

    device: str
    config: dict[str, Any]
    plan: Callable[[ov.Model], Plan] | None = None


KINDS = {
    "CPU": Kind("CPU", {}),
    "one device": Kind("AUTOPLACE:CPU", ESTIMATED),
    "mix": Kind(PAIR, {**ESTIMATED, "AUTOPLACE_PINS": PINS}),
    "rate": Kind(PAIR, {**ESTIMATED, **THROUGHPUT}),
    "one thread": Kind(ABLE, {}, lambda _: ONE),
    "the caller's thread": Kind(ABLE, {}, lambda _: CALLER),
    "lanes": Kind(ABLE, {}, lambda model: lane_checks.plan_of_ops(model, 2, 3, 1)),
    "copies": Kind(ABLE, THROUGHPUT, lambda _: PoolPlan("2 x CPU", CALLER, (CALLER, CALLER), 2)),
    "mixture": Kind(
        ABLE, THROUGHPUT, lambda _: PoolPlan("CPU + XCPU", ONE, (WholePlan("XCPU"), ONE), 3, (0, 1, 1))
    ),
}
POOLS = ("copies", "mixture")
Compile = Callable[..., ov.CompiledModel]


def model(batch: int = 2) -> ov.Model:
    """Two inputs, two outputs: a product with a row that is normalised, and its sum."""
    x = ops.parameter([batch, 8], np.float32, name="x")
    y = ops.parameter([8], np.float32, name="y")
    first = ops.multiply(x, ops.softmax(y, 0, name="row"), name="first")
    second = ops.reduce_sum(first, ops.constant(np.array([1]), name="axis"), True, name="second")
    results = [ops.result(first, name="product"), ops.result(second, name="sum")]
    for result, name in zip(results, ("product", "sum"), strict=True):
        result.output(0).set_names({name})
    for parameter in (x, y):
        parameter.output(0).set_names({parameter.get_friendly_name()})
    return ov.Model(results, [x, y], "behaviour")


def data(batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        "x": random.normal(size=(batch, 8)).astype(np.float32),
        "y": random.normal(size=8).astype(np.float32),
    }


def expected(given: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    exponents = np.exp(given["y"])
    product = given["x"] * (exponents / exponents.sum())
    return product, product.sum(1, keepdims=True)


def check(results: Any, given: dict[str, np.ndarray]) -> None:
    for i, wanted in enumerate(expected(given)):
        np.testing.assert_allclose(results[i], wanted, rtol=1e-4, atol=1e-5)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def device(kind: str) -> str:
    return KINDS[kind].device


@pytest.fixture
def searched(kind: str, monkeypatch: pytest.MonkeyPatch, two_cores: None) -> list[str]:
    """Names of the models for which a plan was looked for, which finds what the kind says at once."""
    names: list[str] = []
    plan = KINDS[kind].plan

    def search(machine: Machine, model: ov.Model) -> Placement:
        names.append(model.get_friendly_name())
        if plan is None:
            return compilation._search(machine, model)
        return replace(Placement.on_device(model, "CPU"), plan=plan(model))

    found = functools.partial(compilation.compile_placed, search=search)
    monkeypatch.setattr(compilation, "compile_placed", found)
    return names


@pytest.fixture
def core(unequal_pair: ov.Core, kind: str, searched: list[str]) -> ov.Core:
    """Both devices; those on which a plan chooses the threads were told no number of them."""
    if KINDS[kind].plan is None:
        return unequal_pair
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    return core


@pytest.fixture
def compile_model(core: ov.Core, kind: str) -> Compile:
    def compile_model(given: Any = None, **more: Any) -> ov.CompiledModel:
        config = {**F32, **KINDS[kind].config, **more}
        return core.compile_model(model() if given is None else given, KINDS[kind].device, config)

    return compile_model


def test_inputs_and_outputs_are_those_of_the_model(compile_model):
    compiled, given = compile_model(), model()
    assert [port.any_name for port in compiled.inputs] == ["x", "y"]
    assert [port.any_name for port in compiled.outputs] == ["product", "sum"]
    assert compiled.input("y").get_partial_shape() == ov.PartialShape([8])
    assert compiled.output(1).get_element_type() == ov.Type.f32
    assert compiled.output("product").get_shape() == given.output("product").get_shape()
    with pytest.raises(RuntimeError):
        compiled.input("z")
    with pytest.raises(RuntimeError):
        compiled.input()  # there are two
    assert compiled.get_runtime_model().get_ops()


def test_results_are_found_by_index_name_and_port(compile_model):
    compiled, given = compile_model(), data()
    request = compiled.create_infer_request()
    for results in (compiled(given), compiled.infer_new_request(given), request.infer(given)):
        check(results, given)
        assert np.array_equal(results["sum"], results[1])
        assert np.array_equal(results[compiled.output("product")], results[0])
        assert len(results) == 2
    request.start_async(given)
    request.wait()
    assert np.array_equal(request.results[compiled.output("sum")], request.results[1])
    check(compiled([given["x"], given["y"]]), given)
    check(compiled({0: given["x"], 1: given["y"]}), given)
    check(compiled({compiled.input("x"): given["x"], compiled.input(1): given["y"]}), given)


def test_tensors_are_set_and_read(compile_model):
    request, given = compile_model().create_infer_request(), data()
    request.set_tensor("x", ov.Tensor(given["x"]))
    request.set_input_tensor(1, ov.Tensor(given["y"]))
    request.infer()
    check([request.get_output_tensor(0).data, request.get_tensor("sum").data], given)
    assert request.get_input_tensor(0).shape == ov.Shape([2, 8])
    own = np.zeros((2, 8), np.float32)
    request.set_output_tensor(0, ov.Tensor(own, shared_memory=True))
    request.infer()
    np.testing.assert_allclose(own, expected(given)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shared", [False, True])
def test_memory_is_shared_or_copied_as_asked(compile_model, shared):
    request, given = compile_model().create_infer_request(), data()
    first = request.infer(given, share_inputs=shared, share_outputs=shared)
    kept = first[0].copy()
    second = request.infer(data(seed=1), share_inputs=shared, share_outputs=shared)
    check(second, data(seed=1))
    assert np.array_equal(first[0], second[0] if shared else kept)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"x": np.zeros((2, 9), np.float32), "y": np.zeros(8, np.float32)}, (RuntimeError, ValueError)),
        ({"z": np.zeros((2, 8), np.float32)}, (RuntimeError, ValueError)),
        ({"x": "text", "y": np.zeros(8, np.float32)}, (RuntimeError, ValueError, TypeError)),
    ],
    ids=["shape", "name", "type"],
)
def test_wrong_inputs_are_refused_and_right_ones_run_afterwards(compile_model, given, error):
    request = compile_model().create_infer_request()
    with pytest.raises(error):
        request.infer(given)
    check(request.infer(data()), data())


def test_callbacks_are_called_when_the_work_is_done(compile_model):
    request, given = compile_model().create_infer_request(), data()
    called, seen = threading.Event(), []

    def callback(userdata: Any) -> None:
        seen.append(userdata)
        called.set()

    request.set_callback(callback, "first")
    request.start_async(given)
    request.wait()
    assert called.wait(10)
    assert seen == ["first"]
    check(request.results, given)
    request.start_async(given)
    assert request.wait_for(10_000)
    assert request.latency > 0


def test_what_a_callback_raises_is_raised_by_wait(compile_model):
    request = compile_model().create_infer_request()

    def callback(_: Any) -> None:
        raise ValueError("from the callback")

    request.set_callback(callback, None)
    request.start_async(data())
    with pytest.raises((ValueError, RuntimeError), match="from the callback"):
        request.wait()


def test_a_queue_runs_all_its_jobs(compile_model):
    compiled = compile_model()
    queue = ov.AsyncInferQueue(compiled)
    # A queue is OpenVINO's own: it asks the compiled model itself, not what requests are dealt from.
    assert len(queue) == ov.CompiledModel.get_property(compiled, "OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    requests = compiled.get_property(ov.properties.optimal_number_of_infer_requests)
    assert requests == compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    queue = ov.AsyncInferQueue(compiled, 3)
    results: dict[int, list[np.ndarray]] = {}
    queue.set_callback(
        lambda request, i: results.__setitem__(i, [t.data.copy() for t in request.output_tensors])
    )
    for i in range(24):
        queue.start_async(data(seed=i), i)
    queue.wait_all()
    assert sorted(results) == list(range(24))
    for i, found in results.items():
        check(found, data(seed=i))
    assert queue.is_ready()
    assert set(queue.userdata) <= set(results)


def test_a_queue_raises_what_its_callback_raised(compile_model):
    queue = ov.AsyncInferQueue(compile_model(), 2)

    def callback(_: Any, job: int) -> None:
        if job == 1:
            raise ValueError("from the callback")

    queue.set_callback(callback)

    def run() -> None:
        for job in range(4):
            queue.start_async(data(), job)
        queue.wait_all()

    with pytest.raises((ValueError, RuntimeError), match="from the callback"):
        run()


def test_requests_of_several_threads_do_not_disturb_each_other(compile_model):
    compiled = compile_model()

    def work(seed: int) -> None:
        request = compiled.create_infer_request()
        for i in range(seed, seed + 50):
            check(request.infer(data(seed=i)), data(seed=i))

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(0, 400, 100))]  # which raises what one of them did


def test_requests_outlive_the_compiled_model(compile_model):
    request = compile_model().create_infer_request()
    check(request.infer(data()), data())


def scattering() -> ov.Model:
    """All its shapes are static, and an index beyond them fails."""
    x = ops.parameter([4, 8], np.float32, name="x")
    where = ops.parameter([2, 1], np.int64, name="where")
    first = ops.scatter_nd_update(ops.tanh(x), where, np.zeros((2, 8), np.float32), name="first")
    return ov.Model([ops.result(ops.relu(first, name="second"))], [x, where], "scattering")


def reshaping() -> ov.Model:
    """Reshapes twelve numbers as it is told, which fails for any other product."""
    x = ops.parameter([-1, -1], np.float32, name="x")
    shape = ops.parameter([2], np.int64, name="shape")
    first = ops.reshape(ops.relu(x), shape, False, name="first")
    return ov.Model([ops.result(ops.relu(first, name="second"))], [x, shape], "reshaping")


@pytest.mark.alone
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("mix", "rate")])
@pytest.mark.parametrize(
    ("build", "shape", "good", "bad"),
    [(scattering, (4, 8), [[0], [3]], [[0], [9]]), (reshaping, (2, 6), [3, 4], [5, 7])],
)
def test_what_fails_in_an_inference_is_raised_and_the_request_goes_on(compile_model, build, shape, good, bad):
    """But for devices that the caller gave one thread, where OpenVINO loses it."""
    request, x = compile_model(build()).create_infer_request(), np.ones(shape, np.float32)

    def run_asynchronously() -> None:
        request.start_async([x, np.array(bad)])
        request.wait()

    for _ in range(3):
        request.infer([x, np.array(good)])
        with pytest.raises(RuntimeError):
            request.infer([x, np.array(bad)])
        request.infer([x, np.array(good)])
        with pytest.raises(RuntimeError):
            run_asynchronously()


def test_the_callers_model_stays_as_it_was(compile_model):
    given = model()
    before = [(op.get_friendly_name(), len(op.get_rt_info())) for op in given.get_ops()]
    compile_model(given)
    assert [(op.get_friendly_name(), len(op.get_rt_info())) for op in given.get_ops()] == before


def test_a_request_knows_its_model_and_its_profile(compile_model):
    request = compile_model(PERF_COUNT=True).create_infer_request()
    request.infer(data())
    assert len(request.model_outputs) == 2
    assert request.get_compiled_model().outputs
    assert any(info.status == ov.ProfilingInfo.Status.EXECUTED for info in request.profiling_info)


def test_a_static_model_is_reshaped_before_it_is_compiled(compile_model):
    given = model()
    given.reshape({"x": [5, 8]})
    compiled = compile_model(given)
    assert compiled.output(0).get_shape() == ov.Shape([5, 8])
    check(compiled(data(5)), data(5))


def test_a_dynamic_model_takes_every_batch(compile_model):
    given = model()
    given.reshape({"x": [-1, 8]})
    compiled = compile_model(given)
    assert compiled.output("sum").get_partial_shape() == ov.PartialShape([-1, 1])
    request = compiled.create_infer_request()
    for batch in (1, 7, 3):
        check(request.infer(data(batch)), data(batch))


def test_preprocessing_becomes_part_of_the_model(compile_model):
    processor = PrePostProcessor(model())
    processor.input("x").tensor().set_element_type(ov.Type.u8)
    processor.input("x").preprocess().convert_element_type(ov.Type.f32).scale(2.0)
    compiled = compile_model(processor.build())
    assert compiled.input("x").get_element_type() == ov.Type.u8
    x, y = np.arange(16, dtype=np.uint8).reshape(2, 8), data()["y"]
    check(compiled({"x": x, "y": y}), {"x": x.astype(np.float32) / 2, "y": y})


def test_state_is_kept_and_reset(compile_model):
    x = ops.parameter([1, 4], np.float32, name="x")
    start = ops.constant(np.zeros((1, 4), np.float32))
    variable = ops.read_value(start, "sum", ov.Type.f32, ov.PartialShape([1, 4]))
    total = ops.add(x, variable, name="first")
    compiled = compile_model(
        ov.Model([ops.result(ops.tanh(total, name="second"))], [ops.assign(total, "sum")], [x], "state")
    )
    request, one = compiled.create_infer_request(), np.full((1, 4), 0.25, np.float32)
    for step in (1, 2, 3):
        np.testing.assert_allclose(request.infer([one])[0], np.tanh(0.25 * step * np.ones((1, 4))), rtol=1e-4)
    [state] = request.query_state()
    assert state.name == "sum"
    np.testing.assert_allclose(state.state.data, 0.75 * np.ones((1, 4)), rtol=1e-4)
    state.state = ov.Tensor(np.ones((1, 4), np.float32))
    np.testing.assert_allclose(request.infer([one])[0], np.tanh(1 + one), rtol=1e-4)
    request.reset_state()
    np.testing.assert_allclose(request.infer([one])[0], np.tanh(one), rtol=1e-4)
    other = compiled.create_infer_request()
    np.testing.assert_allclose(other.infer([one])[0], np.tanh(one), rtol=1e-4)


RUNS = {
    "one device": {"EXECUTION_DEVICES": ["CPU"]},
    "mix": {"EXECUTION_DEVICES": ["XCPU", "CPU"], "HETERO_NUMBER_OF_SUBMODELS": 2},
    "one thread": {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1},
    "the caller's thread": {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 0},
    "lanes": {"EXECUTION_DEVICES": ["CPU"], "NUM_STREAMS": 0},
    "copies": {"OPTIMAL_NUMBER_OF_INFER_REQUESTS": 2, "NUM_STREAMS": 0},
    "mixture": {"OPTIMAL_NUMBER_OF_INFER_REQUESTS": 3, "NUM_STREAMS": 1},
}
"""What a compiled model says of itself."""


def check_runs(compiled: ov.CompiledModel, kind: str) -> None:
    for key, value in RUNS.get(kind, {}).items():
        assert compiled.get_property(key) == value, key


@pytest.mark.parametrize("form", ["bytes", "BytesIO", "own stream", "Tensor"])
def test_an_exported_model_is_imported_in_every_form(core, device, kind, compile_model, form):
    compiled = compile_model()
    check_runs(compiled, kind)
    if kind == "rate":
        with pytest.raises(ModelError, match=r"devices run it together .* compile it for one of them"):
            compiled.export_model()
        return
    if kind == "mix" and not facts().imports_mixes:
        with pytest.raises(ModelError, match=r"takes 2026\.4\.0 or later"):
            compiled.export_model()
        return
    stream: Any = io.BytesIO() if form == "own stream" else compiled.export_model()
    if form == "own stream":
        assert compiled.export_model(stream) is None
        stream.seek(0)
    if form == "bytes":
        stream = stream.getvalue()
    if form == "Tensor":
        stream = ov.Tensor(np.frombuffer(stream.getvalue(), np.uint8))
    again = core.import_model(stream, device)
    assert [port.any_name for port in again.inputs] == ["x", "y"]
    assert again.get_property("EXECUTION_DEVICES") == compiled.get_property("EXECUTION_DEVICES")
    check(again(data()), data())


@pytest.mark.parametrize("blob", [b"", b"no model at all", b"<hetero name"])
def test_what_is_no_exported_model_is_refused(core, device, blob):
    with pytest.raises(RuntimeError):
        core.import_model(blob, device)


@pytest.mark.parametrize("how", ["given", "set on the device", "set on the Core"])
def test_a_second_compile_reads_the_cache(core, device, kind, compile_model, searched, tmp_path, how):
    if how == "set on the device":
        core.set_property(device, {"CACHE_DIR": str(tmp_path)})
        assert core.get_property(device, "CACHE_DIR") == str(tmp_path)
    elif how == "set on the Core":
        core.set_property({"CACHE_DIR": str(tmp_path)})
    more = {"CACHE_DIR": str(tmp_path)} if how == "given" else {}
    check(compile_model(**more)(data()), data())
    blobs = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.blob")}
    read = kind != "mix" or facts().imports_mixes
    assert bool(blobs) is read
    again = compile_model(**more)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.blob")} == blobs
    assert len(searched) <= 1
    check_runs(again, kind)
    check(again(data()), data())
    if kind not in ("lanes", *POOLS):  # in which each part is a model of its own
        assert again.get_property("LOADED_FROM_CACHE") is read


@pytest.mark.parametrize("kind", ["mix", "one thread", "the caller's thread"])
def test_a_file_carries_the_answer(core, device, kind, searched, tmp_path):
    given, plan = model(), KINDS[kind].plan
    placement = ov_autoplace.place(given, "XCPU,CPU", "ZERO_SHOT", core=core, pins=PINS)
    placement = replace(Placement.on_device(given, "CPU"), plan=plan(given)) if plan else placement
    ov_autoplace.annotate(given, placement)
    ov.save_model(given, tmp_path / "model.xml", compress_to_fp16=False)
    compiled = core.compile_model(tmp_path / "model.xml", device, F32)
    assert not searched
    check_runs(compiled, kind)
    check(compiled(data()), data())


@pytest.mark.parametrize("kind", ["CPU", "one device", "mix", "rate"])
def test_query_model_answers_for_every_op(core, device, kind):
    given = model()
    answer = core.query_model(given, device, KINDS[kind].config)
    assert set(answer) == {op.get_friendly_name() for op in given.get_ops()}
    assert set(answer.values()) <= {"CPU", "XCPU"}
    assert kind != "mix" or PINS.items() <= answer.items()


def test_a_model_is_compiled_from_a_file_and_from_memory(core, device, compile_model, kind, tmp_path):
    path = tmp_path / "model.xml"
    ov.save_model(model(), path, compress_to_fp16=False)
    config = {**F32, **KINDS[kind].config}
    for given in (path, str(path)):
        check(compile_model(given)(data()), data())
    check(core.compile_model(model=path, device_name=device, config=config)(data()), data())
    weights = path.with_suffix(".bin").read_bytes()
    check(core.compile_model(path.read_text(), device, config, weights=weights)(data()), data())
    with pytest.raises(RuntimeError):
        compile_model(tmp_path / "missing.xml")
    with pytest.raises((RuntimeError, TypeError)):
        compile_model(3)


CALLBACKS = """
import os
import numpy as np, openvino as ov, ov_autoplace
from openvino import opset13 as ops
x = ops.parameter([8], np.float32)
core, model = ov.Core(), ov.Model([ops.relu(x)], [x])
for _ in range(20):
    config = {"AUTOPLACE_MODE": "ZERO_SHOT", "PERFORMANCE_HINT": "THROUGHPUT"}
    request = core.compile_model(model, "AUTOPLACE:CPU", config).create_infer_request()
    request.set_callback(lambda _: None, None)
    request.start_async({0: np.ones(8, np.float32)})
    request.wait()
    del request
os._exit(0)  # threads of C++ that want the GIL after the end of Python abort the process
"""


def test_compiling_does_not_wait_for_the_threads_of_models_that_are_gone() -> None:
    """They may want the GIL at the end of a callback; who drops a Core that loaded a plugin holds it."""
    done = subprocess.run([sys.executable, "-c", CALLBACKS], timeout=300, capture_output=True, text=True)
    assert not done.returncode, done.stderr
