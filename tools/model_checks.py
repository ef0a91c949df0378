"""Running models to compare their outputs: input data, random placements, errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ov_autoplace.devices.names import is_emulated
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract, extract_structure
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.plan.partition import graph_subgraphs, number_devices

TOLERANCE = 1e-3
"""Largest :func:`relative_error` of answers that are the same, where both were computed in f32."""


DEVICES = ("XCPU", "CPU")
"""Two equal devices: see :func:`equal_devices`."""


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


def group_placements(groups: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Device of each group, ``int32[G]``: by turns runs of groups, single groups moved, and pure chance."""
    random = np.random.default_rng(seed)
    while True:
        cuts = np.sort(random.integers(0, groups, int(random.integers(1, 8))))
        yield (np.searchsorted(cuts, np.arange(groups), side="right") % 2).astype(np.int32)
        moved = random.random(groups) < 3 / groups
        yield moved.astype(np.int32)
        yield random.integers(0, 2, groups).astype(np.int32)


def equal_devices() -> ov.Core:
    """Two equal devices that compute in f32, so that only a broken cut can change an output.

    On compressed weights the plugin would otherwise round activations to eight bits, not alike in every cut.
    """
    core = ov.Core()
    if DEVICES[0] not in core.available_devices:
        core.register_plugin(f"{ov.__path__[0]}/libs/libopenvino_intel_cpu_plugin.so", DEVICES[0])
    for device in DEVICES:
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})
    return core


def last_line(cause: BaseException) -> str:
    """The last line of an error that says something, or the error's type."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (lines[-1] if lines else type(cause).__name__)[:300]
