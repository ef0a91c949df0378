"""Structures that HETERO and the plugin could stumble over, on the GPU's side of a cut."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from gpu_models import compiled_with, encoder, split_after
from openvino import opset13 as ops

from model_checks import outputs_of, random_inputs, relative_error

TIGHT = 5e-4
ESTIMATED = {"AUTOPLACE_MODE": "ZERO_SHOT"}


def everything_on(model: ov.Model, device: str, **others: str) -> dict[str, str]:
    return {op.get_friendly_name(): others.get(op.get_friendly_name(), device) for op in model.get_ops()}


def check(core: ov.Core, model: ov.Model, device_of: dict[str, str], seed: int = 3) -> ov.CompiledModel:
    """The placement's outputs are those of the CPU."""
    compiled = compiled_with(core, model, device_of)
    inputs = random_inputs(model, seed)
    expected = outputs_of(core.compile_model(model, "CPU"), inputs)
    assert relative_error(outputs_of(compiled, inputs), expected) < TIGHT
    return compiled


def test_a_constant_that_both_devices_read(core) -> None:
    x = ops.parameter([2, 8], np.float32, name="x")
    shared = ops.constant(np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32), name="shared")
    first = ops.matmul(x, shared, False, False, name="first")
    second = ops.matmul(ops.sigmoid(first, name="middle"), shared, False, False, name="second")
    model = ov.Model([ops.result(second, name="y")], [x], "shared")
    compiled = check(core, model, everything_on(model, "GPU", second="CPU", y="CPU"))
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"GPU", "CPU"}


@pytest.mark.parametrize("device", ["GPU", "CPU"])
def test_a_parameter_that_is_a_result(core, device: str) -> None:
    x, y = (ops.parameter([2, 4], np.float32, name=name) for name in "xy")
    model = ov.Model(
        [ops.result(x, name="same"), ops.result(ops.relu(y, name="relu"), name="r")], [x, y], "through"
    )
    check(core, model, everything_on(model, "GPU", x=device, same=device))


def test_a_constant_that_is_a_result(core) -> None:
    x = ops.parameter([2, 4], np.float32, name="x")
    value = ops.constant(np.arange(8, dtype=np.float32).reshape(2, 4), name="value")
    model = ov.Model(
        [ops.result(value, name="c"), ops.result(ops.relu(x, name="relu"), name="r")], [x], "constant"
    )
    check(core, model, everything_on(model, "GPU"))
    check(core, model, everything_on(model, "GPU", relu="CPU", r="CPU", x="CPU"))


def test_a_parameter_away_from_its_reader(core) -> None:
    """HETERO makes a Parameter-to-Result submodel of it."""
    x = ops.parameter([2, 4], np.float32, name="x")
    model = ov.Model([ops.result(ops.tanh(x, name="tanh"), name="y")], [x], "away")
    compiled = check(core, model, everything_on(model, "CPU", x="GPU"))
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == 2


def test_inner_results_and_several_outputs(core) -> None:
    x = ops.parameter([2, 8], np.float32, name="x")
    halves = ops.split(x, ops.constant(np.int64(1), name="axis"), 2, name="split")
    left, right = ops.tanh(halves.output(0), name="left"), ops.sigmoid(halves.output(1), name="right")
    both = ops.concat([left, right], 1, name="both")
    model = ov.Model([ops.result(left, name="inner"), ops.result(both, name="y")], [x], "halves")
    check(core, model, everything_on(model, "GPU", right="CPU"))
    check(core, model, everything_on(model, "CPU", left="GPU", inner="GPU"))


@pytest.mark.parametrize(
    "compile_model",
    [
        lambda core, model: core.compile_model(model, "GPU"),
        lambda core, model: core.compile_model(model, "HETERO:GPU,CPU"),
        lambda core, model: core.compile_model(model, "AUTOPLACE:GPU,CPU", ESTIMATED),
        lambda core, model: compiled_with(core, model, split_after(model, "residual0")),
        lambda core, model: compiled_with(core, model, split_after(model, "sum0")),
    ],
    ids=["GPU", "HETERO", "AUTOPLACE", "cut inside", "cut behind"],
)
def test_dynamic_shapes_over_changing_sizes(core, compile_model) -> None:
    model = encoder(tokens=-1)
    compiled = compile_model(core, model)
    reference = core.compile_model(model, "CPU").create_infer_request()
    request = compiled.create_infer_request()
    for tokens in (5, 16, 3, 16):
        inputs = random_inputs(model, tokens, default_size=tokens)
        expected = reference.infer(inputs)[0].copy()
        assert relative_error([request.infer(inputs)[0]], [expected]) < TIGHT, tokens


def counter() -> ov.Model:
    """Adds up what it is given, in a state, and doubles the sum."""
    x = ops.parameter([1, 4], np.float32, name="x")
    start = ops.constant(np.zeros((1, 4), np.float32), name="start")
    past = ops.read_value(start, "total", np.float32, [1, 4], name="past")
    total = ops.add(past, x, name="add")
    keep = ops.assign(total, "total", name="keep")
    double = ops.multiply(total, ops.constant(np.float32(2), name="two"), name="double")
    return ov.Model(results=[ops.result(double, name="y")], sinks=[keep], parameters=[x], name="counter")


@pytest.mark.parametrize("others", [{}, {"double": "CPU", "y": "CPU"}, None], ids=["alone", "cut", "placed"])
def test_a_state_on_the_gpu_is_kept_and_reset(core, others: dict[str, str] | None) -> None:
    model = counter()
    if others is None:
        compiled = core.compile_model(model, "AUTOPLACE:GPU,CPU", ESTIMATED)
    else:
        compiled = compiled_with(core, model, everything_on(model, "GPU", **others))
    request = compiled.create_infer_request()
    ones = {0: np.ones((1, 4), np.float32)}
    assert [float(request.infer(ones)[0][0, 0]) for _ in range(3)] == [2, 4, 6]
    request.reset_state()
    assert float(request.infer(ones)[0][0, 0]) == 2
