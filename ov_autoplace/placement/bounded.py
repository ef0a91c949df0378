"""Bounded dimensions made fit to cross between subgraphs, in the model that is compiled.

HETERO makes the tensor between two subgraphs with 0 for every dimension that is not known, and the
receiving input refuses it when its dimension must be at least 1 (``1..4``, or what a Convolution makes of
``?``). A Slice that keeps everything, up to an end that shape inference cannot bound, takes the lower bound
away.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.partition import subgraphs_of

__all__ = ["open_bounded_crossings"]

_ATTEMPTS = 10


def open_bounded_crossings(model: ov.Model, device_of: Mapping[str, str]) -> dict[str, str]:
    """Insert what tensors with a lower bound need where a placement makes them cross, in place.

    Neither the inputs nor the outputs change their shapes, except that an output behind such a crossing may
    lose its lower bounds.

    Args:
        model: A model whose names are unique.
        device_of: Device of every op.

    Returns:
        Device of every op, the inserted ones included: they stand where the tensor is made.

    Raises:
        PlacementError: HETERO's cuts of cycles go through such a tensor whatever is inserted.
    """
    placed = dict(device_of)
    if len(set(placed.values())) < 2:
        return placed
    # New ops may move HETERO's cuts of cycles to other edges, so this goes on until none is left.
    for attempt in range(_ATTEMPTS):
        crossings = _bounded_crossings(model, placed)
        if not crossings:
            return placed
        for tensor, targets in crossings:
            name = tensor.get_node().get_friendly_name()
            inserted = _whole(tensor)
            for node in inserted:
                node.set_friendly_name(f"{name}/{tensor.get_index()}/{node.get_friendly_name()}{attempt}")
                placed[node.get_friendly_name()] = placed[name]
            for target in targets:
                target.replace_source_output(inserted[-1].output(0))
        model.validate_nodes_and_infer_types()
    raise PlacementError(
        f"HETERO would cut {name!r}, a tensor with a bounded dimension, off the op that reads it; "
        "reshape the model to dimensions without a lower bound, or use fewer devices"
    )


def _bounded_crossings(
    model: ov.Model, device_of: Mapping[str, str]
) -> list[tuple[ov.Output, list[ov.Input]]]:
    """Tensors with a lower bound that cross between subgraphs, and who reads them there."""
    bounded = [
        tensor
        for op in model.get_ordered_ops()
        for tensor in op.outputs()
        if _bounded_axes(tensor.get_partial_shape())
    ]
    if not bounded:
        return []
    subgraph = subgraphs_of(model, device_of)
    found = []
    for tensor in bounded:
        here = subgraph[tensor.get_node().get_friendly_name()]
        targets = [
            target
            for target in tensor.get_target_inputs()
            if target.get_node().get_type_name() != "Result"
            and subgraph[target.get_node().get_friendly_name()] != here
        ]
        if targets:
            found.append((tensor, targets))
    return found


def _bounded_axes(shape: ov.PartialShape) -> list[int]:
    """Dynamic dimensions that have a lower bound above 0."""
    if shape.rank.is_dynamic or shape.is_static:
        return []
    return [axis for axis, size in enumerate(shape) if size.is_dynamic and size.get_min_length() > 0]


def _whole(tensor: ov.Output) -> list[ov.Node]:
    """All of ``tensor`` as a Slice, the last of the new ops."""
    axes = _bounded_axes(tensor.get_partial_shape())
    of_axes = opset.constant(np.array(axes, np.int64), name="bounded_axes")
    zeros = opset.constant(np.zeros(len(axes), np.int64), name="starts")
    ones = opset.constant(np.ones(len(axes), np.int64), name="steps")
    first = opset.constant(np.int64(0), name="first_axis")
    shape = opset.shape_of(tensor, "i64", name="shape")
    sizes = opset.gather(shape, of_axes, first, name="sizes")
    ends = opset.relu(sizes, name="ends")  # OpenVINO does not bound the values of a Relu
    return [of_axes, zeros, ones, first, shape, sizes, ends,
            opset.slice(tensor, zeros, ends, ones, of_axes, name="unbounded")]  # fmt: skip
