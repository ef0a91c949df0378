"""One pass over the ops of a model, whose records serve all that is asked about every op.

A call of OpenVINO's bindings costs up to 2 us, and one that makes a Python list of a shape 11: a pass over a
million ops takes ten seconds. Shapes are therefore parsed once per distinct shape, keyed by their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import openvino as ov

from ov_autoplace.graph.shapes import assumed_size

__all__ = ["ModelReader", "OpRecord", "ReadModel", "ReadShape", "bodies_of"]

# What they make has as many elements as what they read; of the last two about as many, where nobody knows.
_KEEPING_ELEMENTS = frozenset(
    {"Convert", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "Interpolate", "Pad"}
)


def bodies_of(op: Any) -> list[ov.Model]:
    """The branches of an If, or what a Loop or a TensorIterator repeats; nothing for any other op."""
    kind = op.get_type_name()
    if kind == "If":
        return [op.get_function(0), op.get_function(1)]
    return [op.get_function()] if kind in ("Loop", "TensorIterator") else []


@dataclass(frozen=True, slots=True)
class ReadShape:
    """A parsed shape.

    Attributes:
        known: Its dimensions, -1 for one that is not known.
        dims: Its dimensions with a size assumed for those that are not known.
        elements: Product of ``dims``.
        dynamic: Whether any dimension is not known.
        ranked: Whether it is known how many dimensions there are.
        bounded: Whether a dynamic dimension has a lower bound above 0. HETERO makes a tensor between
            subgraphs with 0 for every dynamic dimension and then refuses it when the receiving input demands
            at least one element there.
    """

    known: tuple[int, ...]
    dims: tuple[int, ...]
    elements: int
    dynamic: bool
    bounded: bool
    ranked: bool = True

    def with_elements(self, elements: int) -> ReadShape:
        """The same shape, whose unknown dimensions are assumed such that it has about so many elements."""
        is_known = [size >= 0 for size in self.known]
        told = prod(size for size, known in zip(self.dims, is_known, strict=True) if known)
        side = max(1, round((elements / max(told, 1)) ** (1 / (len(is_known) - sum(is_known)))))
        dims = tuple(size if known else side for size, known in zip(self.dims, is_known, strict=True))
        return replace(self, dims=dims, elements=prod(dims))

    @classmethod
    def of(cls, partial: ov.PartialShape) -> ReadShape:
        """Parse a shape as OpenVINO reports it."""
        if partial.rank.is_dynamic:
            assumed = assumed_size(0, ov.Dimension(), rank=1)
            return cls((-1,), (assumed,), assumed, True, False, ranked=False)
        rank = partial.rank.get_length()
        dimensions = [partial.get_dimension(i) for i in range(rank)]
        dims = tuple(assumed_size(i, dimension, rank) for i, dimension in enumerate(dimensions))
        dynamic = [dimension.is_dynamic for dimension in dimensions]
        return cls(
            known=tuple(-1 if unknown else size for unknown, size in zip(dynamic, dims, strict=True)),
            dims=dims,
            elements=prod(dims),
            dynamic=any(dynamic),
            bounded=any(d.is_dynamic and d.get_min_length() > 0 for d in dimensions),
        )


@dataclass(slots=True)
class OpRecord:
    """One op as read.

    Attributes:
        op_type: Its type name.
        node: The op itself, for the few rules that need attributes or bodies.
        name: Its friendly name.
        shapes, types, bytes: Shape, element type name and size of each output.
        sources: Position of the producing op, and its output port, of each input.
    """

    op_type: str
    node: ov.Node
    name: str
    shapes: tuple[ReadShape, ...]
    types: tuple[str, ...]
    bytes: tuple[int, ...]
    sources: tuple[tuple[int, int], ...]


_Outputs = tuple[tuple[ReadShape, ...], tuple[str, ...], tuple[int, ...]]


class ModelReader:
    """Reads ops in topological order; what outputs of one shape and type have in common is read once."""

    def __init__(self) -> None:
        self._shapes: dict[str, ReadShape] = {}
        self._outputs: dict[tuple[str, str], _Outputs] = {}

    def read(self, ops: Sequence[ov.Node]) -> list[OpRecord]:
        """The records of ``ops``, which must be complete and in topological order."""
        position = {op.get_instance_id(): i for i, op in enumerate(ops)}
        records: list[OpRecord] = []
        for op in ops:
            sources = tuple(
                [
                    (position[value.get_node().get_instance_id()], value.get_index())
                    for value in op.input_values()
                ]
            )
            records.append(self._record(op, op.get_type_name(), op.get_friendly_name(), sources, records))
        return records

    def read_again(self, ops: Sequence[ov.Node], records: Sequence[OpRecord]) -> list[OpRecord]:
        """The records of a clone's ops: other shapes, but the names, types and edges of ``records``."""
        again: list[OpRecord] = []
        for op, known in zip(ops, records, strict=True):
            again.append(self._record(op, known.op_type, known.name, known.sources, again))
        return again

    def _record(
        self,
        op: ov.Node,
        op_type: str,
        name: str,
        sources: tuple[tuple[int, int], ...],
        before: Sequence[OpRecord],
    ) -> OpRecord:
        """The record of an op, whose operands are among those ``before`` it."""
        shapes, types, sizes = self._read_outputs(op)
        if op_type in _KEEPING_ELEMENTS and shapes[0].dynamic:
            producer, port = sources[0]
            shape = shapes[0].with_elements(before[producer].shapes[port].elements)
            sizes = (-(-sizes[0] * shape.elements // max(shapes[0].elements, 1)),)
            shapes = (shape,)
        return OpRecord(op_type, op, name, shapes, types, sizes, sources)

    def _read_outputs(self, op: ov.Node) -> _Outputs:
        """Shapes, types and sizes of all outputs of an op."""
        number = op.get_output_size()
        if number == 1:  # nearly every op: those alike share what is known of them
            return self._read_output(op, 0)
        shapes: list[ReadShape] = []
        types: list[str] = []
        sizes: list[int] = []
        for port in range(number):
            shape, element_type, size = self._read_output(op, port)
            shapes += shape
            types += element_type
            sizes += size
        return tuple(shapes), tuple(types), tuple(sizes)

    def _read_output(self, op: ov.Node, port: int) -> _Outputs:
        partial = op.get_output_partial_shape(port)
        element = op.get_output_element_type(port)
        key = (partial.to_string(), element.to_string())
        found = self._outputs.get(key)
        if found is None:
            text, name = key
            shape = self._shapes.get(text)
            if shape is None:
                shape = self._shapes[text] = ReadShape.of(partial)
            # A type that is not known yet is taken for f32.
            bits = element.bitwidth or 32
            found = self._outputs[key] = ((shape,), (name,), (-(-shape.elements * bits // 8),))
        return found


class ReadModel:
    """A model that passes change, with what was read of its ops for as long as that holds.

    Attributes:
        model: The model.
    """

    def __init__(self, model: ov.Model) -> None:
        self.model = model
        self._records: list[OpRecord] | None = None

    @property
    def records(self) -> list[OpRecord]:
        """The records of its ops, in topological order."""
        if self._records is None:
            self._records = ModelReader().read(self.model.get_ordered_ops())
        return self._records

    def forget(self) -> None:
        """Have the ops read anew when they are asked for again."""
        self._records = None
