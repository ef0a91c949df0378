"""Bounded dimensions made fit to cross between subgraphs, in the model that is compiled.

HETERO makes the tensor between two subgraphs with 0 for every dimension that is not known, and the
receiving input refuses it when its dimension must be at least 1 (``1..4``, or what a Convolution makes of
``?``). A VariadicSplit into "the rest" and nothing keeps everything, and shape inference bounds neither part.

It takes the place of the tensor for all its readers, in line, because HETERO's search for cuts looks at who
reads what: a second path beside the tensor, or a tensor that lost some of its readers, would move the cuts
away from where they were predicted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.extract import extract_structure
from ov_autoplace.placement.legality import broken_bonds
from ov_autoplace.placement.partition import number_devices, subgraphs_of

__all__ = ["open_bounded_crossings"]

_ATTEMPTS = 30


def open_bounded_crossings(model: ov.Model, device_of: Mapping[str, str]) -> dict[str, str]:
    """Insert what tensors with a lower bound need where a placement makes them cross, in place.

    Neither the inputs nor the outputs change their shapes, except that an output behind such a crossing may
    lose its lower bounds.

    Args:
        model: A model whose names are unique.
        device_of: Device of every op.

    Returns:
        Device of every op, the inserted ones included: they are where the tensor is made.

    Raises:
        PlacementError: HETERO's cuts of cycles go through such a tensor whatever is inserted, or through
            what has to stay together once it is. The model is left as it was.
    """
    replaced: list[tuple[ov.Input, ov.Output]] = []
    try:
        return _opened(model, dict(device_of), replaced)
    except PlacementError:
        for reader, tensor in reversed(replaced):
            reader.replace_source_output(tensor)
        model.validate_nodes_and_infer_types()
        raise


def _opened(
    model: ov.Model, placed: dict[str, str], replaced: list[tuple[ov.Input, ov.Output]]
) -> dict[str, str]:
    """What :func:`open_bounded_crossings` does; ``replaced`` gets who read what before."""
    if len(set(placed.values())) < 2:
        return placed
    # New ops may still move HETERO's cuts of cycles to other edges, so this goes on until none is left.
    for attempt in range(_ATTEMPTS):
        crossings = _bounded_crossings(model, placed)
        if not crossings:
            if attempt:
                _check_legal(model, placed)
            return placed
        for tensor, readers in crossings:
            name = tensor.get_node().get_friendly_name()
            inserted = _whole(tensor)
            for node in inserted:
                node.set_friendly_name(f"{name}/{tensor.get_index()}/{node.get_friendly_name()}_{attempt}")
                placed[node.get_friendly_name()] = placed[name]
            for reader in readers:
                replaced.append((reader, tensor))
                reader.replace_source_output(inserted[-1].output(0))
        model.validate_nodes_and_infer_types()
    raise PlacementError(
        f"HETERO would cut {name!r}, a tensor with a bounded dimension, off the op that reads it; "
        "reshape the model to dimensions without a lower bound, or use fewer devices"
    )


def _bounded_crossings(
    model: ov.Model, device_of: Mapping[str, str]
) -> list[tuple[ov.Output, list[ov.Input]]]:
    """Tensors with a lower bound that cross between subgraphs, and all ops that read them."""
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
        readers = [t for t in tensor.get_target_inputs() if t.get_node().get_type_name() != "Result"]
        if any(subgraph[reader.get_node().get_friendly_name()] != here for reader in readers):
            found.append((tensor, readers))
    return found


def _check_legal(model: ov.Model, device_of: Mapping[str, str]) -> None:
    """Refuse a placement that HETERO cannot run now that ops were inserted."""
    graph = extract_structure(model)
    broken = broken_bonds(graph, number_devices(graph.names, device_of))
    if broken:
        raise PlacementError(f"HETERO cannot run this placement: {broken[0].reason}")


def _bounded_axes(shape: ov.PartialShape) -> list[int]:
    """Dynamic dimensions that have a lower bound above 0."""
    if shape.rank.is_dynamic or shape.is_static:
        return []
    return [axis for axis, size in enumerate(shape) if size.is_dynamic and size.get_min_length() > 0]


def _whole(tensor: ov.Output) -> list[ov.Node]:
    """New ops, of which the last one's first output is all of ``tensor`` without lower bounds."""
    inserted: list[ov.Node] = []
    for axis in _bounded_axes(tensor.get_partial_shape()):
        along = opset.constant(np.int64(axis), name=f"axis_{axis}")
        lengths = opset.constant(np.array([-1, 0], np.int64), name=f"lengths_{axis}")
        split = opset.variadic_split(tensor, along, lengths, name=f"unbounded_{axis}")
        inserted += [along, lengths, split]
        tensor = split.output(0)
    return inserted
