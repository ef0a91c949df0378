"""Folding of shape computations whose values are known: a static model needs none at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace.graph.records import ModelReader, OpRecord

__all__ = ["fold_static_shapes"]

# Shapes, axes, paddings and position tables of a few entries.
_LARGEST_BYTES = 4096

# FakeQuantize and FakeConvert are instructions to the devices' low-precision transformations.
# Random numbers are drawn anew in each inference.
_NEVER_FOLDED = frozenset({
    "Parameter", "ReadValue", "Assign", "Result", "FakeQuantize", "FakeConvert",
    "RandomUniform", "Multinomial",
})  # fmt: skip
# Types that the bindings hand out as NumPy has them.
_READABLE = frozenset({"boolean", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
_FULL_BITS = 32


def fold_static_shapes(model: ov.Model, records: Sequence[OpRecord] | None = None) -> int:
    """Replace computations of known small values by Constants of the same names, in place.

    HETERO does not fold. A shape computation that it cuts off from its consumer makes the consumer's shape
    dynamic, and the first request fails; coarsening therefore keeps such chains together, and with them
    all ops that they feed. Once its value is a Constant, it stays with each consumer at no cost.

    A stored weight, however small, keeps its decompression (a Convert from less than 32 bits to floats,
    and what follows), because devices have kernels for that. Where it meets a shape, as the factor by
    which a size is scaled, its value is known all the same.

    Only ops that OpenVINO itself can evaluate from Constants are replaced, so that the names that remain
    are a subset of those before.

    Args:
        model: The model.
        records: What :class:`~ov_autoplace.graph.records.ModelReader` reads of its ops, where that is known.

    Returns:
        How many ops were replaced.
    """
    records = ModelReader().read(model.get_ordered_ops()) if records is None else records
    known = _KnownValues(records)
    return sum(_replaced(records[i].node, known.values[i]) for i in range(len(records)) if known.find(i))


def _replaced(op: ov.Node, values: Sequence[ov.Tensor]) -> bool:
    """Put a Constant in the place of an op; not of one of which several outputs are read or none."""
    read = [port for port in op.outputs() if port.get_target_inputs()]
    if len(read) != 1:
        return False  # a Constant has one output and the op's one name
    constant = opset.constant(values[read[0].get_index()])
    constant.set_friendly_name(op.get_friendly_name())
    constant.output(0).set_names(read[0].get_names())
    for target in read[0].get_target_inputs():
        target.replace_source_output(constant.output(0))
    return True


class _KnownValues:
    """Small values that do not depend on any input of the model, by the position of the op that has them.

    Those of a model's own Constants are read when an op is found that is computed from such values alone.
    """

    def __init__(self, records: Sequence[OpRecord]) -> None:
        self._records = records
        self.values: dict[int, list[ov.Tensor]] = {}
        # What the model stores, and of that what is stored in fewer bits, with the ops that decompress it.
        self._stored: set[int] = set()
        self._compressed: set[int] = set()

    def find(self, i: int) -> bool:
        """Whether a Constant may take the place of an op, whose producers were looked at before."""
        record = self._records[i]
        op, sources = record.node, [source for source, _ in record.sources]
        if record.op_type == "ShapeOf":
            ((source, port),) = record.sources
            shape = self._records[source].shapes[port]
            if not shape.dynamic:
                dtype = op.get_output_element_type(0).to_dtype()
                self.values[i] = [ov.Tensor(np.array(shape.known, dtype=dtype))]
            return not shape.dynamic
        if not sources or record.op_type in _NEVER_FOLDED or not _is_small(record):
            return False
        if not all(map(self._is_known, sources)):
            return False
        values = [ov.Tensor(out.get_element_type(), out.get_shape()) for out in op.outputs()]
        if not op.evaluate(values, [self.values[source][port] for source, port in record.sources]):
            return False
        self.values[i] = values
        if all(source in self._stored for source in sources):
            expands = record.op_type == "Convert" and _expands(op)
            if expands or any(source in self._compressed for source in sources):
                self._stored.add(i)
                self._compressed.add(i)
        return i not in self._compressed

    def _is_known(self, i: int) -> bool:
        """Whether the values of an op are known; reads those of a small Constant."""
        record = self._records[i]
        if i not in self.values and record.op_type == "Constant" and _is_small(record):
            self.values[i] = [ov.Tensor(record.node.get_data())]
            self._stored.add(i)
        return i in self.values


def _is_small(record: OpRecord) -> bool:
    """Whether all outputs are static, readable and small."""
    return all(
        not shape.dynamic and element in _READABLE and size <= _LARGEST_BYTES
        for shape, element, size in zip(record.shapes, record.types, record.bytes, strict=True)
    )


def _expands(convert: ov.Node) -> bool:
    """Whether a Convert makes floats of numbers that are stored in fewer bits."""
    source = convert.get_input_element_type(0)
    target = convert.get_output_element_type(0)
    return bool(
        target.is_real() and source != ov.Type.boolean and source.bitwidth < min(_FULL_BITS, target.bitwidth)
    )
