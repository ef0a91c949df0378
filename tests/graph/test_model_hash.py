"""Hashes of models and of weights: what changes them, and what does not."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

import zoo
from ov_autoplace.graph.model_hash import model_hash, weights_hash


def weighted(scale: float) -> ov.Model:
    x = opset.parameter([1, 64], np.float32, name="x")
    weight = scale * np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    node = opset.matmul(x, opset.constant(weight, name="weight"), False, False, name="matmul")
    return ov.Model([opset.result(node, name="y")], [x], "weighted")


def convolution(dilation: int) -> ov.Model:
    """Its padding undoes what the dilation does to the shapes."""
    x = opset.parameter([1, 1, 16, 16], np.float32, name="x")
    kernel = opset.constant(np.ones((1, 1, 3, 3), np.float32), name="kernel")
    pad = [dilation, dilation]
    node = opset.convolution(x, kernel, [1, 1], pad, pad, [dilation, dilation], name="convolution")
    return ov.Model([opset.result(node, name="y")], [x], "dilated")


def branches(op: str) -> ov.Model:
    """An If of which one branch is ``op``."""
    condition = opset.parameter([], bool, name="condition")
    x = opset.parameter([4], np.float32, name="x")
    node = opset.if_op(condition)
    bodies = []
    for branch, name in (("then", op), ("else", "relu")):
        inner = opset.parameter([4], np.float32, name=f"{branch} x")
        answer = getattr(opset, name)(inner, name=f"{branch} answer")
        bodies.append(ov.Model([opset.result(answer, name=f"{branch} y")], [inner], branch))
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(x.output(0), bodies[0].get_parameters()[0], bodies[1].get_parameters()[0])
    out = node.set_output(bodies[0].get_results()[0], bodies[1].get_results()[0])
    node.set_friendly_name("if")
    return ov.Model([opset.result(out, name="y")], [condition, x], "branches")


def reduced(axis: int) -> ov.Model:
    x = opset.parameter([4, 4], np.float32, name="x")
    axes = opset.constant(np.array([axis]), name="axes")
    return ov.Model([opset.result(opset.reduce_sum(x, axes, name="sum"), name="y")], [x], "reduced")


def halves(second: bool) -> ov.Model:
    x = opset.parameter([4, 4], np.float32, name="x")
    split = opset.split(x, opset.constant(np.array(0), name="axis"), 2, name="split")
    node = opset.relu(split.output(int(second)), name="relu")
    rest = opset.result(split.output(int(not second)), name="rest")
    return ov.Model([opset.result(node, name="y"), rest], [x], "halves")


@pytest.mark.parametrize(
    "models",
    [
        (convolution(1), convolution(2)),
        (branches("tanh"), branches("sigmoid")),
        (reduced(0), reduced(1)),
        (halves(False), halves(True)),
    ],
    ids=["attribute", "body", "small constant", "output port"],
)
def test_models_that_a_plugin_sees_differently_have_different_hashes(models):
    assert model_hash(models[0]) == model_hash(models[0].clone())
    assert model_hash(models[0]) != model_hash(models[1])


def test_weights_have_a_hash_of_their_own():
    assert model_hash(weighted(1.0)) == model_hash(weighted(2.0))
    assert weights_hash(weighted(1.0)) == weights_hash(weighted(1.0).clone())
    assert weights_hash(weighted(1.0)) != weights_hash(weighted(2.0))


@pytest.mark.parametrize("kind", ["bf16", "i4", "u1", "nf4", "f8e4m3", "boolean", "string"])
@pytest.mark.parametrize("shape", [[70_001], [3, 35_001]])
def test_weights_of_any_type_have_a_hash(kind, shape):
    def model(value: int) -> ov.Model:
        if kind == "string":
            constant = ov.op.Constant(ov.Tensor(np.full(shape, str(value))))
        else:
            constant = ov.op.Constant(getattr(ov.Type, kind), ov.Shape(shape), [value] * int(np.prod(shape)))
        return ov.Model([opset.result(constant, name="y")], [], "weight")

    assert weights_hash(model(1)) == weights_hash(model(1))
    assert (weights_hash(model(1)) == weights_hash(model(0))) is (kind == "string")


def test_weights_within_bodies_count():
    def model(value: float) -> ov.Model:
        found = branches("tanh")
        body = next(op for op in found.get_ops() if op.get_type_name() == "If").get_function(0)
        (parameter,) = body.get_parameters()
        weight = opset.constant(np.full((1025, 4), value, np.float32), name="weight")
        user = next(iter(parameter.output(0).get_target_inputs()))
        user.replace_source_output(opset.matmul(weight, parameter, False, False).output(0))
        return found

    assert weights_hash(model(1.0)) == weights_hash(model(1.0)) != weights_hash(model(2.0))


def test_models_with_loops_and_strings_have_a_hash_that_another_build_repeats():
    assert model_hash(zoo.build("control_flow")) == model_hash(zoo.build("control_flow"))
    words = [np.array(["one", "two"]), np.array(["one", "three"])]
    hashes = set()
    for strings in words:
        tensor = ov.Tensor(strings)
        constant = ov.op.Constant(tensor)
        constant.set_friendly_name("words")
        hashes.add(model_hash(ov.Model([opset.result(constant, name="y")], [], "strings")))
    assert len(hashes) == 2
