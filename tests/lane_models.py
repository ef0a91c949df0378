"""Small models for lanes, whose ops are named by the submodel that they shall be in: ``0/...``, ``1/...``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.graph.passes import FOLDED, formed
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.schedulable import Role, ops_of
from ov_autoplace.plan.scheduled import scheduled_model
from ov_autoplace.plugin.scheduled import compile_scheduled

__all__ = [
    "F32",
    "NARROW",
    "adding",
    "by_name",
    "on_cpu",
    "on_lanes",
    "quantized",
    "ramps",
    "sizes_that_clash",
    "towers",
    "typed",
]

F32 = {"INFERENCE_PRECISION_HINT": "f32"}
NARROW = {"INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "0"}
"""Properties of a lane of one thread that keeps exceptions."""


def by_name(
    model: ov.Model,
    lane_of: Sequence[int],
    properties: Mapping[str, Any] = NARROW,
    devices: Sequence[str] = ("CPU", "CPU"),
    rank: Sequence[int] | None = None,
) -> LanePlan:
    """The plan in which ``3/name`` and what folding leaves of it is in submodel 3.

    Args:
        model: Has such names.
        lane_of: Lane of each submodel.
        properties: Of all lanes.
        devices: Of each lane.
        rank: Of each submodel; ``None`` = their numbers.
    """
    ops_here = ops_of(formed(model, FOLDED))
    return LanePlan(
        lanes=tuple(Lane.of(device, properties) for device in devices),
        submodel_of={
            name: int(name.split("/")[0])
            for name, role in zip(ops_here.names, ops_here.roles, strict=True)
            if role is Role.RUNS
        },
        lane_of=tuple(lane_of),
        rank=tuple(range(len(lane_of)) if rank is None else rank),
    )


def towers(layers: int = 4, width: int = 16, shared: bool = False) -> ov.Model:
    """Two towers of MatMul and ReLU, submodels 0 and 1, and their sum, submodel 2.

    Args:
        layers: Of each tower.
        width: Of each layer.
        shared: Both towers have the same weights.
    """
    random = np.random.default_rng(width)
    inputs = [ops.parameter([1, width], np.float32, name=f"x{tower}") for tower in range(2)]
    values = [i.output(0) for i in inputs]
    for layer in range(layers):
        weights: ov.Node | None = None
        for tower in range(2):
            if weights is None or not shared:
                data = random.standard_normal((width, width)) / np.sqrt(width)
                weights = ops.constant(data.astype(np.float32))
            product = ops.matmul(values[tower], weights, False, False, name=f"{tower}/product{layer}")
            values[tower] = ops.relu(product, name=f"{tower}/relu{layer}").output(0)
    total = ops.add(*values, name="2/sum")
    total.output(0).set_names({"sum", "total"})
    return ov.Model([ops.result(total, name="result")], inputs, "towers")


def sizes_that_clash() -> ov.Model:
    """Two inputs of any length, in submodels 0 and 1, that submodel 2 can only add where they are equal."""
    x, y = (ops.parameter(ov.PartialShape([-1]), np.float32, name=name) for name in "xy")
    total = ops.add(ops.relu(x, name="0/relu"), ops.tanh(y, name="1/tanh"), name="2/add")
    return ov.Model([ops.result(total, name="total")], [x, y], "clash")


def typed(element: ov.Type) -> ov.Model:
    """Inputs and outputs of one type: submodel 0 takes the larger of two, and submodel 1 reads it."""
    x, y = (ops.parameter([2, 3], element, name=name) for name in "xy")
    if element == ov.Type.boolean:
        first = ops.logical_or(x, y, name="0/max")
        second = ops.logical_and(first, y, name="1/min")
    else:
        first = ops.maximum(x, y, name="0/max")
        second = ops.minimum(first, y, name="1/min")
    results = [ops.result(first, name="first"), ops.result(second, name="second")]
    return ov.Model(results, [x, y], "typed")


def adding(variable: str = "memory") -> ov.Model:
    """A running sum: the state goes through submodels 0 and 1, and starts at twice the first input."""
    x = ops.parameter([1, 4], np.float32, name="x")
    first = ops.multiply(x, ops.constant(np.float32(2)), name="9/first")
    old = ops.read_value(first, variable, np.float32, [1, 4], name="old")
    new = ops.add(old, ops.relu(x, name="0/relu"), name="0/new")
    write = ops.assign(new, variable, name="write")
    scaled = ops.multiply(new, ops.constant(np.float32(10)), name="1/scaled")
    return ov.Model([ops.result(scaled, name="scaled")], [write], [x], "adding")


def quantized(seed: int, layers: int = 3, channels: int = 16) -> ov.Model:
    """Two branches of convolutions as NNCF quantises them: weights in i8, activations of 256 levels.

    Weights use half of the range, as NNCF's do for processors without VNNI, on which sums of products of u8
    and i8 saturate: there OpenVINO's own answer depends on which operations are fused.
    """
    random = np.random.default_rng(seed)
    x = ops.parameter([1, channels, 12, 12], np.float32, name="x")

    def activation(value: ov.Output) -> ov.Node:
        low, high = (ops.constant(np.float32(bound)) for bound in (0.0, 2.55))
        return ops.fake_quantize(value, low, high, low, high, 256)

    def convolution(value: ov.Node) -> ov.Node:
        stored = ops.constant(random.integers(-63, 64, (channels, channels, 3, 3)).astype(np.int8))
        scale = ops.constant(random.uniform(2e-4, 2e-3, (channels, 1, 1, 1)).astype(np.float32))
        weights = ops.multiply(ops.convert(stored, "f32"), scale)
        return ops.relu(ops.convolution(value, weights, [1, 1], [1, 1], [1, 1], [1, 1]))

    ends = []
    for _ in range(2):
        value: ov.Node = x
        for _ in range(layers):
            value = convolution(activation(value))
        ends.append(value)
    return ov.Model([ops.result(ops.add(*ends))], [x], f"quantized{seed}")


def ramps() -> list[np.ndarray]:
    """Inputs of :func:`towers` of width 16."""
    return [np.linspace(-1, 1, 16, dtype=np.float32)[None] * (i + 1) for i in range(2)]


def on_lanes(core: ov.Core, model: ov.Model, plan: LanePlan, **properties: object) -> ov.CompiledModel:
    """A model compiled for lanes that compute in f32."""
    return compile_scheduled(core, scheduled_model(model, plan), {**F32, **properties})


def on_cpu(core: ov.Core, model: ov.Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """What a model answers on one device."""
    answer = core.compile_model(model, "CPU", F32)(inputs)
    return [answer[i] for i in range(len(answer))]
