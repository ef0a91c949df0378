"""The computation graph: what is known of a model without knowing any device.

Struct of arrays, so that the C++ core reads it without a copy. Ops are in topological order (the
order of ``ov.Model.get_ordered_ops()``, which is also the order in which HETERO walks a model) and
are identified by their friendly names, never by their position in some other list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, rows_of

__all__ = ["CoarseGraph", "ComputationGraph"]


@dataclass(frozen=True, eq=False)
class ComputationGraph:
    """A directed acyclic graph of N ops that exchange T tensors over E edges.

    Attributes:
        names: Friendly name of each op, unique, length N.
        op_types: OpenVINO type name of each op (``"Convolution"``), length N.
        precisions: Element type name of each op's first output (``"f32"``), length N.
        flops: Floating point operations (a multiply-add counts two), ``float64[N]``.
        weight_bytes: Bytes of constant data that the op reads, ``float64[N]``; 0 for the Constants.
        steps: What the op has to do one after the other, ``int32[N]``: ops of a loop's body times its
            iterations, time steps of a recurrent sequence, 1 for any other op that runs.
        output_bytes: Bytes over all outputs of the op, ``float64[N]``.
        input_bytes: Bytes over all inputs of the op that are not constants, ``float64[N]``.
        output_shapes: Shape of the first output; ``-1`` marks a dimension that is not known.
        assumed_shapes: The same, with the sizes by which unknown dimensions count.
        is_constant, is_parameter, is_result, is_dynamic: Marks, ``bool[N]``.
        tensor_producer: Op that makes each tensor, ``int32[T]``.
        tensor_port: Output port of the producer, ``int32[T]``.
        tensor_bytes: Size of each tensor in bytes, ``float64[T]``.
        tensor_offsets: CSR offsets into ``tensor_consumers``, ``int32[T + 1]``.
        tensor_consumers: Consuming op of every edge, ``int32[E]``; one entry per input port, so an op
            that reads a tensor twice is named twice.
        tensor_consumer_port: Input port of every edge, ``int32[E]``.
        tensor_uncuttable: Tensors that co-location groups keep inside, ``bool[T]``: their values are partly
            known in advance and decide a shape downstream. A cut there makes HETERO fail at the first
            request, always or together with a second cut downstream.
        input_offsets, input_sources: The same edges by consumer, in port order, CSR ``int32[N + 1]`` and
            ``int32[E]`` (producing op of each input port).
        variables: Positions of the ReadValue and Assign ops of each state variable.
        hard_edges: Edges that HETERO can never cut, as producer and consumer, ``int32[H, 2]``: they lead to
            axes and the like, which devices want as Constants.
        bounded_edges: Edges that HETERO cannot cut in the model as it is, because a dynamic dimension has a
            lower bound, ``int32[B, 2]``; ``plan/bounded.py``
            mends that where a model is annotated or compiled.
        wanted_size_edges: Edges that HETERO cannot cut because a device has to find out a size from all that
            they connect, ``int32[W, 2]``.
        shape_links: Edges along which the knowledge of shapes is lost, as producer, consumer and
            :class:`~ov_autoplace.graph.shape_values.LinkKind`, ``int32[L, 3]``, consumers ascending.
    """

    names: tuple[str, ...]
    op_types: tuple[str, ...]
    precisions: tuple[str, ...]
    flops: FloatArray
    weight_bytes: FloatArray
    steps: IntArray
    output_bytes: FloatArray
    input_bytes: FloatArray
    output_shapes: tuple[tuple[int, ...], ...]
    assumed_shapes: tuple[tuple[int, ...], ...]
    is_constant: BoolArray
    is_parameter: BoolArray
    is_result: BoolArray
    is_dynamic: BoolArray
    tensor_producer: IntArray
    tensor_port: IntArray
    tensor_bytes: FloatArray
    tensor_offsets: IntArray
    tensor_consumers: IntArray
    tensor_consumer_port: IntArray
    tensor_uncuttable: BoolArray
    input_offsets: IntArray
    input_sources: IntArray
    variables: tuple[tuple[int, ...], ...] = ()
    hard_edges: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    bounded_edges: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    wanted_size_edges: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    shape_links: IntArray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def num_edges(self) -> int:
        """Number of (tensor, input port) pairs."""
        return len(self.tensor_consumers)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each op by friendly name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def edge_tensor(self) -> IntArray:
        """Tensor of each edge, ``int32[E]``, aligned with ``tensor_consumers``."""
        return rows_of(self.tensor_offsets).astype(np.int32)


@dataclass(frozen=True, eq=False)
class CoarseGraph:
    """Co-location groups of a computation graph, themselves a computation graph of G "ops".

    Attributes:
        graph: The graph of groups; a group carries the name and type of its heaviest op and the sums
            of its members' costs. Groups are in topological order.
        ops: The graph that was coarsened, N ops.
        group_of: Group of each op, ``int32[N]``.
        tensor_is_constant: Tensors of ``graph`` that are constants shared by several groups: they cost
            no transfer and make no dependency, but HETERO glues their consumers on the constant's
            own device into one subgraph, ``bool[T]``.
    """

    graph: ComputationGraph
    ops: ComputationGraph
    group_of: NDArray[np.int32]
    tensor_is_constant: BoolArray

    def __len__(self) -> int:
        return len(self.graph)

    @cached_property
    def members(self) -> tuple[tuple[str, ...], ...]:
        """Friendly names of the ops of each group, in topological order."""
        lists: list[list[str]] = [[] for _ in range(len(self.graph))]
        for name, group in zip(self.ops.names, self.group_of.tolist(), strict=True):
            lists[group].append(name)
        return tuple(map(tuple, lists))
