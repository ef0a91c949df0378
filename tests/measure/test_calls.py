"""A model that is called in several shapes: all calls of a sequence are run, and only what fits."""

from __future__ import annotations

import os

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import ov_autoplace
from ov_autoplace import _core
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import OptionError
from ov_autoplace.graph.shapes import Call
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.plan import WholePlan

PROMPT = {"x": [1, 4], "attention_mask": [1, 4]}
IN_CALLER = Width(1, in_caller=True).properties  # on one thread otherwise, failures are lost
TOKEN = {"x": [1, 1], "attention_mask": [1, 5]}


def with_memory() -> ov.Model:
    """Remembers all inputs so far, and takes a mask that is as long as those."""
    x = op.parameter([1, -1], ov.Type.f32, name="x")
    mask = op.parameter([1, -1], ov.Type.f32, name="attention_mask")
    past = op.read_value(op.constant(np.zeros((1, 0), np.float32)), "past", ov.Type.f32, [1, -1])
    known = op.concat([past, x], 1)
    # Reshaping to the length of the other one fails where they differ; broadcasting would hide it.
    result = op.add(known, op.reshape(mask, op.shape_of(known), False))
    return ov.Model([op.result(result)], [op.assign(known, "past")], [x, mask])


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.xml"
    ov.save_model(with_memory(), path, compress_to_fp16=False)
    return str(path)


@pytest.mark.parametrize("isolation", [False, True])
def test_a_sequence_is_all_of_its_calls_with_what_the_model_remembers(saved, isolation, tmp_path):
    """Four inputs, then one at a time, six times: the tenth output is as long as all of them."""
    profiler = profiler_for(None, ["CPU"], isolation=isolation)
    calls = [(PROMPT, 1.0, ["attention_mask"]), (TOKEN, 6.0, ["attention_mask"])]
    executable = profiler.compile(saved, "CPU", IN_CALLER, calls=calls)
    assert (np.asarray(executable.run(3)) > 0).all()
    mask = [(PROMPT, 1.0, []), (TOKEN, 6.0, [])]  # which stays as long as it was with the first token
    with pytest.raises(_core.ProfilerError):
        profiler.compile(saved, "CPU", IN_CALLER, calls=mask).run(1)
    once = profiler.compile(saved, "CPU", calls=[(PROMPT, 1.0, []), (TOKEN, 0.25, [])])
    assert (np.asarray(once.run(2)) > 0).all()


@pytest.mark.parametrize(
    "calls",
    [
        [({"x": [1, 4]}, 1.0, [])],
        [(PROMPT, 0.0, [])],
        [(PROMPT, float("nan"), [])],
        [(PROMPT, 1e9, [])],
        [({"x": [4], "attention_mask": [1, 4]}, 1.0, ["x"])],
    ],
)
def test_calls_that_cannot_be(saved, calls):
    with pytest.raises((ValueError, _core.ProfilerError)):
        profiler_for(None, ["CPU"], isolation=False).compile(saved, "CPU", calls=calls)


def test_a_session_knows_which_input_grows():
    calls = [Call(PROMPT), Call(TOKEN, 3.0)]
    with ProfilingSession(None, with_memory(), ["CPU"], calls=calls) as session:
        assert session.model.inputs[0].get_partial_shape().is_dynamic
        assert len(session.compile_whole(WholePlan("CPU")).run(2)) == 2


def test_every_dynamic_input_needs_a_shape_in_every_call():
    with pytest.raises(OptionError, match="attention_mask"):
        ov_autoplace.place(with_memory(), "CPU", shapes=[{"shapes": PROMPT}, {"shapes": {"x": [1, 1]}}])


@pytest.mark.alone
def test_a_width_is_decided_for_the_sum_of_all_calls():
    x = op.parameter([-1, 64], ov.Type.f32, name="x")
    value = x
    for seed in range(12):
        weights = np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32) / 8
        value = op.relu(op.matmul(value, weights, False, False))
    model = ov.Model([op.result(value)], [x])
    calls = [{"shapes": {"x": [32, 64]}}, {"shapes": {"x": [1, 64]}, "times": 20}]
    found = ov_autoplace.place(model, "CPU", shapes=calls).decision
    assert not ov_autoplace.place(model, "CPU").decision.threads
    narrow = [candidate for candidate in found.candidates if candidate.plan.width]
    # On a single core there is nothing to decide.
    assert bool(narrow) == (len(os.sched_getaffinity(0)) > 1)
    for candidate in narrow:
        compiled = ov.Core().compile_model(model, "CPU", candidate.plan.all_properties)
        assert compiled(np.ones((7, 64), np.float32))[0].shape == (7, 64)
