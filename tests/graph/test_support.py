"""Which ops devices support, of models too large to be asked about as a whole."""

from __future__ import annotations

import logging

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.errors import ModelError
from ov_autoplace.graph import support
from ov_autoplace.graph.op_kinds import op_kinds
from ov_autoplace.graph.passes import NAMED, run_passes
from ov_autoplace.graph.support import supported_ops
from random_models import random_model


def layers(count: int, width: int = 8, transposed: int = -1) -> ov.Model:
    """Layers of MatMul, Add and Softmax; in one of them the weights are transposed."""
    x = ops.parameter([4, width], np.float32, name="x")
    y: ov.Node = x
    for i in range(count):
        weights = ops.constant(np.full((width, width), 0.1 * i, np.float32), name=f"w{i}")
        y = ops.matmul(y, weights, False, i == transposed, name=f"matmul{i}")
        y = ops.add(y, ops.constant(np.zeros((1, width), np.float32)), name=f"add{i}")
        y = ops.softmax(y, -1, name=f"softmax{i}")
    return ov.Model([ops.result(y, name="y")], [x])


def counting(steps: int) -> ov.Model:
    """Reads and writes of two variables, whose types differ, and a loop-free chain of sizes."""
    x = ops.parameter([1, 4], np.float32, name="x")
    sinks, y = [], x
    for i, kind in enumerate((np.float32, np.float16)):
        read = ops.read_value(ops.constant(np.zeros((1, 4), kind)), f"v{i}", kind, [1, 4], name=f"read{i}")
        sinks.append(ops.assign(ops.add(read, kind(1)), f"v{i}", name=f"assign{i}"))
        y = ops.add(y, ops.convert(read, np.float32), name=f"use{i}")
    for i in range(steps):
        shape = ops.concat([ops.shape_of(y), ops.constant(np.int64([1]))], 0)
        y = ops.squeeze(ops.reshape(y, shape, False), ops.constant(np.int64([2])), name=f"s{i}")
    return ov.Model([ops.result(y)], sinks, [x])


def edges(model: ov.Model) -> list[tuple[str, list[tuple[str, int]]]]:
    return [
        (
            op.get_friendly_name(),
            [(v.get_node().get_friendly_name(), v.get_index()) for v in op.input_values()],
        )
        for op in model.get_ordered_ops()
    ]


def names_of(model: ov.Model) -> list[str]:
    run_passes(model, NAMED)
    return [op.get_friendly_name() for op in model.get_ordered_ops()]


class PickyCore:
    """A Core whose devices refuse what a function says; counts the ops that it is asked about."""

    def __init__(self, refused) -> None:
        self.refused = refused
        self.asked = 0
        self.told: list[dict] = []

    def query_model(self, model: ov.Model, device: str, properties: dict) -> dict[str, str]:
        found = model.get_ops()
        self.asked += len(found)
        self.told.append(properties)
        return {op.get_friendly_name(): device for op in found if not self.refused(device, op)}


def masks(core, model: ov.Model, devices, monkeypatch) -> tuple[np.ndarray, np.ndarray]:
    """What devices support by the whole model, and by a few ops of each kind."""
    names = names_of(model)
    whole = supported_ops(core, model, names, devices)
    monkeypatch.setattr(support, "LARGEST_WHOLE", 1)
    return whole, supported_ops(core, model, names, devices)


def heavy_or_wide(device: str, op: ov.Node) -> bool:
    if device == "NPU":
        return op.get_type_name() == "MatMul" and op.get_attributes()["transpose_b"]
    return device == "GPU" and op.get_type_name() in ("Tanh", "Concat", "Softmax")


@pytest.mark.parametrize("seed", [3, 41, 77, 1234])
def test_kinds_answer_as_the_whole_model_does(seed, monkeypatch):
    whole, by_kind = masks(ov.Core(), random_model(seed, size=60), ("CPU",), monkeypatch)
    np.testing.assert_array_equal(by_kind, whole)
    core = PickyCore(heavy_or_wide)
    whole, by_kind = masks(core, random_model(seed, size=60), ("CPU", "GPU", "NPU"), monkeypatch)
    np.testing.assert_array_equal(by_kind, whole)


def test_an_attribute_makes_another_kind(monkeypatch):
    model = layers(30, transposed=17)
    whole, by_kind = masks(PickyCore(heavy_or_wide), model, ("CPU", "NPU"), monkeypatch)
    np.testing.assert_array_equal(by_kind, whole)
    names = names_of(model)
    assert [names[i] for i in np.flatnonzero(~by_kind[:, 1])] == ["matmul17"]


def test_what_is_asked_does_not_grow_with_the_number_of_layers(monkeypatch):
    monkeypatch.setattr(support, "LARGEST_WHOLE", 1)
    asked = []
    for count in (20, 400):
        core, model = PickyCore(heavy_or_wide), layers(count)
        supported_ops(core, model, names_of(model), ("CPU",))
        asked.append(core.asked)
    assert asked[0] == asked[1] < 60


def test_a_model_is_as_it_was_after_its_kinds_were_told_apart():
    model = layers(25, transposed=3)
    names_of(model)
    before = edges(model)
    kinds = op_kinds(model)
    assert edges(model) == before
    ov.Core().compile_model(model, "CPU")
    del model
    ov.Core().compile_model(kinds.model, "CPU")


def test_state_variables_and_computed_shapes_stay_whole(monkeypatch):
    model = counting(40)
    whole, by_kind = masks(ov.Core(), model, ("CPU",), monkeypatch)
    np.testing.assert_array_equal(by_kind, whole)
    kinds = op_kinds(model)
    types = [op.get_type_name() for op in kinds.model.get_ops()]
    assert types.count("ReadValue") == types.count("Assign") == 2
    # What a Reshape is told comes with it, so that its rank is known.
    assert all(
        op.get_output_partial_shape(0).rank.is_static
        for op in kinds.model.get_ops()
        if op.get_type_name() == "Reshape"
    )


def test_that_not_all_ops_were_asked_about_is_said(monkeypatch, caplog):
    model = layers(20)
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        supported_ops(ov.Core(), model, names_of(model), ("CPU",))
        assert not caplog.messages
        monkeypatch.setattr(support, "LARGEST_WHOLE", 50)
        supported_ops(ov.Core(), model, names_of(model), ("CPU",))
    (message,) = caplog.messages
    assert message.startswith(f"of {len(names_of(model))} ops, CPU were asked")


def test_an_op_that_no_device_supports_is_named(monkeypatch):
    monkeypatch.setattr(support, "LARGEST_WHOLE", 1)
    model = layers(20)
    with pytest.raises(
        ModelError, match="20 ops can run on none of GPU, the first is 'softmax0' of type Softmax"
    ):
        supported_ops(PickyCore(heavy_or_wide), model, names_of(model), ("GPU",))


def test_devices_are_not_told_of_a_cache_which_some_releases_refuse():
    core, model = PickyCore(heavy_or_wide), layers(1)
    properties = {"CPU": {"CACHE_DIR": "blobs", "INFERENCE_PRECISION_HINT": "f32"}}
    supported_ops(core, model, names_of(model), ("CPU",), properties)

    assert core.told == [{"INFERENCE_PRECISION_HINT": "f32"}]
