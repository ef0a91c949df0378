"""Folding of shape computations whose values are known: a static model needs none at run time."""

from __future__ import annotations

import math

import numpy as np
import openvino as ov
from openvino import opset13 as opset

__all__ = ["fold_static_shapes"]

# Shapes, axes, paddings and position tables of a few entries; never weights, whose decompression must
# stay with the op that reads them.
_LARGEST_BYTES = 4096

_NEVER_FOLDED = frozenset({"Constant", "Parameter", "ReadValue", "Assign", "Result"})


def fold_static_shapes(model: ov.Model) -> int:
    """Replace computations of known small values by Constants of the same names, in place.

    HETERO does not fold. A shape computation that it cuts off from its consumer makes the consumer's shape
    dynamic, and the first request fails; coarsening therefore keeps such chains together, and with them
    all ops that they feed. Once its value is a Constant, it stays with each consumer at no cost.

    Only ShapeOf of static shapes and single-output ops that OpenVINO itself can evaluate from Constants are
    replaced, so that the names that remain are a subset of those before.

    Returns:
        How many ops were replaced.
    """
    folded = 0
    for op in model.get_ordered_ops():
        value = _known_value(op)
        if value is None:
            continue
        constant = opset.constant(value)
        constant.set_friendly_name(op.get_friendly_name())
        source = op.output(0)
        constant.output(0).set_names(source.get_names())
        for target in source.get_target_inputs():
            target.replace_source_output(constant.output(0))
        folded += 1
    return folded


def _known_value(op: ov.Node) -> ov.Tensor | None:
    """The output of ``op`` when it is small and does not depend on any input of the model."""
    kind = op.get_type_name()
    if kind == "ShapeOf":
        if op.get_input_partial_shape(0).is_dynamic:
            return None
        dtype = np.int32 if op.get_output_element_type(0) == ov.Type.i32 else np.int64
        return ov.Tensor(np.array(list(op.get_input_shape(0)), dtype=dtype))
    if kind in _NEVER_FOLDED or op.get_input_size() == 0 or op.get_output_size() != 1:
        return None
    if op.input_value(0).get_node().get_type_name() != "Constant":
        return None  # nearly every op: the others need not be asked for
    sources = [value.get_node() for value in op.input_values()]
    if any(source.get_type_name() != "Constant" for source in sources):
        return None
    if kind == "Convert" and sources[0].get_output_element_type(0).is_real():
        return None  # a compressed weight, however small, is no shape
    output = op.output(0)
    if output.get_partial_shape().is_dynamic:
        return None
    if output.get_element_type().size * math.prod(output.get_shape()) > _LARGEST_BYTES:
        return None
    value = ov.Tensor(output.get_element_type(), output.get_shape())
    return value if op.evaluate([value], [ov.Tensor(s.get_data()) for s in sources]) else None
