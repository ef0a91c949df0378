"""Tensors whose values decide shapes: a cut there can make HETERO fail at the first request.

A subgraph that receives the pattern of a Reshape as an input knows nothing of its values, so the
Reshape's output becomes more dynamic there than it was in the model. HETERO then allocates the
tensor that leaves the subgraph with zeros for those dimensions, and the receiving subgraph, which was
built from the model's own shapes, refuses it.

Only what was known in advance can be lost: a pattern of which no element is known may be cut off. A
pattern of which some are (``[?, ?, 12, 64]``) needs its whole chain, back to the ShapeOf, in its own
subgraph, because OpenVINO bounds the values of a chain from its start or not at all. A ShapeOf itself
may be apart from what it measures, since shapes cross with their tensors. Some ops look for Constants in what
their pattern is made of (a Broadcast does, in a Concat): they know enough as long as that op is with them.

Sizes that are computed in floating point are bounded in the model as it is given, but not always in what a
device makes of it, whose integers have 32 bits: what such a size decides may never be transferred.

Where the pattern is cut off, nothing is wrong yet: what fails is the next crossing of a tensor whose shape
the subgraph no longer knows. :func:`shape_links` says along which edges that knowledge is lost, so that a
placement can be judged exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import IntFlag
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as opset

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace.graph.records import OpRecord

__all__ = ["LinkKind", "deciding_tensors", "shape_links"]


class LinkKind(IntFlag):
    """What an edge between two ops has to do with the knowledge of shapes; the C++ core knows these too."""

    VALUE = 1
    """The tensor's value is partly known in advance; a subgraph that receives the tensor does not know it."""
    SHAPE = 2
    """The tensor's shape may become less known than the model says; it cannot be transferred then."""
    DECIDES = 4
    """The value decides the shape of the consumer's outputs."""
    COMPUTES = 8
    """The consumer's own value, known in advance too, is computed from the value."""
    MEASURES = 16
    """The consumer's value is the tensor's shape."""
    SEES_PARTS = 32
    """The consumer's shape is lost by a cut here only: it asks the value's maker for its Constants."""
    IN_FLOATS = 64
    """The value is a floating point number within bounds; it is lost wherever the cuts are."""


# Op type -> input ports whose values decide the op's output shape.
_SHAPE_PORTS: dict[str, tuple[int, ...]] = {
    "BatchToSpace": (1, 2, 3),
    "Broadcast": (1, 2),
    "Col2Im": (1, 2),
    "ConvolutionBackpropData": (2,),
    "DFT": (1, 2),
    "Eye": (0, 1, 3),
    "Gather": (2,),
    "GroupConvolutionBackpropData": (2,),
    "IDFT": (1, 2),
    "IRDFT": (1, 2),
    "Interpolate": (1, 2, 3),
    "Loop": (0,),
    "NonMaxSuppression": (2,),
    "OneHot": (1,),
    "Pad": (1, 2),
    "RDFT": (1, 2),
    "RandomUniform": (0,),
    "Range": (0, 1, 2),
    "ReduceL1": (1,),
    "ReduceL2": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceProd": (1,),
    "ReduceSum": (1,),
    "Reshape": (1,),
    "STFT": (2, 3),
    "Slice": (1, 2, 3, 4),
    "SpaceToBatch": (1, 2, 3),
    "Split": (1,),
    "Squeeze": (1,),
    "StridedSlice": (1, 2, 3),
    "Tile": (1,),
    "TopK": (1,),
    "Transpose": (1,),
    "Unsqueeze": (1,),
    "VariadicSplit": (1, 2),
}

_INT32_MAX = np.iinfo(np.int32).max


def deciding_tensors(records: Sequence[OpRecord], foldable: BoolArray) -> set[tuple[int, int]]:
    """Every (producer, port) whose values, at least partly known in advance, decide a shape.

    Args:
        records: All ops of the model, with its own (dynamic) shapes.
        foldable: Ops that do not depend on the model's inputs, ``bool[N]``; a subgraph gets its own
            copy of a Constant, and foldable chains are Constants to shape inference.
    """
    folded = foldable.tolist()
    found: set[tuple[int, int]] = set()
    pending = [
        source
        for record in records
        for port in _SHAPE_PORTS.get(record.op_type, ())
        if port < len(record.sources)
        for source in [record.sources[port]]
        if folded[source[0]] or _known_in_advance(records[source[0]], source[1])
    ]
    while pending:
        tensor = pending.pop()
        producer, port = tensor
        record = records[producer]
        if tensor in found or record.op_type == "Constant":
            continue
        if not folded[producer] and _bounds(record, port) is None:
            continue
        found.add(tensor)
        if record.op_type != "ShapeOf":
            pending.extend(record.sources)
    return found


def shape_links(
    model: ov.Model, records: Sequence[OpRecord], deciding: Collection[tuple[int, int]], foldable: BoolArray
) -> list[tuple[int, int, int]]:
    """Edges along which knowledge of shapes is lost: producer, consumer and :class:`LinkKind`.

    They are in topological order of the consumers, so that one pass over them judges a placement.

    Args:
        model: The model; a clone is inferred anew.
        records: All its ops, with its own (dynamic) shapes.
        deciding: What :func:`deciding_tensors` found.
        foldable: Ops that do not depend on the model's inputs, ``bool[N]``.
    """
    deciding = {(op, port) for op, port in deciding if not foldable[op]}
    if not deciding:
        return []
    forgettable = _forgettable_shapes(model, records, deciding)
    seeing = _seeing_parts(model, records, deciding, forgettable, foldable)
    computing = {producer for producer, _ in deciding}
    deciding_shapes = {producer for producer, _ in forgettable}
    links = []
    for consumer, record in enumerate(records):
        shape_ports = _SHAPE_PORTS.get(record.op_type, ()) if consumer in deciding_shapes else ()
        for port, source in enumerate(record.sources):
            kind = LinkKind(0)
            if source in forgettable:
                kind |= LinkKind.SHAPE
                if record.op_type == "ShapeOf":
                    kind |= LinkKind.MEASURES
            if source in deciding:
                uses = LinkKind.COMPUTES if consumer in computing else LinkKind(0)
                if port in shape_ports:
                    uses |= LinkKind.DECIDES | (LinkKind.SEES_PARTS if consumer in seeing else LinkKind(0))
                if uses and _is_uncertain_float(records[source[0]], source[1]):
                    uses |= LinkKind.IN_FLOATS
                kind |= LinkKind.VALUE | uses if uses else LinkKind(0)
            if kind:
                links.append((source[0], consumer, int(kind)))
    return links


def _forgettable_shapes(
    model: ov.Model, records: Sequence[OpRecord], deciding: Collection[tuple[int, int]]
) -> set[tuple[int, int]]:
    """Outputs whose shape HETERO could not transfer if no value that decides a shape were known."""
    clone = model.clone()
    ops = clone.get_ordered_ops()
    unknown = _Unknown()
    for op, record in zip(ops, records, strict=True):
        for port in _SHAPE_PORTS.get(record.op_type, ()):
            if port < len(record.sources) and record.sources[port] in deciding:
                unknown.put(op.input(port))
    if not unknown.inferred(clone, ops):
        # An op cannot do without the value: nothing is known of what follows.
        return {(i, port) for i, record in enumerate(records) for port in range(len(record.shapes))}
    return {(i, port) for i, record in enumerate(records) for port in _lost_outputs(record, ops[i])}


def _seeing_parts(
    model: ov.Model,
    records: Sequence[OpRecord],
    deciding: Collection[tuple[int, int]],
    forgettable: Collection[tuple[int, int]],
    foldable: BoolArray,
) -> set[int]:
    """Ops whose shape stays known when a value that decides it is lost further up, each looked at alone."""
    folded = foldable.tolist()
    makers: dict[int, list[int]] = {}
    for consumer in sorted({op for op, _ in forgettable}):
        sources = records[consumer].sources
        ports = [port for port in _SHAPE_PORTS.get(records[consumer].op_type, ()) if port < len(sources)]
        found = [sources[port][0] for port in ports if sources[port] in deciding]
        # A ShapeOf has no parts: what it lacks is its tensor's shape.
        if found and all(records[maker].op_type != "ShapeOf" for maker in found):
            makers[consumer] = found
    if not makers:
        return set()
    clone = model.clone()
    ops = clone.get_ordered_ops()
    unknown = _Unknown()
    for op in {*makers, *(maker for found in makers.values() for maker in found)}:
        kept = makers.get(op, [])
        for port, (source, _) in enumerate(records[op].sources):
            if source not in kept and not folded[source]:
                unknown.put(ops[op].input(port))
    if not unknown.inferred(clone, ops):
        return set()
    return {op for op in makers if not _lost_outputs(records[op], ops[op])}


class _Unknown:
    """Inputs of a clone's ops made unknown but for their types and shapes."""

    def __init__(self) -> None:
        self._parameters: dict[tuple[int, int], ov.Node] = {}

    def put(self, reader: ov.Input) -> None:
        """Let a Parameter take the place of what ``reader`` reads."""
        output = reader.get_source_output()
        key = (output.get_node().get_instance_id(), output.get_index())
        if key not in self._parameters:
            self._parameters[key] = opset.parameter(output.get_partial_shape(), output.get_element_type())
        reader.replace_source_output(self._parameters[key].output(0))

    def inferred(self, clone: ov.Model, ops: Sequence[ov.Node]) -> bool:
        """Infer all shapes of ``ops`` anew; false where an op refuses to do without what it read."""
        clone.add_parameters(list(self._parameters.values()))
        # OpenVINO skips what no Result needs, such as an op that only a cut-off pattern measured.
        unread = [out for op in ops for out in op.outputs() if not out.get_target_inputs()]
        clone.add_results([opset.result(out) for out in unread])
        try:
            clone.validate_nodes_and_infer_types()
        except RuntimeError:
            return False
        return True


def _lost_outputs(record: OpRecord, op: ov.Node) -> list[int]:
    """Outputs whose shape ``op`` does not know well enough, against the same op in the model."""
    return [
        port
        for port in range(len(record.shapes))
        if not _admits(record.node.get_output_partial_shape(port), op.get_output_partial_shape(port))
    ]


def _admits(expected: ov.PartialShape, known: ov.PartialShape) -> bool:
    """Whether HETERO can transfer a tensor: it makes one with 0 for every dimension that is not known.

    Dimensions that have bounds in the whole model are a matter of their own (``bounded_edges``).
    """
    if known.is_static or expected.rank.is_dynamic:
        return True
    if known.rank.is_dynamic:
        return False
    return not any(
        k.is_dynamic and e.is_static and e.get_length() > 0 for e, k in zip(expected, known, strict=True)
    )


def _is_uncertain_float(record: OpRecord, port: int) -> bool:
    """Whether an output is a floating point number of which only bounds are known: an exact one is folded."""
    if not record.node.get_output_element_type(port).is_real():
        return False
    bounds = _bounds(record, port)
    return bounds is None or not np.array_equal(*bounds)


def _known_in_advance(record: OpRecord, port: int) -> bool:
    """Whether any element of an output has a bound that not every size has."""
    bounds = _bounds(record, port)
    return bounds is not None and bool(np.any(bounds[0] > 0) or np.any(bounds[1] < _INT32_MAX))


def _bounds(record: OpRecord, port: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Bounds of the values of an output, or ``None``: shape inference has none."""
    tensor = record.node.get_output_tensor(port)
    try:
        return tensor.get_lower_value().data, tensor.get_upper_value().data
    except RuntimeError:  # an uninitialised tensor
        return None
