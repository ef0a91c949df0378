"""Bounded dimensions made fit to cross between subgraphs, in the model that is compiled.

HETERO makes the tensor between two subgraphs with 0 for every dimension that is not known, and the
receiving input refuses it when its dimension must be at least 1 (``1..4``, or what a Convolution makes of
``?``). A VariadicSplit into "the rest" and nothing keeps everything, and shape inference bounds neither part.

It takes the place of the tensor for all its readers, in line, because HETERO's search for cuts looks at who
reads what: a second path beside the tensor, or a tensor that lost some of its readers, would move the cuts
away from where they were predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract_structure
from ov_autoplace.graph.passes import Pass
from ov_autoplace.graph.records import OpRecord, ReadModel
from ov_autoplace.plan.legality import broken_bonds
from ov_autoplace.plan.partition import completed, graph_subgraphs, number_devices

__all__ = ["opened_crossings"]

_ATTEMPTS = 30


def opened_crossings(device_of: Mapping[str, str]) -> Pass:
    """The pass that inserts what tensors with a lower bound need where a placement makes them cross.

    Neither the inputs nor the outputs change their shapes, except that an output behind such a crossing may
    lose its lower bounds. It refuses a model in which HETERO's cuts of cycles go through such a tensor
    whatever is inserted, or through what has to stay together once it is.

    Args:
        device_of: Device of every op of the model, whose names are unique. What is inserted belongs to where
            the tensor is made.
    """
    return Pass("opening bounded crossings", lambda read: _open(read, device_of))


def _open(read: ReadModel, device_of: Mapping[str, str]) -> int:
    """Open what crosses, and say how many tensors were opened."""
    opened = 0
    if len(set(device_of.values())) < 2 or not _has_bounded(read.model):
        return opened
    # New ops may still move HETERO's cuts of cycles to other edges, so this goes on until none is left.
    for attempt in range(_ATTEMPTS):
        graph = extract_structure(read.model, read.records)
        device = number_devices(graph.names, completed(read.model, device_of))
        crossings = _crossings(read.records, graph, device)
        if not crossings:
            broken = broken_bonds(graph, device) if opened else []
            if broken:
                raise PlacementError(f"HETERO cannot run this placement: {broken[0].reason}")
            return opened
        for tensor, readers in crossings:
            name = tensor.get_node().get_friendly_name()
            inserted = _whole(tensor)
            for node in inserted:
                node.set_friendly_name(f"{name}/{tensor.get_index()}/{node.get_friendly_name()}_{attempt}")
            for reader in readers:
                reader.replace_source_output(inserted[-1].output(0))
        opened += len(crossings)
        read.model.validate_nodes_and_infer_types()
        read.forget()
    raise PlacementError(
        f"HETERO would cut {name!r}, a tensor with a bounded dimension, off the op that reads it; "
        "reshape the model to dimensions without a lower bound, or use fewer devices"
    )


def _has_bounded(model: ov.Model) -> bool:
    outputs = (output for op in model.get_ordered_ops() for output in op.outputs())
    return any(_bounded_axes(output.get_partial_shape()) for output in outputs)


def _crossings(
    records: Sequence[OpRecord], graph: ComputationGraph, device: IntArray
) -> list[tuple[ov.Output, list[ov.Input]]]:
    """Tensors with a lower bound that cross between subgraphs, and all ops that read them."""
    subgraph = graph_subgraphs(graph, device).tolist()
    parted = {maker for maker, reader in graph.bounded_edges.tolist() if subgraph[maker] != subgraph[reader]}
    found = []
    for maker in sorted(parted):
        for tensor in records[maker].node.outputs():
            if not _bounded_axes(tensor.get_partial_shape()):
                continue
            readers = [t for t in tensor.get_target_inputs() if t.get_node().get_type_name() != "Result"]
            names = [reader.get_node().get_friendly_name() for reader in readers]
            if any(subgraph[graph.index[name]] != subgraph[maker] for name in names):
                found.append((tensor, readers))
    return found


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
