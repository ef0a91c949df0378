"""Tensors whose values decide shapes: a cut there makes HETERO fail at the first request.

A subgraph that receives the pattern of a Reshape as an input knows nothing of its values, so the
Reshape's output becomes more dynamic there than it was in the model. HETERO then allocates the
tensor that leaves the subgraph with zeros for those dimensions, and the receiving subgraph, which was
built from the model's own shapes, refuses it.

Only values that are known in advance can be lost. An element that is a truly dynamic dimension is
unknown on both sides of a cut, so the chain ShapeOf -> Gather -> Concat -> Reshape of a dynamic
dimension may be cut before the Concat: that keeps one ShapeOf that serves every layer of a model from
tying all layers together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ov_autoplace._arrays import BoolArray
from ov_autoplace.graph.records import OpRecord

__all__ = ["deciding_tensors"]

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
        record.sources[port]
        for record in records
        for port in _SHAPE_PORTS.get(record.op_type, ())
        if port < len(record.sources)
    ]
    while pending:
        tensor = pending.pop()
        producer, port = tensor
        record = records[producer]
        if tensor in found or record.op_type == "Constant":
            continue
        if not (folded[producer] or _known_in_advance(record, port)):
            continue
        found.add(tensor)
        # What a ShapeOf says follows from the shape that it reads, which crosses with the tensor.
        if record.op_type != "ShapeOf":
            pending.extend(record.sources)
    return found


def _known_in_advance(record: OpRecord, port: int) -> bool:
    """Whether shape inference knew a bound of any element of an output."""
    tensor = record.node.get_output_tensor(port)
    try:
        lower, upper = tensor.get_lower_value().data, tensor.get_upper_value().data
    except RuntimeError:
        # An uninitialised tensor: shape inference cannot bound these values, so a cut loses nothing.
        return False
    return bool(np.any(lower > 0) or np.any(upper < _INT32_MAX))
