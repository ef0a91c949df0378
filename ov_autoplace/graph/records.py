"""One pass over the ops of a model: the only place that asks OpenVINO's bindings about every op.

A call costs a fraction of a microsecond, except those that make Python lists of shapes (11 us), so
shapes are parsed once per distinct shape, keyed by their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import openvino as ov

from ov_autoplace.graph.shapes import assumed_size

__all__ = ["ModelReader", "OpRecord", "ReadShape"]


@dataclass(frozen=True, slots=True)
class ReadShape:
    """A parsed shape.

    Attributes:
        known: Its dimensions, -1 for one that is not known.
        dims: Its dimensions with a size assumed for those that are not known.
        elements: Product of ``dims``.
        dynamic: Whether any dimension is not known.
        bounded: Whether a dynamic dimension has a lower bound above 0. HETERO makes a tensor between
            subgraphs with 0 for every dynamic dimension and then refuses it when the receiving input demands
            at least one element there.
    """

    known: tuple[int, ...]
    dims: tuple[int, ...]
    elements: int
    dynamic: bool
    bounded: bool

    @classmethod
    def of(cls, partial: ov.PartialShape) -> ReadShape:
        """Parse a shape as OpenVINO reports it."""
        if partial.rank.is_dynamic:
            assumed = assumed_size(0, ov.Dimension(), rank=1)
            return cls((-1,), (assumed,), assumed, True, False)
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
        shapes, types, bytes: Shape, element type name and size of each output.
        sources: Position of the producing op, and its output port, of each input.
    """

    op_type: str
    node: ov.Node
    shapes: list[ReadShape]
    types: list[str]
    bytes: list[float]
    sources: list[tuple[int, int]]


class ModelReader:
    """Reads ops in topological order; caches shapes by their text, sizes by both."""

    def __init__(self) -> None:
        self._shapes: dict[str, ReadShape] = {}
        self._bytes: dict[tuple[str, str], int] = {}

    def read(self, ops: Sequence[ov.Node]) -> list[OpRecord]:
        """The records of ``ops``, which must be complete and in topological order."""
        position = {op.get_instance_id(): i for i, op in enumerate(ops)}
        records: list[OpRecord] = []
        for op in ops:
            shapes: list[ReadShape] = []
            types: list[str] = []
            sizes: list[float] = []
            for port in range(op.get_output_size()):
                partial = op.get_output_partial_shape(port)
                text = partial.to_string()
                shape = self._shapes.get(text)
                if shape is None:
                    shape = self._shapes[text] = ReadShape.of(partial)
                element = op.get_output_element_type(port)
                name = element.to_string()
                size = self._bytes.get((text, name))
                if size is None:
                    # A type that is not known yet is taken for f32.
                    bits = element.bitwidth or 32
                    size = self._bytes[text, name] = -(-shape.elements * bits // 8)
                shapes.append(shape)
                types.append(name)
                sizes.append(size)
            sources = [
                (position[value.get_node().get_instance_id()], value.get_index())
                for value in op.input_values()
            ]
            records.append(OpRecord(op.get_type_name(), op, shapes, types, sizes, sources))
        return records
