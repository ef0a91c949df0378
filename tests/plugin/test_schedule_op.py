"""The op autoplace::Schedule answers as one model would, in all ways in which programs use models."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino.preprocess import PrePostProcessor

import ov_autoplace
from ov_autoplace._base.releases import facts
from random_schedules import RandomSchedule, random_schedule
from schedule_ops import (
    CPU_LANES,
    DATA,
    OUTER,
    Part,
    compile_op,
    core_with_op,
    data,
    failing_part,
    profile,
    relu_part,
    schedule,
    tower,
)

F32 = {"INFERENCE_PRECISION_HINT": "f32"}
SHAPE = [4, 8]


def two_branches(name: str = "", **attributes: object) -> ov.Model:
    """ReLU of one input on the first lane, of the other one on the second."""
    parts = [relu_part("first"), relu_part("second", (DATA, 1), lane=1)]
    return schedule([(SHAPE, np.float32)] * 2, parts, [(0, 0), (1, 0)], name=name, attributes=attributes)


def check_two_branches(compiled: ov.CompiledModel) -> None:
    inputs = [data(1), data(2)]
    outputs = compiled(inputs)
    for i, value in enumerate(inputs):
        np.testing.assert_array_equal(outputs[i], np.maximum(value, 0))


def check_random(made: RandomSchedule, compiled: ov.CompiledModel) -> None:
    """Three requests, so that sizes that depend on data change."""
    whole = ov.Core().compile_model(made.whole, "CPU", F32)
    request = compiled.create_infer_request()
    for factor in (1, -1, 0.5):
        inputs = [value * np.float32(factor) for value in made.inputs]
        outputs, expected = request.infer(inputs), whole(inputs)
        for i in range(len(whole.outputs)):
            np.testing.assert_allclose(outputs[i], expected[i], rtol=1e-4, atol=1e-4)


@pytest.mark.seeds(2100, 2140, cost=3)
def test_random_networks_give_the_answers_of_one_model(seed: int) -> None:
    made = random_schedule(seed)
    check_random(made, compile_op(made.scheduled))


def test_a_saved_file_runs_in_another_process_that_knows_no_python_of_ours(tmp_path: Path) -> None:
    made = random_schedule(2140)
    ov.save_model(made.scheduled, tmp_path / "scheduled.xml")
    np.savez(tmp_path / "inputs.npz", *made.inputs)
    program = """if True:
        import sys
        import numpy as np, openvino as ov
        library, folder = sys.argv[1:]
        core = ov.Core()
        core.add_extension(library)
        inputs = np.load(folder + "/inputs.npz")
        compiled = core.compile_model(folder + "/scheduled.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        outputs = compiled([inputs[name] for name in inputs.files])
        np.savez(folder + "/outputs.npz", *[outputs[i] for i in range(len(compiled.outputs))])
        assert not any(name.startswith("ov_autoplace") for name in sys.modules)
    """
    command = [sys.executable, "-c", program, ov_autoplace.extension_path(), str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)

    expected = ov.Core().compile_model(made.whole, "CPU", F32)(made.inputs)
    outputs = np.load(tmp_path / "outputs.npz")
    for i, name in enumerate(outputs.files):
        np.testing.assert_allclose(outputs[name], expected[i], rtol=1e-4, atol=1e-4)


def test_an_exported_model_is_imported_with_its_submodels() -> None:
    made = random_schedule(2141)
    blob = compile_op(made.scheduled).export_model()
    check_random(made, core_with_op().import_model(blob, "CPU", OUTER))


def test_the_second_compilation_of_a_file_comes_from_the_cache(tmp_path: Path) -> None:
    made = random_schedule(2142)
    ov.save_model(made.scheduled, tmp_path / "scheduled.xml")
    for from_cache in (False, True):
        compiled = compile_op(tmp_path / "scheduled.xml", CACHE_DIR=str(tmp_path / "cache"))
        assert compiled.get_property("LOADED_FROM_CACHE") == from_cache
        check_random(made, compiled)


@pytest.mark.parametrize("device", ["CPU", "AUTO:CPU", "MULTI:CPU", "BATCH:CPU", "HETERO:CPU"])
def test_devices_that_forward_to_the_cpu_run_it(device: str, tmp_path: Path) -> None:
    model = two_branches()
    ov.save_model(model, tmp_path / "scheduled.xml")
    core = core_with_op()
    for way in (model, model.clone(), core.read_model(tmp_path / "scheduled.xml")):
        check_two_branches(core.compile_model(way, device, F32))


def test_what_a_preprocessor_adds_runs_outside() -> None:
    steps = PrePostProcessor(two_branches())
    steps.input(0).tensor().set_element_type(ov.Type.u8)
    steps.output(1).tensor().set_element_type(ov.Type.f16)
    numbers = np.arange(32, dtype=np.uint8).reshape(SHAPE)

    outputs = compile_op(steps.build())([numbers, data(2)])

    np.testing.assert_array_equal(outputs[0], numbers.astype(np.float32))
    np.testing.assert_array_equal(outputs[1], np.maximum(data(2), 0).astype(np.float16))


def test_lanes_have_the_precision_that_they_say() -> None:
    exact, rough = (
        schedule(
            [([1, 64], np.float32)],
            [Part(tower("tower", 6, 64, seed=3), [(DATA, 0)])],
            [(0, 0)],
            [("CPU", CPU_LANES[0][1] | {"INFERENCE_PRECISION_HINT": precision})],
        )
        for precision in ("f32", "bf16")
    )
    inputs = [data(5, [1, 64])]
    single = ov.Core().compile_model(tower("tower", 6, 64, seed=3), "CPU", F32)(inputs)[0]

    np.testing.assert_allclose(compile_op(exact)(inputs)[0], single, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(compile_op(rough)(inputs)[0], single, rtol=0.1, atol=0.1)
    if "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        assert not np.allclose(compile_op(rough)(inputs)[0], single, rtol=1e-5, atol=1e-6)


def test_the_outputs_of_several_streams_belong_to_their_requests() -> None:
    made = random_schedule(2143)
    whole = ov.Core().compile_model(made.whole, "CPU", F32)
    inputs = [[value * np.float32(k) for value in made.inputs] for k in (-2, -1, 1, 2, 3)]
    expected = [[whole(values)[i].copy() for i in range(len(whole.outputs))] for values in inputs]
    wrong = []

    def compare(request: ov.InferRequest, k: int) -> None:
        outputs = [request.get_output_tensor(i).data for i in range(len(expected[k]))]
        if not all(
            np.allclose(*both, rtol=1e-4, atol=1e-4) for both in zip(outputs, expected[k], strict=True)
        ):
            wrong.append(k)

    queue = ov.AsyncInferQueue(compile_op(made.scheduled, NUM_STREAMS="3", INFERENCE_NUM_THREADS="3"), 5)
    queue.set_callback(compare)
    for turn in range(1000):
        queue.start_async(inputs[turn % len(inputs)], turn % len(inputs))
    queue.wait_all()

    assert not wrong


def test_two_models_of_one_share_their_submodels_and_answer_both() -> None:
    model = two_branches()
    first, second = compile_op(model), compile_op(model)
    for compiled in (first, second, first):
        check_two_branches(compiled)
    assert profile(model.get_friendly_name())["runs"] == 3


def test_tensors_may_change_from_request_to_request() -> None:
    request = compile_op(two_branches()).create_infer_request()
    for turn in range(5):
        inputs, output = [data(turn), data(turn + 10)], np.empty(SHAPE, np.float32)
        for i in range(2):
            request.set_input_tensor(i, ov.Tensor(inputs[i], shared_memory=True))
        request.set_output_tensor(1, ov.Tensor(output, shared_memory=True))
        request.infer()
        np.testing.assert_array_equal(request.get_output_tensor(0).data, np.maximum(inputs[0], 0))
        np.testing.assert_array_equal(output, np.maximum(inputs[1], 0))


def test_an_output_may_be_an_input_and_an_output_may_come_twice() -> None:
    compiled = compile_op(
        schedule(
            [(SHAPE, np.float32)],
            [relu_part("a"), relu_part("b", (0, 0))],
            [(0, 0), (DATA, 0), (0, 0), (1, 0)],
        )
    )
    for turn in range(3):
        outputs = compiled([data(turn)])
        np.testing.assert_array_equal(outputs[1], data(turn))
        for i in (0, 2, 3):
            np.testing.assert_array_equal(outputs[i], np.maximum(data(turn), 0))


def test_a_chain_wakes_nobody_whatever_its_lanes() -> None:
    parts = [relu_part(f"link {i}", (i - 1, 0), lane=i % 3) for i in range(6)]
    parts[0] = parts[0]._replace(sources=[(DATA, 0)])
    lanes = [*CPU_LANES, ("CPU", CPU_LANES[0][1] | {"PERF_COUNT": "YES"})]
    compiled = compile_op(schedule([(SHAPE, np.float32)], parts, [(5, 0)], lanes, "chain"))
    for _ in range(200):
        compiled([data(1)])

    known = profile("chain")

    assert (known["runs"], known["wakes"], known["helped"]) == (200, 0, 0)


def test_branches_run_at_once_where_a_worker_is_awake() -> None:
    towers = [Part(tower(f"tower {i}", 24, 256, i), [(DATA, 0)], lane=i, rank=i) for i in range(2)]
    compiled = compile_op(schedule([([1, 256], np.float32)], towers, [(0, 0), (1, 0)], name="branches"))
    inputs = [data(1, [1, 256])]
    for _ in range(2000):
        compiled(inputs)
        first, second = profile("branches")["submodels"]
        if first["lane"] != second["lane"]:
            break
    assert {first["lane"], second["lane"]} == {0, 1}
    assert first["start_us"] < second["finish_us"]
    assert second["start_us"] < first["finish_us"]


def test_the_profile_has_the_nodes_of_submodels_that_count() -> None:
    lanes = [("CPU", CPU_LANES[0][1] | {"PERF_COUNT": "YES"}), CPU_LANES[1]]
    name = 'a "name", %'
    compiled = compile_op(
        schedule(
            [(SHAPE, np.float32)], [relu_part(name), relu_part("b", lane=1)], [(0, 0), (1, 0)], lanes, "op"
        )
    )
    assert profile("op")["submodels"] == []
    compiled([data(1)])

    counting, other = profile("op")["submodels"]

    assert (counting["name"], counting["device"], other["name"]) == (name, "CPU", "b")
    assert any(node["status"] == "EXECUTED" for node in counting["nodes"])
    assert not any(node["status"] == "EXECUTED" for node in other["nodes"])
    del compiled
    assert profile("op") == {}


@pytest.mark.alone
@pytest.mark.parametrize(
    "outer", [{}, {"INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "0"}, OUTER, {"NUM_STREAMS": "2"}]
)
def test_a_submodel_that_fails_says_so_and_the_request_goes_on(outer: dict[str, str]) -> None:
    parts = [relu_part("a"), failing_part("rows, 3 %", (0, 0), (DATA, 1), lane=1), relu_part("c", (0, 0))]
    model = schedule([(SHAPE, np.float32), ([1, 1], np.int32)], parts, [(1, 0), (2, 0)])
    request = core_with_op().compile_model(model, "CPU", {**F32, **outer}).create_infer_request()
    good, bad = ([data(1), np.array([[row]], np.int32)] for row in (2, 9))
    expected = np.maximum(data(1), 0)
    expected[2] = 1
    for _ in range(20):
        np.testing.assert_array_equal(request.infer(good)[0], expected)
        with pytest.raises(RuntimeError, match=r"submodel 'rows, 3 %' on CPU: .*indices"):
            request.infer(bad)
        request.start_async(bad)
        with pytest.raises(RuntimeError, match=r"submodel 'rows, 3 %' on CPU: .*indices"):
            request.wait()


def test_submodels_are_compiled_with_the_model_and_not_when_it_is_read(tmp_path: Path) -> None:
    ov.save_model(two_branches(lanes=["CPU", "NOWHERE"]), tmp_path / "scheduled.xml")
    model = core_with_op().read_model(tmp_path / "scheduled.xml")
    model.clone()
    with pytest.raises(RuntimeError, match=r"submodel 'second' on NOWHERE cannot be compiled: .*NOWHERE"):
        compile_op(model)


def test_an_unusable_cache_of_a_lane_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    lanes = [("CPU", CPU_LANES[0][1] | {"CACHE_DIR": str(tmp_path / "file" / "cache")})]
    compiled = compile_op(schedule([(SHAPE, np.float32)], [relu_part("a")], [(0, 0)], lanes))
    np.testing.assert_array_equal(compiled([data(1)])[0], np.maximum(data(1), 0))


@pytest.mark.skipif(not facts().runs_after_fork, reason="this OpenVINO runs no lanes in a forked process")
@pytest.mark.parametrize("streams", ["0", "1"])
def test_a_forked_process_runs_it_too(streams: str) -> None:
    """With streams, OpenVINO's own threads keep a forked process from releasing any compiled model."""
    program = f"""if True:
        import os, signal
        from test_schedule_op import check_two_branches, compile_op, two_branches
        compiled = compile_op(two_branches(), NUM_STREAMS="{streams}")
        for _ in range(200):
            check_two_branches(compiled)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            for _ in range(200):
                check_two_branches(compiled)
            if {streams} == 0:
                del compiled
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        check_two_branches(compiled)
        assert status == 0, status
    """
    folders = [str(Path(__file__).parents[level]) for level in range(2)]
    code = f"import sys; sys.path[:0] = {folders}\n{program}"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_many_threads_with_models_of_their_own_share_one_op() -> None:
    def work(model: ov.Model) -> None:
        compiled = compile_op(model)
        for _ in range(100):
            check_two_branches(compiled)

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(work, [two_branches()] * 8)]  # which raises what one of them did
