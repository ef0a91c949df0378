"""The model that most tests on a GPU use, and running it in pieces."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.plan.annotation import set_affinities

__all__ = ["compiled_with", "encoder", "new_core", "split_after"]

_TOKENS, _WIDTH = 16, 64


def new_core() -> ov.Core:
    """A Core on which both devices compute in f32, so that their outputs can be compared tightly."""
    core = ov.Core()
    for device in ("GPU", "CPU"):
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32"})
    # HETERO would make them share an executor; see ov_autoplace.devices.names.device_properties.
    core.set_property("CPU", {"EXCLUSIVE_ASYNC_REQUESTS": False})
    return core


def encoder(layers: int = 1, tokens: int = _TOKENS) -> ov.Model:
    """Transformer layers of one head: everything that the GPU plugin likes to fuse, and no convolution.

    Args:
        layers: How many.
        tokens: Length of the sequence; -1 makes it dynamic.
    """
    random = np.random.default_rng(5)

    def constant(*shape: int) -> ov.Node:
        return ops.constant((random.standard_normal(shape) / np.sqrt(_WIDTH)).astype(np.float32))

    def linear(value: ov.Node, name: str) -> ov.Node:
        product = ops.matmul(value, constant(_WIDTH, _WIDTH), False, False, name=name)
        return ops.add(product, constant(1, 1, _WIDTH), name=f"{name}/bias")

    def normalised(value: ov.Node, name: str) -> ov.Node:
        axes = ops.constant(np.array([2], np.int64))
        centred = ops.mvn(value, axes, True, 1e-5, "inside_sqrt", name=name)
        return ops.multiply(centred, constant(1, 1, _WIDTH), name=f"{name}/scale")

    x = ops.parameter([1, tokens, _WIDTH], np.float32, name="x")
    x.output(0).set_names({"x"})
    value: ov.Node = x
    for i in range(layers):
        query, key, content = (linear(value, f"{part}{i}") for part in ("query", "key", "content"))
        scores = ops.matmul(query, key, False, True, name=f"scores{i}")
        weights = ops.softmax(scores, 2, name=f"softmax{i}")
        context = ops.matmul(weights, content, False, False, name=f"context{i}")
        value = normalised(ops.add(value, context, name=f"residual{i}"), f"norm{i}")
        inner = ops.gelu(linear(value, f"inner{i}"), "erf", name=f"gelu{i}")
        value = ops.add(value, linear(inner, f"outer{i}"), name=f"sum{i}")
    return ov.Model([ops.result(value, name="y")], [x], "encoder")


def split_after(model: ov.Model, name: str, first: str = "GPU", then: str = "CPU") -> dict[str, str]:
    """Op ``name`` and all before it in topological order on one device, the rest on another.

    Constants go with their reader: a weight that crosses is copied in every inference.
    """
    device, device_of = first, {}
    for op in model.get_ordered_ops():
        device_of[op.get_friendly_name()] = device
        if op.get_friendly_name() == name:
            device = then
    for op in model.get_ops():
        if op.get_type_name() == "Constant":
            reader = next(iter(op.output(0).get_target_inputs())).get_node()
            device_of[op.get_friendly_name()] = device_of[reader.get_friendly_name()]
    return device_of


def compiled_with(core: ov.Core, model: ov.Model, device_of: Mapping[str, str]) -> ov.CompiledModel:
    """A copy of ``model`` on HETERO with these affinities."""
    model = model.clone()
    set_affinities(model, device_of)
    return core.compile_model(model, "HETERO:GPU,CPU")
