"""The ops of a model that run, as costs are estimated from them: no constants, no names, no ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace.graph.rules import GraphView

if TYPE_CHECKING:
    from ov_autoplace.graph.computation_graph import ComputationGraph

__all__ = ["OpGraph"]


@dataclass(frozen=True, eq=False)
class OpGraph:
    """N ops in topological order and E edges between them.

    Attributes:
        op_types: OpenVINO type name of each op, length N.
        precisions: Element type name of each op's first output, length N.
        shapes: Shape of the first output; ``-1`` marks a dimension that is not known.
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
            shapes=tuple(graph.output_shapes[i] for i in kept),
            flops=frozen_array(graph.flops[kept], np.float64),
            weight_bytes=frozen_array(graph.weight_bytes[kept], np.float64),
            input_bytes=frozen_array(graph.input_bytes[kept], np.float64),
            output_bytes=frozen_array(graph.output_bytes[kept], np.float64),
            steps=frozen_array(graph.steps[kept], np.int32),
            edges=frozen_array(edges, np.int32),
        )
        return made, frozen_array(kept, np.int32)
