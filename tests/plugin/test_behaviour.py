"""What OpenVINO's Python API promises of a device: compiled models, requests, queues, shapes, blobs.

Every test runs on the plain CPU as well, which is what AUTOPLACE is compared with.
"""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino.preprocess import PrePostProcessor

from ov_autoplace.errors import ModelError

ESTIMATED = {"AUTOPLACE_MODE": "ZERO_SHOT"}
PINS = {"first": "XCPU", "second": "CPU"}
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
# A device name and what goes with it: OpenVINO's own, one device, a mix of two, many requests.
DEVICES: dict[str, tuple[str, dict[str, Any]]] = {
    "CPU": ("CPU", {}),
    "one device": ("AUTOPLACE:CPU", ESTIMATED),
    "mix": ("AUTOPLACE:XCPU,CPU", {**ESTIMATED, "AUTOPLACE_PINS": PINS}),
    "rate": ("AUTOPLACE:XCPU,CPU", {**ESTIMATED, "PERFORMANCE_HINT": "THROUGHPUT"}),
    "copies": ("AUTOPLACE:CPU", {"PERFORMANCE_HINT": "THROUGHPUT", "AUTOPLACE_TIME_BUDGET_MS": 300}),
}
Compile = Callable[..., ov.CompiledModel]


def model(batch: int = 2) -> ov.Model:
    """Two inputs, two outputs: a product with a row that is normalised, and its sum."""
    x = ops.parameter([batch, 8], np.float32, name="x")
    y = ops.parameter([8], np.float32, name="y")
    first = ops.multiply(x, ops.softmax(y, 0), name="first")
    second = ops.reduce_sum(first, ops.constant([1]), True, name="second")
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


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def name(device: str) -> str:
    return DEVICES[device][0]


@pytest.fixture
def core(unequal_pair: ov.Core, device: str) -> ov.Core:
    """Both devices; AUTOPLACE is not kept from choosing threads where it shall make copies."""
    return ov.Core() if device == "copies" else unequal_pair


@pytest.fixture
def compile_model(core: ov.Core, device: str) -> Compile:
    name, config = DEVICES[device]

    def compile_model(given: Any = None, **more: Any) -> ov.CompiledModel:
        return core.compile_model(model() if given is None else given, name, {**F32, **config, **more})

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
    compiled, failures = compile_model(), []

    def work(seed: int) -> None:
        try:
            request = compiled.create_infer_request()
            for i in range(20):
                check(request.infer(data(seed=seed + i)), data(seed=seed + i))
        except BaseException as cause:
            failures.append(cause)

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_requests_outlive_the_compiled_model_and_the_core(unequal_pair, device):
    name, config = DEVICES[device]
    request = ov.Core() if device == "copies" else unequal_pair
    request = request.compile_model(model(), name, {**F32, **config}).create_infer_request()
    check(request.infer(data()), data())


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
    np.testing.assert_allclose(state.state.data, 0.75 * np.ones((1, 4)), rtol=1e-4)
    request.reset_state()
    np.testing.assert_allclose(request.infer([one])[0], np.tanh(one), rtol=1e-4)
    other = compiled.create_infer_request()
    np.testing.assert_allclose(other.infer([one])[0], np.tanh(one), rtol=1e-4)


@pytest.mark.parametrize("form", ["bytes", "BytesIO", "own stream", "Tensor"])
def test_an_exported_model_is_imported_in_every_form(core, name, device, compile_model, form):
    compiled = compile_model()
    if device == "rate":
        with pytest.raises(ModelError, match=r"devices run it together .* compile it for one of them"):
            compiled.export_model()
        return
    stream: Any = io.BytesIO() if form == "own stream" else compiled.export_model()
    if form == "own stream":
        compiled.export_model(stream)
        stream.seek(0)
    if form == "bytes":
        stream = stream.getvalue()
    if form == "Tensor":
        stream = ov.Tensor(np.frombuffer(stream.getvalue(), np.uint8))
    again = core.import_model(stream, name)
    assert [port.any_name for port in again.inputs] == ["x", "y"]
    assert again.get_property("EXECUTION_DEVICES") == compiled.get_property("EXECUTION_DEVICES")
    check(again(data()), data())


@pytest.mark.parametrize("blob", [b"", b"no model at all", b"<hetero name"])
def test_what_is_no_exported_model_is_refused(core, name, blob):
    with pytest.raises(RuntimeError):
        core.import_model(blob, name)


@pytest.mark.parametrize("how", ["given", "set on the device", "set on the Core"])
def test_a_second_compile_reads_the_cache(core, name, device, compile_model, tmp_path, how):
    if how == "set on the device":
        core.set_property(name, {"CACHE_DIR": str(tmp_path)})
        assert core.get_property(name, "CACHE_DIR") == str(tmp_path)
    elif how == "set on the Core":
        core.set_property({"CACHE_DIR": str(tmp_path)})
    more = {"CACHE_DIR": str(tmp_path)} if how == "given" else {}
    check(compile_model(**more)(data()), data())
    blobs = {path.name for path in tmp_path.glob("*.blob")}
    assert blobs
    again = compile_model(**more)
    assert {path.name for path in tmp_path.glob("*.blob")} == blobs
    check(again(data()), data())
    if device != "copies":  # of which each is a model of its own
        assert again.get_property("LOADED_FROM_CACHE")


def test_query_model_answers_for_every_op(core, name, device):
    given = model()
    answer = core.query_model(given, name, DEVICES[device][1])
    assert set(answer) == {op.get_friendly_name() for op in given.get_ops()}
    assert set(answer.values()) <= {"CPU", "XCPU"}


def test_a_model_is_compiled_from_a_file_and_from_memory(core, name, device, tmp_path: Path):
    path = tmp_path / "model.xml"
    ov.save_model(model(), path, compress_to_fp16=False)
    config = {**F32, **DEVICES[device][1]}
    check(core.compile_model(path, name, config)(data()), data())
    weights = path.with_suffix(".bin").read_bytes()
    check(core.compile_model(path.read_text(), name, config, weights=weights)(data()), data())
    with pytest.raises(RuntimeError):
        core.compile_model(tmp_path / "missing.xml", name, config)
    with pytest.raises((RuntimeError, TypeError)):
        core.compile_model(3, name, config)


CALLBACKS = """
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
"""


def test_compiling_does_not_wait_for_the_threads_of_models_that_are_gone() -> None:
    """They may want the GIL at the end of a callback; who drops a Core that loaded a plugin holds it."""
    done = subprocess.run([sys.executable, "-c", CALLBACKS], timeout=300, capture_output=True, text=True)
    assert not done.returncode, done.stderr
