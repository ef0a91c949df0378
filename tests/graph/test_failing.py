"""Which models can fail while they run, against what OpenVINO raises."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import zoo
from ov_autoplace.graph.failing import can_fail
from ov_autoplace.graph.passes import FOLDED, run_passes

ZERO = np.int64(0)
DATA = np.ones((4, 8), np.float32)
BEYOND = 50  # every index and length, but not so far that a kernel without a check leaves the process


def data() -> ov.Node:
    return ops.parameter([4, 8], np.float32, name="data")


def numbers(*shape: int) -> ov.Node:
    return ops.parameter(list(shape), np.int64, name="numbers")


def _gather() -> ov.Node:
    return ops.gather(data(), numbers(2, 8), ZERO)


def _gather_elements() -> ov.Node:
    return ops.gather_elements(data(), numbers(2, 8), 0)


def _scatter_elements() -> ov.Node:
    return ops.scatter_elements_update(data(), numbers(2, 8), np.zeros((2, 8), np.float32), ZERO)


def _scatter() -> ov.Node:
    return ops.scatter_update(data(), numbers(2, 8), np.zeros((2, 8, 8), np.float32), ZERO)


def _gather_nd() -> ov.Node:
    return ops.gather_nd(data(), numbers(2, 1))


def _scatter_nd() -> ov.Node:
    return ops.scatter_nd_update(data(), numbers(2, 1), np.zeros((2, 8), np.float32))


def _reversed() -> ov.Node:
    return ops.reverse_sequence(data(), numbers(4), 0, 1)


def _cumulated() -> ov.Node:
    return ops.cum_sum(data(), numbers())


def _one_hot() -> ov.Node:
    return ops.one_hot(numbers(4), np.int64(5), np.float32(1), np.float32(0), 1)


def _reshaped() -> ov.Node:
    return ops.reshape(data(), numbers(2), special_zero=False)


def _broadcast() -> ov.Node:
    return ops.broadcast(data(), numbers(2))


def _recurrent() -> ov.Node:
    def ones(*shape: int) -> np.ndarray:
        return np.ones(shape, np.float32)

    x = ops.unsqueeze(data(), np.int64(1))
    state = ops.constant(ones(4, 1, 3))
    weights = ones(1, 12, 8), ones(1, 12, 3), ones(1, 12)
    node = ops.lstm_sequence(x, state, state, numbers(4), *map(ops.constant, weights), 3, "FORWARD")
    return node.output(0)


BUILDERS = [value for name, value in list(globals().items()) if name.startswith("_") and callable(value)]


@pytest.mark.alone
@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_what_openvino_raises_is_foreseen(build):
    result = build()
    inputs, stack, seen = {}, [getattr(result, "get_node", lambda: result)()], set()
    while stack:
        node = stack.pop()
        if node.get_instance_id() not in seen:
            seen.add(node.get_instance_id())
            stack += [value.get_node() for value in node.input_values()]
            if node.get_type_name() == "Parameter":
                inputs[node.get_friendly_name()] = node
    model = ov.Model([ops.result(result)], list(inputs.values()))
    values = [DATA if name == "data" else np.full(list(p.shape), BEYOND) for name, p in inputs.items()]
    request = ov.Core().compile_model(model, "CPU").create_infer_request()
    try:
        request.infer(values)
    except RuntimeError:
        assert can_fail(model)
    else:
        assert not can_fail(model) or build in (_gather_nd, _one_hot)  # not known to take anything


@pytest.mark.parametrize("name", ["resnet50", "bert_base", "lstm_lm", "two_tower", "unet"])
def test_networks_of_plain_ops_cannot_fail(name):
    model = zoo.build(name, "small")
    run_passes(model, FOLDED)
    assert not can_fail(model)


@pytest.mark.parametrize("name", ["decoder", "control_flow", "ssdlite"])
def test_state_bodies_and_selection_can(name):
    model = zoo.build(name, "small")
    run_passes(model, FOLDED)
    assert can_fail(model)


def test_a_dynamic_shape_can_fail():
    x = ops.parameter([-1, 8], np.float32)
    assert can_fail(ov.Model([ops.relu(x)], [x]))
