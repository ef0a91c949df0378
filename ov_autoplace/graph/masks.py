"""Masks of attention that are inputs of a model: a CPU that computes in bf16 answers them with NaN.

It adds a mask in the kernel of the product before it, where the mask is the second operand and differs along
its last dimension alone, and reads an input of the model, which is f32, as if it were bf16. As the first
operand the mask is added by a kernel of its own, and the sum is the same.
"""

from __future__ import annotations

import openvino as ov

__all__ = ["order_masks"]

_COMMUTATIVE = frozenset({"Add", "Maximum", "Minimum", "Multiply"})
# What a compiler may leave out, so that its reader reads the input of the model.
_LEFT_OUT = frozenset(
    {"Broadcast", "Concat", "Convert", "Multiply", "Reshape", "Squeeze", "Tile", "Unsqueeze"}
)


def order_masks(model: ov.Model) -> int:
    """Make such masks the first operands of those that read them, in place.

    Returns:
        How many readers were changed.
    """
    found = [op for op in model.get_ops() if op.get_type_name() in _COMMUTATIVE and _reads_mask(op)]
    for op in found:
        first, mask = op.input_values()
        op.input(0).replace_source_output(mask)
        op.input(1).replace_source_output(first)
    return len(found)


def _reads_mask(op: ov.Node) -> bool:
    """Whether an op has a row of an input of the model as its second operand, and not as its first one."""
    first, second = op.input_values()
    is_symmetric = op.get_attributes().get("auto_broadcast", "numpy") == "numpy"
    return is_symmetric and _is_row_of_input(second) and not _is_row_of_input(first)


def _is_row_of_input(value: ov.Output) -> bool:
    shape = value.get_partial_shape()
    if shape.rank.is_dynamic or not value.get_element_type().is_real():
        return False
    *others, last = [*shape] or [ov.Dimension(1)]
    if any(dim.is_static and dim != 1 for dim in others) or last == 1:
        return False
    node = value.get_node()
    while node.get_type_name() in _LEFT_OUT:
        node = node.input_value(0).get_node()
    return bool(node.get_type_name() == "Parameter")
