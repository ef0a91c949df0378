"""Which values an integer input may take, so that random data never reads outside of a table."""

from __future__ import annotations

from collections.abc import Mapping

import openvino as ov

from ov_autoplace.graph.shapes import DEFAULT_DIMENSION

__all__ = ["input_ranges"]

# Ops whose output holds the values of input 0 and nothing larger.
_VALUE_KEEPING = frozenset(
    [
        "Convert",
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "Broadcast",
        "Tile",
        "StridedSlice",
        "Slice",
        "Split",
        "VariadicSplit",
        "Concat",
        "Relu",
        "Clamp",
        "Abs",
        "Gather",
        "ReduceMax",
        "ReduceMin",
        "Minimum",
    ]
)
# Ops that may shift the values; the index stays inside the table when the range shrinks by the shift.
_SHIFTING = frozenset({"Add", "Subtract"})

# Op type -> (index input, data input, axis input or None for axis 0).
_INDEXING: Mapping[str, tuple[int, int, int | None]] = {
    "Gather": (1, 0, 2),
    "GatherElements": (1, 0, None),
    "GatherND": (1, 0, None),
    "EmbeddingBagOffsetsSum": (1, 0, None),
    "EmbeddingBagOffsets": (1, 0, None),
    "EmbeddingBagPackedSum": (1, 0, None),
    "EmbeddingBagPacked": (1, 0, None),
    "EmbeddingSegmentsSum": (1, 0, None),
    "ScatterUpdate": (1, 0, 3),
    "ScatterElementsUpdate": (1, 0, 3),
    "ScatterNDUpdate": (1, 0, None),
}


def input_ranges(model: ov.Model) -> dict[str, int]:
    """Exclusive upper bound of the values of each integer input, by the Parameter's friendly name.

    The value of an input is followed through ops that keep or shift it to every op that uses it as an
    index, and the smallest table decides. Inputs that index nothing are left out.
    """
    ranges: dict[str, int] = {}
    for parameter in model.get_parameters():
        element = parameter.get_output_element_type(0)
        if element.is_real() or element in (ov.Type.boolean, ov.Type.string, ov.Type.dynamic):
            continue
        found = _bounds_reached(parameter)
        if found:
            ranges[parameter.get_friendly_name()] = max(1, min(found))
    return ranges


def _bounds_reached(parameter: ov.Node) -> list[int]:
    """Table sizes that values of ``parameter`` index, each less what was added on the way."""
    bounds: list[int] = []
    pending = [(parameter.output(0), 0)]
    seen = {(parameter.get_instance_id(), 0)}
    while pending:
        output, shift = pending.pop()
        for target in output.get_target_inputs():
            node, port = target.get_node(), target.get_index()
            op_type = node.get_type_name()
            size = _indexed_size(node, op_type, port)
            if size is not None:
                bounds.append(size - shift)
                continue
            added = _added(node, op_type, port)
            if added is None:
                continue
            for result in node.outputs():
                key = (node.get_instance_id(), result.get_index())
                if key not in seen:
                    seen.add(key)
                    pending.append((result, shift + added))
    return bounds


def _indexed_size(node: ov.Node, op_type: str, port: int) -> int | None:
    """Length of the axis that input ``port`` of ``node`` indexes, or ``None``: it is no index."""
    if op_type == "OneHot" and port == 0:
        depth = _constant_value(node.input_value(1))
        return DEFAULT_DIMENSION if depth is None else depth
    if op_type not in _INDEXING or port != _INDEXING[op_type][0]:
        return None
    _, data_input, axis_input = _INDEXING[op_type]
    axis: int | None = 0
    if axis_input is not None:
        axis = _constant_value(node.input_value(axis_input))
    elif op_type == "GatherElements":
        axis = int(node.get_attributes()["axis"])
    shape = node.get_input_partial_shape(data_input)
    if axis is None or shape.rank.is_dynamic:
        return 1
    # An index tuple of GatherND meets several axes; the shortest of them is safe for all.
    axes = (
        range(shape.rank.get_length()) if op_type.endswith("ND") or op_type == "ScatterNDUpdate" else [axis]
    )
    lengths = [shape.get_dimension(a % shape.rank.get_length()) for a in axes]
    return int(
        min(
            length.get_length() if length.is_static else max(1, length.get_min_length()) for length in lengths
        )
    )


def _added(node: ov.Node, op_type: str, port: int) -> int | None:
    """What ``node`` adds to the values it reads at ``port``, or ``None`` when it makes other values."""
    if op_type in _VALUE_KEEPING and (port == 0 or op_type in ("Concat", "Minimum")):
        return 0
    if op_type in _SHIFTING and (port == 0 or op_type == "Add"):
        constant = _constant_value(node.input_value(1 - port), largest=True)
        if constant is None:
            return None if op_type == "Subtract" else 0
        return constant if op_type == "Add" else -constant
    return None


def _constant_value(output: ov.Output, largest: bool = False) -> int | None:
    """Value of a Constant (its largest element, or the only one), or ``None`` if it is no Constant."""
    node = output.get_node()
    if node.get_type_name() != "Constant":
        return None
    data = node.get_data()
    if data.size == 0 or (data.size != 1 and not largest):
        return None
    return int(data.max())
