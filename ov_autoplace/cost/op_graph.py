"""The ops of a model that run, as costs are estimated from them: no constants, no names, no ports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace.graph.rules import GraphView

if TYPE_CHECKING:
    from ov_autoplace.graph.computation_graph import ComputationGraph

__all__ = ["OpGraph"]

# Ops that a device resolves before it runs, or by giving a tensor another name.
_FREE = frozenset(
    {"Parameter", "Constant", "Result", "Reshape", "Squeeze", "Unsqueeze", "ShapeOf", "Identity"}
)

# Ops that compute element by element, in the kernel that makes what they read.
_ELEMENT_BY_ELEMENT = """
Abs Acos Acosh Add Asin Asinh Atan Atanh Ceiling Clamp Cos Cosh Divide Elu Erf Exp FakeQuantize
Floor Gelu HSigmoid HSwish HardSigmoid Log Maximum Minimum Mish Mod Multiply Negative PRelu Power
Relu Round Selu Sigmoid Sign Sin Sinh SoftPlus SoftSign Sqrt SquaredDifference Subtract Swish Tan
Tanh
"""
_FUSED = frozenset(_ELEMENT_BY_ELEMENT.split())

# Ops that read some rows of a table.
_LOOKING_UP = frozenset({"Gather", "GatherElements", "GatherND", "EmbeddingBagOffsets", "EmbeddingBagPacked"})


@dataclass(frozen=True, eq=False)
class OpGraph:
    """N ops in topological order and E edges between them.

    Attributes:
        op_types: OpenVINO type name of each op, length N.
        precisions: Element type name of each op's first output, length N.
        shapes: Shape of the first output, with the sizes that are assumed where they are not known.
        flops, weight_bytes, input_bytes, output_bytes: As in
            :class:`~ov_autoplace.graph.computation_graph.ComputationGraph`, ``float64[N]``.
        steps: As there, ``int32[N]``.
        edges: Producer and consumer of each edge, ``int32[E, 2]``, without duplicates, by consumer.
    """

    op_types: tuple[str, ...]
    precisions: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    flops: FloatArray
    weight_bytes: FloatArray
    input_bytes: FloatArray
    output_bytes: FloatArray
    steps: IntArray
    edges: IntArray

    def __len__(self) -> int:
        return len(self.op_types)

    @classmethod
    def of(cls, graph: ComputationGraph) -> tuple[OpGraph, IntArray]:
        """The ops of a graph that depend on its inputs, and their positions there, ``int32[N]``."""
        view = GraphView(graph)
        runs = ~view.foldable
        kept = np.flatnonzero(runs)
        position = np.cumsum(runs) - 1
        inside = runs[view.edge_source] & runs[view.edge_target]
        pairs = np.stack([position[view.edge_target[inside]], position[view.edge_source[inside]]], axis=1)
        edges = np.unique(pairs, axis=0)[:, ::-1] if len(pairs) else np.empty((0, 2))
        made = cls(
            op_types=tuple(graph.op_types[i] for i in kept),
            precisions=tuple(graph.precisions[i] for i in kept),
            shapes=tuple(graph.assumed_shapes[i] for i in kept),
            flops=frozen_array(graph.flops[kept], np.float64),
            weight_bytes=frozen_array(graph.weight_bytes[kept], np.float64),
            input_bytes=frozen_array(graph.input_bytes[kept], np.float64),
            output_bytes=frozen_array(graph.output_bytes[kept], np.float64),
            steps=frozen_array(graph.steps[kept], np.int32),
            edges=frozen_array(edges, np.int32),
        )
        return made, frozen_array(kept, np.int32)

    @cached_property
    def elements(self) -> FloatArray:
        """Of the first output of each op, ``float64[N]``."""
        return frozen_array([math.prod(shape) for shape in self.shapes], np.float64)

    @cached_property
    def run_length(self) -> FloatArray:
        """Elements that follow each other both in what an op reads and in its first output, ``float64[N]``.

        A join along the last axis moves few at a time, one along the first moves whole tensors. Axes are not
        kept, so that this is told from shapes: the last dimensions that are the same, and the smaller of the
        first ones before them that differ.
        """
        rank = max((len(shape) for shape in self.shapes), default=0)
        dims = np.ones((len(self), rank + 1))
        for i, shape in enumerate(self.shapes):
            dims[i, rank + 1 - len(shape) :] = shape
        before, after = dims[self.edges[:, 0]], dims[self.edges[:, 1]]
        is_same = np.logical_and.accumulate((before == after)[:, ::-1], axis=1)[:, ::-1]
        is_counted = np.concatenate([is_same[:, 1:], np.ones((len(is_same), 1), dtype=np.bool_)], axis=1)
        runs = np.where(is_counted, np.minimum(before, after), 1.0).prod(axis=1)
        found = self.elements.copy()
        np.minimum.at(found, self.edges[:, 1], runs)
        return frozen_array(found, np.float64)

    @cached_property
    def read_weights(self) -> FloatArray:
        """Bytes of constant data that an inference reads, ``float64[N]``: of a table, some rows."""
        looks_up = np.array([op_type in _LOOKING_UP for op_type in self.op_types], dtype=np.bool_)
        rows = np.minimum(self.weight_bytes, self.output_bytes)
        return frozen_array(np.where(looks_up, rows, self.weight_bytes), np.float64)

    @cached_property
    def is_busy(self) -> BoolArray:
        """Whether an op computes anything, ``bool[N]``."""
        return frozen_array([op_type not in _FREE for op_type in self.op_types], np.bool_)

    @cached_property
    def head(self) -> IntArray:
        """First op of the kernel that computes each op, by what devices fuse, ``int32[N]``.

        An op that computes element by element is computed where its operand is made, if nobody else reads
        that: a device writes it down once. Ops that only rename a tensor begin a kernel of their own that
        takes no time.
        """
        producer, consumer = self.edges[:, 0], self.edges[:, 1]
        readers = np.bincount(producer, minlength=len(self))
        is_fused = np.array([op_type in _FUSED for op_type in self.op_types], dtype=np.bool_)
        joins = is_fused[consumer] & (readers[producer] == 1) & self.is_busy[producer]
        joins &= self.elements[producer] == self.elements[consumer]
        head = list(range(len(self)))
        for first, second in self.edges[joins].tolist():
            # Edges are by consumer, and the last of its operands that was made wins.
            head[second] = head[first]
        return frozen_array(head, np.int32)
