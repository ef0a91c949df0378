"""What candidates compute is compared: who is refused, who is not, and who is right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace import _core
from ov_autoplace._base.budget import Budget
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.outputs import OutputCheck, is_random, tolerance_of
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.findings import sentence
from places import CPU_PLUGIN

WIDTH = 32


@pytest.fixture
def core() -> ov.Core:
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    core.set_property("XCPU", {"INFERENCE_PRECISION_HINT": "bf16"})
    return core


def layer(scale: float = 1.0, seed: int = 0) -> ov.Model:
    """Two layers with weights of a seed."""
    random = np.random.default_rng(seed)
    x = ops.parameter([8, WIDTH], np.float32, name="x")
    first = ops.constant(random.standard_normal((WIDTH, WIDTH)).astype(np.float32))
    second = ops.constant(scale * random.standard_normal((WIDTH, WIDTH)).astype(np.float32))
    hidden = ops.relu(ops.matmul(x, first, False, False))
    return ov.Model([ops.result(ops.matmul(hidden, second, False, False))], [x])


class Bench:
    """A session whose candidates may be other models with the same inputs, as a wrong device would be."""

    def __init__(self, core: ov.Core, model: ov.Model, folder: Path, devices: tuple[str, ...]) -> None:
        self.session = ProfilingSession(
            core, model, devices, device_properties(core, devices), isolation=False
        )
        self.folder = folder

    def compiled(self, model: ov.Model, device: str = "CPU") -> _core.Executable:
        folder = self.folder / str(len(list(self.folder.iterdir())))
        folder.mkdir()
        return self.session.profiler.compile(str(save_ir(model, folder)), device, seed=self.session.seed)


@pytest.fixture
def bench(core: ov.Core, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(core, layer(), tmp_path, ("CPU",))
    with made.session:
        yield made


def outputs_of(executable: _core.Executable, path: Path) -> str:
    executable.save_outputs(str(path))
    return str(path)


def constants(*values: np.ndarray) -> ov.Model:
    """A model whose outputs are given."""
    unused = ops.parameter([1], np.float32, name="unused")
    return ov.Model([*map(ops.result, map(ops.constant, values)), ops.result(ops.relu(unused))], [unused])


# ---- the difference of two answers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        (np.float32([1, -4, 2]), np.float32([1, -4, 3]), 1 / 4),
        (np.float32([1, 2]), np.float32([1, 2]), 0),
        (np.float32([0, 0]), np.float32([0, 0]), 0),
        (np.float32([2, -1]), np.float32([-2, 1]), 2),
        (np.float32([np.nan, np.inf, -np.inf, 8]), np.float32([np.nan, np.inf, -np.inf, 7]), 1 / 8),
        (np.float32([np.inf, 1]), np.float32([-np.inf, 1]), 2),
        (np.float32([np.nan, 1]), np.float32([0, 1]), 2),
        (np.float16([1, 2]), np.float16([1, 1.5]), 1 / 4),
        (np.float64([1, 2]), np.float64([1, 1.5]), 1 / 4),
        (np.int32([1, 2, 3, 4]), np.int32([1, 2, 3, 9]), 1 / 4),
        (np.uint8([1, 2, 3, 4]), np.uint8([0, 2, 3, 9]), 1 / 2),
        (np.array([True, False]), np.array([True, True]), 1 / 2),
        (np.float32([1, 2]), np.float32([1, 2, 3]), 2),
        (np.float32([1, 2]), np.float32([[1, 2]]), 2),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), 0),
        (np.float32([1e-9, 0]), np.float32([0, 0]), 1e-3),  # beside the smallest number that counts, 1e-6
    ],
    ids=repr,
)
def test_a_difference_is_relative_to_the_largest_magnitude_or_a_share(
    bench: Bench, tmp_path: Path, one: np.ndarray, other: np.ndarray, difference: float
) -> None:
    paths = [
        outputs_of(bench.compiled(constants(value)), tmp_path / name)
        for value, name in ((one, "one"), (other, "other"))
    ]

    found = _core.output_differences(*paths, smallest=1e-6)

    assert found == pytest.approx([difference, 0.0], rel=1e-6)
    assert _core.output_differences(*paths[::-1], smallest=1e-6) == found


def test_outputs_that_cannot_be_written_or_read_are_an_error(bench: Bench, tmp_path: Path) -> None:
    executable = bench.compiled(layer())
    with pytest.raises(_core.ProfilerError, match="cannot be written"):
        executable.save_outputs(str(tmp_path / "nowhere" / "outputs"))
    path = outputs_of(executable, tmp_path / "outputs")
    os.truncate(path, 40)
    with pytest.raises(_core.ProfilerError, match="cannot be read"):
        _core.output_differences(path, path, 1e-6)


# ---- who is right -----------------------------------------------------------------------------------------


def test_candidates_that_compute_the_same_are_right(bench: Bench) -> None:
    outputs = bench.session.compare_outputs("AUTO", Budget(60))
    outputs.note("CPU", bench.compiled(layer()), "CPU")
    outputs.note("other", bench.compiled(layer(1 + 1e-5)), "other")

    assert outputs.difference("CPU") == 0
    assert outputs.difference("other") == pytest.approx(1e-5, rel=0.05)
    assert not outputs.is_wrong("CPU")
    assert not outputs.is_wrong("other")
    assert outputs.findings(is_chosen_wrong=False) == ()
    assert outputs.difference("nobody") is None


def test_who_differs_from_the_model_run_op_by_op_is_wrong(bench: Bench) -> None:
    outputs = bench.session.compare_outputs("AUTO", Budget(60))
    outputs.note("right", bench.compiled(layer()), "right")
    outputs.note("wrong", bench.compiled(layer(seed=1)), "wrong")

    assert outputs.is_wrong("wrong")
    assert not outputs.is_wrong("right")
    assert outputs.difference("wrong") > 0.5
    assert "wrong" in sentence(outputs.findings(is_chosen_wrong=False))


@pytest.mark.parametrize("wrong", [1, 2])
def test_the_reference_is_wrong_where_it_is_the_odd_one_out(bench: Bench, wrong: int) -> None:
    """However many share its mistake: they are outvoted by the model run op by op."""
    outputs = bench.session.compare_outputs("AUTO", Budget(60))
    for i in range(wrong):
        outputs.note(f"wrong {i}", bench.compiled(layer(seed=1)), f"way {i}")
    outputs.note("right", bench.compiled(layer()), "right")

    assert [outputs.is_wrong(f"wrong {i}") for i in range(wrong)] == [True] * wrong
    assert not outputs.is_wrong("right")
    assert outputs.difference("right") < 1e-5
    assert outputs.difference("wrong 0") > 0.5


def test_a_reference_that_is_alone_is_wrong_where_the_reference_implementations_say_so(bench: Bench) -> None:
    outputs = bench.session.compare_outputs("AUTO", Budget(60))
    outputs.note("CPU", bench.compiled(layer(seed=1)), "CPU")

    assert outputs.is_wrong("CPU")
    assert outputs.difference("CPU") > 0.5


def failing(*_: object, **__: object) -> list[float]:
    raise ProfilingError("it takes too long")


@pytest.mark.parametrize(
    ("answers", "wrong"),
    [
        # by making: of a device alone (CPU, GPU) or of a mix; weights with another seed are another answer
        ([("CPU", 0), ("mix", 0), ("other mix", 1)], {"other mix"}),
        ([("CPU", 1), ("mix", 0), ("other mix", 0)], {"CPU"}),
        ([("CPU", 0), ("mix", 1)], {"mix"}),
        ([("mix", 1), ("CPU", 0)], {"mix"}),
        ([("CPU", 0), ("GPU", 1)], set()),
        ([("mix", 0), ("other mix", 1)], set()),
        ([("CPU", 0), ("GPU", 1), ("mix", 0)], {"GPU"}),
    ],
)
def test_without_it_most_are_right_and_devices_before_mixes(
    bench: Bench, answers: list[tuple[str, int]], wrong: set[str]
) -> None:
    session, folder = bench.session, bench.session._ir.parent
    outputs = OutputCheck(
        session.model,
        ["f32"],
        ["CPU", "GPU"],
        folder,
        failing,
        tolerance="AUTO",
        budget=Budget(60),
        is_firm=False,
    )
    for name, seed in answers:
        outputs.note(name, bench.compiled(layer(seed=seed)), name)
    assert {name for name, _ in answers if outputs.is_wrong(name)} == wrong
    assert all(name in sentence(outputs.findings(is_chosen_wrong=False)) for name in wrong or {answers[1][0]})


# ---- what is explained ------------------------------------------------------------------------------------


def test_precision_explains_what_a_number_does_not(core: ov.Core, tmp_path: Path) -> None:
    bench = Bench(core, layer(), tmp_path, ("CPU", "XCPU"))
    with bench.session:
        for tolerance, is_wrong in (("AUTO", False), (1e-4, True), (0.5, False)):
            outputs = bench.session.compare_outputs(tolerance, Budget(60))
            outputs.note("CPU", bench.compiled(layer()), "CPU")
            outputs.note("XCPU", bench.compiled(layer(), "XCPU"), "XCPU")
            assert 1e-4 < outputs.difference("XCPU") < 0.05  # bf16
            assert outputs.is_wrong("XCPU") is is_wrong
            assert not outputs.is_wrong("CPU")


def test_the_tolerance_grows_with_roundoff_and_depth_between_bounds() -> None:
    model = layer()
    assert tolerance_of(model, ["f32"]) == 1e-3
    assert 1e-3 < tolerance_of(model, ["f32", "f16"]) < tolerance_of(model, ["f16", "bf16"]) < 0.5
    x = ops.parameter([4], np.float32)
    node: ov.Output = x.output(0)
    for _ in range(2000):
        node = ops.relu(node).output(0)
    assert tolerance_of(ov.Model([node], [x]), ["bf16"]) == 0.5
    levels = ops.fake_quantize(x, *(ops.constant(np.float32(v)) for v in (-1, 1, -1, 1)), 16)
    assert tolerance_of(ov.Model([levels], [x]), ["f32"]) == pytest.approx(4 / 16)


def test_off_compares_nothing(bench: Bench) -> None:
    outputs = bench.session.compare_outputs("OFF", Budget(60))
    outputs.note("CPU", bench.compiled(layer()), "CPU")
    outputs.note("wrong", bench.compiled(layer(seed=1)), "wrong")

    assert outputs.difference("wrong") is None
    assert not outputs.is_wrong("wrong")
    assert outputs.findings(is_chosen_wrong=False) == ()
    assert outputs.seconds == 0


def near_ties(kind: str) -> ov.Model:
    """Scores that bf16 cannot tell apart, and something discrete made of them."""
    x = ops.parameter([64, WIDTH], np.float32, name="x")
    random = np.random.default_rng(3)
    weights = random.standard_normal((WIDTH, 1)) + 1e-3 * random.standard_normal((WIDTH, WIDTH))
    scores = ops.matmul(x, ops.constant(weights.astype(np.float32)), False, False)
    if kind == "arg max":
        best = ops.topk(scores, ops.constant(np.int64(1)), 1, "max", "value")
        return ov.Model([ops.result(best.output(1))], [x])
    if kind == "gathered":
        table = ops.constant(np.random.default_rng(4).standard_normal((WIDTH, 16)).astype(np.float32))
        best = ops.topk(scores, ops.constant(np.int64(2)), 1, "max", "value")
        return ov.Model([ops.result(ops.gather(table, best.output(1), ops.constant(np.int64(0))))], [x])
    if kind == "number of positive ones":
        first = ops.gather(scores, ops.constant(np.int64([0])), ops.constant(np.int64(1)))
        return ov.Model([ops.result(ops.non_zero(ops.relu(ops.subtract(scores, first))))], [x])
    boxes = ops.reshape(ops.abs(scores), ops.constant(np.int64([1, -1, 4])), False)
    one = ops.reshape(ops.reduce_sum(boxes, ops.constant(np.int64([2]))), np.int64([1, 1, -1]), False)
    kept = ops.non_max_suppression(
        boxes, one, ops.constant(np.int64(50)), ops.constant(np.float32(0.3)), ops.constant(np.float32(9))
    )
    return ov.Model([ops.result(kept.output(i)) for i in range(3)], [x])


@pytest.mark.parametrize("kind", ["arg max", "gathered", "number of positive ones", "boxes"])
def test_what_rounding_flips_is_no_mistake(core: ov.Core, tmp_path: Path, kind: str) -> None:
    model = near_ties(kind)
    bench = Bench(core, model, tmp_path, ("CPU", "XCPU"))
    with bench.session:
        outputs = bench.session.compare_outputs("AUTO", Budget(60))
        outputs.note("CPU", bench.compiled(model), "CPU")
        outputs.note("XCPU", bench.compiled(model, "XCPU"), "XCPU")
        assert outputs.difference("XCPU") > 0  # it does flip some
        assert not outputs.is_wrong("XCPU")
        assert not outputs.is_wrong("CPU")


def test_random_rounding_moves_what_rounding_moves(core: ov.Core, tmp_path: Path) -> None:
    """A mask is made of small integers, which are exact in any precision; a penalty stays where it was."""
    mask = ops.parameter([1, WIDTH], np.int64, name="mask")
    x = ops.parameter([1, WIDTH], np.float32, name="x")
    left = ops.subtract(ops.constant(np.float32(1)), ops.convert(mask, "f32"))
    penalty = ops.multiply(left, ops.constant(np.float32(-(2.0**127))))
    halved = ops.multiply(ops.exp(x), ops.constant(np.float32(0.5)))
    model = ov.Model([ops.result(penalty), ops.result(halved)], [mask, x])
    bench = Bench(core, model, tmp_path, ("CPU",))
    with bench.session:
        masked, rounded = bench.session.save_op_by_op(
            tmp_path / "outputs", 1e-30, limit_seconds=60.0, disturbed=3, noise=1 / 64
        )
    assert masked == 0
    assert 1 / 256 < rounded < 3 / 64  # two roundings of at most a 64th each


# ---- what cannot be compared ------------------------------------------------------------------------------


def drawing() -> ov.Model:
    x = ops.parameter([4, 4], np.float32, name="x")
    bounds = (ops.constant(np.float32(0)), ops.constant(np.float32(1)))
    noise = ops.random_uniform(ops.constant(np.int64([4, 4])), *bounds, "f32")
    return ov.Model([ops.result(ops.add(x, noise))], [x])


def test_a_model_that_draws_random_numbers_is_not_compared(core: ov.Core, tmp_path: Path) -> None:
    model = drawing()
    bench = Bench(core, model, tmp_path, ("CPU",))
    with bench.session:
        outputs = bench.session.compare_outputs("AUTO", Budget(60))
        for name in ("CPU", "other"):
            outputs.note(name, bench.compiled(model), name)
        assert outputs.difference("other") is None
        assert not outputs.is_wrong("other")
        assert not outputs.is_wrong("CPU")
        assert "random" in sentence(outputs.findings(is_chosen_wrong=False))


def test_random_numbers_in_a_body_are_found() -> None:
    condition = ops.parameter([1], bool)
    x = ops.parameter([4, 4], np.float32)
    branch = ops.if_op(condition)
    branch.set_then_body(drawing())
    still = ops.parameter([4, 4], np.float32)
    otherwise = ov.Model([ops.result(ops.relu(still))], [still])
    branch.set_else_body(otherwise)
    branch.set_input(x.output(0), branch.get_function(0).get_parameters()[0], still)
    result = branch.set_output(branch.get_function(0).get_results()[0], otherwise.get_results()[0])

    assert is_random(ov.Model([result], [condition, x]))
    assert not is_random(layer())


def test_state_is_forgotten_before_outputs_are_compared(core: ov.Core, tmp_path: Path) -> None:
    x = ops.parameter([2, 4], np.float32, name="x")
    total = ops.add(ops.read_value(ops.constant(np.zeros((2, 4), np.float32)), "sum"), x)
    model = ov.Model([ops.result(total)], [ops.assign(total, "sum")], [x])
    bench = Bench(core, model, tmp_path, ("CPU",))
    with bench.session:
        outputs = bench.session.compare_outputs("AUTO", Budget(60))
        first, second = bench.compiled(model), bench.compiled(model)
        second.run(5)
        outputs.note("CPU", first, "CPU")
        outputs.note("other", second, "other")
        assert outputs.difference("other") == 0


def test_the_child_process_compares_as_this_one_does(core: ov.Core) -> None:
    found = []
    for isolation in (False, True):
        with ProfilingSession(
            core, layer(), ("XCPU", "CPU"), device_properties(core, ("XCPU", "CPU")), isolation=isolation
        ) as session:
            outputs = session.compare_outputs("AUTO", Budget(60))
            for device in session.devices:
                outputs.note(device, session.compile_device(device), device)
            found.append(outputs.difference("CPU"))
    assert found[0] == found[1] > 1e-4
