"""Running models to compare their outputs: input data, random placements, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ov_autoplace.devices.names import is_emulated
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract, extract_structure
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.placement.partition import graph_subgraphs, number_devices

__all__ = [
    "TOLERANCE",
    "inputs_in_range",
    "is_random",
    "open_shapes",
    "outputs_of",
    "random_inputs",
    "random_regions",
    "relative_error",
]

TOLERANCE = 1e-3
"""Largest :func:`relative_error` of answers that are the same, where both were computed in f32."""


def random_inputs(model: ov.Model, seed: int, default_size: int = 4) -> dict[str | int, NDArray[Any]]:
    """Random data for each input: normal, or 0 and 1 for integers, which every index input takes.

    Args:
        model: Whose inputs.
        seed: Of the data.
        default_size: Stands for each dynamic dimension.

    Returns:
        By tensor name, or by position for an input without one.
    """
    random = np.random.default_rng(seed)
    inputs: dict[str | int, NDArray[Any]] = {}
    for i, port in enumerate(model.inputs):
        shape = [d.get_length() if d.is_static else default_size for d in port.partial_shape]
        dtype = port.element_type.to_dtype()
        if np.issubdtype(dtype, np.floating):
            data = random.standard_normal(shape, dtype=np.float32).astype(dtype)
        else:
            data = random.integers(0, 2, shape).astype(dtype)
        inputs[port.any_name if port.names else i] = data
    return inputs


def inputs_in_range(
    model: ov.Model, shapes: Mapping[str, Sequence[int]], seed: int
) -> dict[str | int, NDArray[Any]]:
    """Random data by position; indices stay in the range of what they index.

    Args:
        model: Whose inputs.
        shapes: Of inputs by friendly name, for their dynamic dimensions; the others get 3.
        seed: Of the data.
    """
    random = np.random.default_rng(seed)
    bounds = input_ranges(model)
    inputs: dict[str | int, NDArray[Any]] = {}
    for i, port in enumerate(model.inputs):
        name = port.get_node().get_friendly_name()
        partial = port.get_partial_shape()
        given = shapes.get(name, [3] * len(partial))
        shape = [d.get_length() if d.is_static else size for d, size in zip(partial, given, strict=True)]
        element = port.get_element_type()
        if element.is_real():
            inputs[i] = random.standard_normal(shape).astype(element.to_dtype())
        else:
            inputs[i] = random.integers(0, bounds.get(name, 2), shape).astype(element.to_dtype())
    return inputs


def open_shapes(model: ov.Model, inputs: Mapping[str | int, NDArray[Any]]) -> dict[str, list[int]]:
    """The shapes in ``inputs`` of those inputs that the model leaves open."""
    return {
        port.any_name: list(inputs[port.any_name].shape)
        for port in model.inputs
        if port.partial_shape.is_dynamic
    }


def outputs_of(compiled: ov.CompiledModel, inputs: Mapping[str | int, NDArray[Any]]) -> list[NDArray[Any]]:
    """All outputs of one inference, computed by a new request (so that states are fresh).

    Raises:
        ValueError: A device that runs the model computes nothing; its outputs are not to be compared.
    """
    for device in compiled.get_property("EXECUTION_DEVICES"):
        if _is_emulated(device):
            raise ValueError(f"{device} is paced: its outputs are undefined and compare with nothing")
    answer = compiled.create_infer_request().infer(inputs)
    return [answer[output].copy() for output in compiled.outputs]


@cache
def _is_emulated(device: str) -> bool:
    return is_emulated(ov.Core(), device)


def relative_error(actual: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]) -> float:
    """Largest difference by the largest value of the same output; infinite where shapes differ."""
    if [a.shape for a in actual] != [e.shape for e in expected]:
        return float("inf")
    tiny = np.finfo(np.float32).tiny
    pairs = [
        (a.astype(np.float64), e.astype(np.float64)) for a, e in zip(actual, expected, strict=True) if a.size
    ]
    errors = [np.abs(a - e).max() / max(np.abs(e).max(), tiny) for a, e in pairs]
    return float(np.max(errors, initial=0.0))  # unlike max(), it lets NaN through


def is_random(core: ov.Core, model: ov.Model, inputs: Mapping[str | int, NDArray[Any]]) -> bool:
    """Whether the CPU answers differently each time, for random numbers or for a fault of its own."""
    first, *others = (outputs_of(core.compile_model(model, "CPU"), inputs) for _ in range(6))
    return any(relative_error(other, first) > TOLERANCE for other in others)


def random_regions(
    model: ov.Model,
    devices: Sequence[str],
    regions: int,
    seed: int,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, str]:
    """Devices by turns for the co-location groups, cut at random into runs of the topological order.

    HETERO cuts regions that depend on each other through another region into smaller ones. Cuts that
    would part the ReadValue of a state from its Assign are drawn again: the state would be lost.

    Returns:
        Device by op friendly name.

    Raises:
        ValueError: No draw keeps the states whole.
    """
    random = np.random.default_rng(seed)
    groups = coarsen(extract(model, shapes)).members
    count = min(regions - 1, len(groups) - 1)
    for _ in range(100):
        cuts = np.sort(random.choice(np.arange(1, len(groups)), size=count, replace=False))
        device_of = {
            op: devices[np.searchsorted(cuts, g, side="right") % len(devices)]
            for g, ops in enumerate(groups)
            for op in ops
        }
        if _states_are_whole(model, device_of):
            return device_of
    raise ValueError(f"no placement of {model.friendly_name} in {regions} regions keeps its states whole")


def subgraphs_of(model: ov.Model, device_of: Mapping[str, str]) -> dict[str, int]:
    """A number for the subgraph of each op by friendly name, as HETERO would cut the model as it is."""
    graph = extract_structure(model)
    found = graph_subgraphs(graph, number_devices(graph.names, device_of))
    return dict(zip(graph.names, found.tolist(), strict=True))


def _states_are_whole(model: ov.Model, device_of: Mapping[str, str]) -> bool:
    states = [op for op in model.get_ops() if op.get_type_name() in ("ReadValue", "Assign")]
    subgraph_of = subgraphs_of(model, device_of) if states else {}
    places: dict[str, set[int]] = {}
    for op in states:
        places.setdefault(op.get_attributes()["variable_id"], set()).add(subgraph_of[op.friendly_name])
    return all(len(subgraphs) == 1 for subgraphs in places.values())
