"""Tensors whose values decide shapes: a cut there makes HETERO fail at the first request.

A subgraph that receives the pattern of a Reshape as an input knows nothing of its values, so the
Reshape's output becomes more dynamic there than it was in the model. HETERO then allocates the
tensor that leaves the subgraph with zeros for those dimensions, and the receiving subgraph, which was
built from the model's own shapes, refuses it.

Only what was known in advance can be lost: a pattern of which no element is known may be cut off. A
pattern of which some are (``[?, ?, 12, 64]``) needs its whole chain, back to the ShapeOf, in its own
subgraph, because OpenVINO bounds the values of a chain from its start or not at all. A ShapeOf itself
may be apart from what it measures, since shapes cross with their tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
