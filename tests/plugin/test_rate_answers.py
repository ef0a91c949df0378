"""Models compiled for many requests in flight: plans, requests that are dealt out, what is kept in a
cache."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from candidates import FOUND
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import OptionError
from ov_autoplace.placement.decision import Decision
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.plan import PoolPlan, SplitPlan, WholePlan
from ov_autoplace.plugin.compilation import _Compiler, compile_placed
from ov_autoplace.plugin.dealing import DealingModel

pytestmark = pytest.mark.alone

CALLER = WholePlan("CPU", Width(1, in_caller=True))
THROUGHPUT = {"PERFORMANCE_HINT": "THROUGHPUT"}
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
HINTED = WholePlan("CPU", properties=THROUGHPUT)
COPIES = PoolPlan("2 x CPU", CALLER, (CALLER, CALLER), requests=2)


@functools.cache
def _two_outputs() -> ov.Model:
    width = 16
    random = np.random.default_rng(0)
    x = ops.parameter([1, width], np.float32, name="x")
    y = ops.matmul(x, ops.constant(random.normal(size=(width, width)).astype(np.float32)), False, False)
    second = ops.sigmoid(y)
    second.output(0).set_names({"second"})
    return ov.Model([ops.result(ops.relu(y), name="first"), ops.result(second, name="last")], [x], "two")


def two_outputs() -> ov.Model:
    return _two_outputs().clone()  # with the same names every time


def compiled_by(plan: PoolPlan, core: ov.Core | None = None, **properties: str) -> ov.CompiledModel:
    core = core or ov.Core()
    options = PlacerOptions(properties={**THROUGHPUT, **EXACT, **properties})
    model = two_outputs()

    def search(machine: Machine, model: ov.Model) -> Placement:
        names = [op.get_friendly_name() for op in model.get_ordered_ops()]
        return replace(Placement.from_dict(dict.fromkeys(names, "CPU")), plan=plan)

    return compile_placed(Machine(core, ("CPU",), options), model, core.compile_model, search=search)


@pytest.fixture
def expected() -> tuple[np.ndarray, list[np.ndarray]]:
    x = np.random.default_rng(1).normal(size=(1, 16)).astype(np.float32)
    return x, list(ov.Core().compile_model(two_outputs(), "CPU", EXACT)(x).to_tuple())


def test_a_plan_of_one_model_is_that_model() -> None:
    compiled = compiled_by(PoolPlan("CPU THROUGHPUT", HINTED))
    assert type(compiled) is ov.CompiledModel
    assert str(compiled.get_property("PERFORMANCE_HINT")).endswith("THROUGHPUT")


def test_requests_of_every_copy_give_the_results_by_all_keys(expected) -> None:
    x, results = expected
    compiled = compiled_by(COPIES)
    assert isinstance(compiled, ov.CompiledModel)
    assert compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 2
    assert compiled.get_property(ov.properties.optimal_number_of_infer_requests) == 2
    assert compiled.get_property("INFERENCE_NUM_THREADS") is not None
    for inputs in (x, {0: x}, {"x": x}, {compiled.input(0): x}):
        for _ in range(3):
            request = compiled.create_infer_request()
            found = request.infer(inputs)
            for i, result in enumerate(results):
                assert np.allclose(found[compiled.output(i)], result, atol=1e-5)
                assert np.allclose(found[i], result, atol=1e-5)
                assert np.allclose(request.get_tensor(compiled.output(i)).data, result, atol=1e-5)
            assert np.allclose(found["second"], results[1], atol=1e-5)
            request.start_async(inputs)
            request.wait()
            assert np.allclose(request.results[compiled.output(1)], results[1], atol=1e-5)
    assert np.allclose(compiled(x)[compiled.output(0)], results[0], atol=1e-5)
    assert np.allclose(compiled.infer_new_request(x)[0], results[0], atol=1e-5)


def test_requests_take_turns_and_the_first_copy_is_the_base() -> None:
    core, made = ov.Core(), []

    class Counting:
        def __init__(self, compiled: ov.CompiledModel) -> None:
            self.compiled, self.requests = compiled, 0

        def create_infer_request(self) -> ov.InferRequest:
            self.requests += 1
            return self.compiled.create_infer_request()

    compiled = core.compile_model(two_outputs(), "CPU")
    members = [Counting(compiled), Counting(compiled)]
    dealing = DealingModel(compiled, members, (0, 1, 1), 3)
    requests = [dealing.create_infer_request() for _ in range(7)]
    assert len(requests) == 7
    assert [member.requests for member in members] == [3, 4]

    options = PlacerOptions(properties=THROUGHPUT)

    def compile_native(*arguments: object) -> ov.CompiledModel:
        made.append(arguments)
        return core.compile_model(*arguments)

    placed = Placement.from_dict({op.get_friendly_name(): "CPU" for op in two_outputs().get_ops()})
    compile_placed(
        Machine(core, ("CPU",), options),
        two_outputs(),
        compile_native,
        search=lambda *_: replace(placed, plan=COPIES),
    )
    assert len(made) == 2  # two copies, of which one is the base
    assert all("PERFORMANCE_HINT" not in config for _, _, config in made)


def test_many_threads_and_a_queue_get_their_own_results() -> None:
    compiled = compiled_by(COPIES)
    reference = ov.Core().compile_model(two_outputs(), "CPU", EXACT)
    inputs = np.random.default_rng(2).normal(size=(400, 1, 16)).astype(np.float32)
    wanted = [reference(x)[0].copy() for x in inputs]
    found: list[np.ndarray | None] = [None] * len(inputs)

    def work(first: int) -> None:
        request = compiled.create_infer_request()
        for i in range(first, len(inputs), 4):
            found[i] = request.infer(inputs[i])[0].copy()

    threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(found, wanted, strict=True))
    queued: dict[int, np.ndarray] = {}
    queue = ov.AsyncInferQueue(compiled, 3)
    queue.set_callback(lambda request, i: queued.__setitem__(i, request.get_output_tensor(0).data.copy()))
    for i, x in enumerate(inputs):
        queue.start_async({0: x}, i)
    queue.wait_all()
    assert all(np.allclose(queued[i], wanted[i], atol=1e-5) for i in range(len(inputs)))


def test_a_request_outlives_what_dealt_it_out(expected) -> None:
    x, results = expected
    request = compiled_by(COPIES).create_infer_request()
    assert np.allclose(request.infer(x)[0], results[0], atol=1e-5)


def test_a_plan_is_kept_apart_from_a_decision_for_latency(tmp_path) -> None:
    core = ov.Core()
    core.set_property({"CACHE_DIR": str(tmp_path)})
    first = compiled_by(COPIES, core)
    assert isinstance(first, DealingModel)
    stored = list(tmp_path.glob("autoplace-*.json"))
    assert len(stored) == 1
    again = compiled_by(PoolPlan("another", HINTED), core)
    assert isinstance(again, DealingModel)  # nothing was searched
    latency = core.compile_model(two_outputs(), "AUTOPLACE:CPU", {**EXACT, "AUTOPLACE_TIME_BUDGET_MS": 0})
    assert not isinstance(latency, DealingModel)


def test_a_pipeline_is_not_taken_from_the_blob_of_one_with_other_properties(unequal_pair, tmp_path) -> None:
    names = [op.get_friendly_name() for op in two_outputs().get_ordered_ops()]
    device_of = {name: "CPU" if i > len(names) // 2 else "XCPU" for i, name in enumerate(names)}
    machine = Machine(unequal_pair, ("XCPU", "CPU"), PlacerOptions(properties=THROUGHPUT))
    unequal_pair.set_property({"CACHE_DIR": str(tmp_path)})
    for streams in (1, 2):
        own = f"{{XCPU:{{NUM_STREAMS:{streams}}},CPU:{{NUM_STREAMS:{streams}}}}}"
        plan = PoolPlan("pipeline", SplitPlan.of(device_of, {"DEVICE_PROPERTIES": own}))
        plan.compile(_Compiler(machine, two_outputs(), unequal_pair.compile_model))
    assert len(list(tmp_path.glob("*.blob"))) == 2


@pytest.mark.parametrize(
    ("answer", "searches", "mark"), [(True, 0, False), (None, 0, True), (False, 1, False)]
)
def test_a_plan_from_a_busy_machine_is_checked_at_the_next_compile(answer, searches, mark, tmp_path) -> None:
    core, searched, checked = ov.Core(), [], []
    machine = Machine(
        core, ("CPU",), PlacerOptions(properties={**THROUGHPUT, **EXACT, "CACHE_DIR": str(tmp_path)})
    )

    def search(disturbed: bool) -> Callable[[Machine, ov.Model], Placement]:
        decision = Decision(COPIES.name, FOUND, "PROFILE", (), {}, disturbed=disturbed)

        def found(_: Machine, model: ov.Model) -> Placement:
            searched.append(model)
            names = [op.get_friendly_name() for op in model.get_ordered_ops()]
            return replace(Placement.from_dict(dict.fromkeys(names, "CPU")), plan=COPIES, decision=decision)

        return found

    def confirm(_: Machine, __: ov.Model, plan: PoolPlan) -> bool | None:
        checked.append(plan)
        return answer

    def mark_of_entry() -> bool:
        (entry,) = tmp_path.glob("autoplace-*.json")
        return json.loads(entry.read_text())["disturbed"]

    compile_placed(machine, two_outputs(), core.compile_model, search=search(True), confirm=confirm)
    assert mark_of_entry() is True
    assert (len(searched), checked) == (1, [])
    compile_placed(machine, two_outputs(), core.compile_model, search=search(False), confirm=confirm)
    assert (len(searched), checked) == (1 + searches, [COPIES])
    assert mark_of_entry() is mark
    compile_placed(machine, two_outputs(), core.compile_model, search=search(False), confirm=confirm)
    assert len(checked) == 1 + mark  # what is settled is not checked again


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(version=0),
        lambda data: data.update(disturbed="no"),
        lambda data: data["plan"].update(requests=0),
        lambda data: data["plan"].update(turns=[7]),
        lambda data: data["plan"]["base"].update(device="GPU"),
        lambda data: data["plan"]["base"].update(device="AUTO:GPU,CPU"),
        lambda data: data["plan"]["base"].update(kind="split", device_of={"x": "CPU"}),
        lambda data: data["plan"]["base"].update(properties={"NUM_STREAMS": 1}),
        lambda data: data["plan"]["base"].update(properties={"NUM_STREAMS": "many"}),
        lambda data: data.update(plan=[]),
        lambda data: data.pop("plan"),
    ],
)
def test_a_damaged_plan_is_made_anew(change, tmp_path, caplog) -> None:
    core = ov.Core()
    core.set_property({"CACHE_DIR": str(tmp_path)})
    compiled_by(COPIES, core)
    (stored,) = tmp_path.glob("autoplace-*.json")
    data = json.loads(stored.read_text())
    change(data)
    stored.write_text(json.dumps(data))
    compiled = compiled_by(PoolPlan("CPU THROUGHPUT", HINTED), core)
    assert not isinstance(compiled, DealingModel)
    assert "is made anew" in caplog.text
    assert json.loads(stored.read_text())["plan"]["name"] == "CPU THROUGHPUT"


def test_copies_take_turns() -> None:
    assert COPIES.order == (0, 1)


def test_the_hint_can_be_set_on_the_device() -> None:
    core = ov.Core()
    modes = ov.properties.hint.PerformanceMode
    assert core.get_property("AUTOPLACE", "PERFORMANCE_HINT") == modes.LATENCY
    core.set_property("AUTOPLACE", {ov.properties.hint.performance_mode(): "throughput"})
    assert core.get_property("AUTOPLACE", "PERFORMANCE_HINT") == modes.THROUGHPUT
    assert "PERFORMANCE_HINT" in core.get_property("AUTOPLACE", "SUPPORTED_PROPERTIES")
    compiled = core.compile_model(two_outputs(), "AUTOPLACE:CPU", {"AUTOPLACE_TIME_BUDGET_MS": 0})
    assert str(compiled.get_property("PERFORMANCE_HINT")).endswith("THROUGHPUT")
    mode = modes.CUMULATIVE_THROUGHPUT
    core.set_property("AUTOPLACE", {ov.properties.hint.performance_mode(): mode})
    assert core.get_property("AUTOPLACE", "PERFORMANCE_HINT") == mode
    with pytest.raises(OptionError, match="FAST"):
        core.set_property("AUTOPLACE", {"PERFORMANCE_HINT": "FAST"})
    assert core.get_property("AUTOPLACE", "PERFORMANCE_HINT") == mode
