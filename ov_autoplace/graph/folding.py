"""Folding of shape computations whose values are known: a static model needs none at run time."""

from __future__ import annotations

import math
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
    known = _KnownValues()
    folded = 0
    for op in _that_may_be_known(records or ModelReader().read(model.get_ordered_ops())):
        if not known.find(op):
            continue
        read = [port for port in op.outputs() if port.get_target_inputs()]
        if len(read) != 1:
            continue  # a Constant has one output and the op's one name
        constant = opset.constant(known.value(read[0]))
        constant.set_friendly_name(op.get_friendly_name())
        constant.output(0).set_names(read[0].get_names())
        known.replace(op, read[0].get_index(), constant)
        for target in read[0].get_target_inputs():
            target.replace_source_output(constant.output(0))
        folded += 1
    return folded


def _that_may_be_known(records: Sequence[OpRecord]) -> list[ov.Node]:
    """The ops whose values may be known, and the Constants that these read, in topological order."""
    may = [False] * len(records)
    wanted: set[int] = set()
    for i, record in enumerate(records):
        if record.op_type == "Constant":
            may[i] = True
            continue
        if record.op_type == "ShapeOf":
            ((source, port),) = record.sources
            may[i] = not records[source].shapes[port].dynamic
        elif record.sources and record.op_type not in _NEVER_FOLDED:
            may[i] = all(may[source] for source, _ in record.sources)
        if may[i]:
            wanted.add(i)
            wanted.update([source for source, _ in record.sources if records[source].op_type == "Constant"])
    return [records[i].node for i in sorted(wanted)]


class _KnownValues:
    """Small values that do not depend on any input of the model, by the op and output that have them.

    Those of a model's own Constants are read when an op is found that is computed from such values alone.
    """

    def __init__(self) -> None:
        self._constants: dict[int, ov.Node] = {}
        self._values: dict[int, list[ov.Tensor]] = {}
        # What the model stores, and of that what is stored in fewer bits, with the ops that decompress it.
        self._stored: set[int] = set()
        self._compressed: set[int] = set()

    def value(self, output: ov.Output) -> ov.Tensor:
        """What :meth:`find` has found for an output."""
        return self._values[output.get_node().get_instance_id()][output.get_index()]

    def replace(self, op: ov.Node, port: int, constant: ov.Node) -> None:
        """Remember that ``constant`` replaces an output of ``op`` from now on."""
        self._values[constant.get_instance_id()] = [self._values[op.get_instance_id()][port]]

    def find(self, op: ov.Node) -> bool:
        """Whether Constants may take the place of ``op``, whose producers were looked at before."""
        kind, identity = op.get_type_name(), op.get_instance_id()
        if kind == "Constant":
            self._constants[identity] = op
            return False
        if kind == "ShapeOf":
            if op.get_input_partial_shape(0).is_static:
                dtype = np.int32 if op.get_output_element_type(0) == ov.Type.i32 else np.int64
                self._values[identity] = [ov.Tensor(np.array(list(op.get_input_shape(0)), dtype=dtype))]
            return identity in self._values
        sources = [value.get_node().get_instance_id() for value in op.input_values()]
        if not sources or not all(map(self._is_known, sources)):
            return False
        if kind in _NEVER_FOLDED or not _is_small(op):
            return False
        values = [ov.Tensor(out.get_element_type(), out.get_shape()) for out in op.outputs()]
        if not op.evaluate(values, [self.value(value) for value in op.input_values()]):
            return False
        self._values[identity] = values
        if all(source in self._stored for source in sources):
            expands = kind == "Convert" and _expands(op)
            if expands or any(source in self._compressed for source in sources):
                self._stored.add(identity)
                self._compressed.add(identity)
        return identity not in self._compressed

    def _is_known(self, identity: int) -> bool:
        """Whether the values of an op are known; reads those of a small Constant."""
        if identity not in self._values and identity in self._constants:
            constant = self._constants.pop(identity)
            if _is_small(constant):
                self._values[identity] = [ov.Tensor(constant.get_data())]
                self._stored.add(identity)
        return identity in self._values


def _is_small(op: ov.Node) -> bool:
    """Whether all outputs are static, readable and small."""
    return all(
        out.get_partial_shape().is_static
        and out.get_element_type().to_string() in _READABLE
        and out.get_element_type().size * math.prod(out.get_shape()) <= _LARGEST_BYTES
        for out in op.outputs()
    )


def _expands(convert: ov.Node) -> bool:
    """Whether a Convert makes floats of numbers that are stored in fewer bits."""
    source = convert.get_input_element_type(0)
    target = convert.get_output_element_type(0)
    return bool(
        target.is_real() and source != ov.Type.boolean and source.bitwidth < min(_FULL_BITS, target.bitwidth)
    )
