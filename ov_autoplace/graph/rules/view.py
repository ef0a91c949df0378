"""A computation graph as the rules look at it: edge lists and marks, computed once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ov_autoplace._base.arrays import BoolArray, IntArray
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.foldable import foldable_ops

__all__ = ["GraphView", "Rule", "pairs_of"]


@dataclass(frozen=True, eq=False)
class GraphView:
    """What several rules need of one graph of N ops and E edges."""

    graph: ComputationGraph

    @cached_property
    def foldable(self) -> BoolArray:
        """Ops that do not depend on the model's inputs, ``bool[N]``."""
        graph = self.graph
        rows = np.split(graph.input_sources, graph.input_offsets[1:-1])
        return foldable_ops(graph.op_types, [row.tolist() for row in rows])

    @cached_property
    def edge_source(self) -> IntArray:
        """Producer of each edge, ``int32[E]``, aligned with the graph's ``tensor_consumers``."""
        return self.graph.tensor_producer[self.graph.edge_tensor]

    @property
    def edge_target(self) -> IntArray:
        """Consumer of each edge, ``int32[E]``."""
        return self.graph.tensor_consumers

    @cached_property
    def first_consumer(self) -> IntArray:
        """First op in topological order that reads any output of each op, ``int32[N]``; N for none."""
        return self.first_consumer_along(np.ones(self.graph.num_edges, dtype=np.bool_))

    def first_consumer_along(self, edges: BoolArray) -> IntArray:
        """As :attr:`first_consumer`, looking at the marked edges only (``bool[E]``)."""
        first = np.full(len(self.graph), len(self.graph), dtype=np.int32)
        np.minimum.at(first, self.edge_source[edges], self.edge_target[edges])
        return first

    @cached_property
    def dependencies(self) -> IntArray:
        """Edges along which one op waits for another, ``int32[K, 2]``: all but those from Constants.

        HETERO gives each subgraph its own copy of a Constant.
        """
        waits = ~self.graph.is_constant[self.edge_source]
        return pairs_of(self.edge_source[waits], self.edge_target[waits])

    def is_type(self, op_types: Collection[str]) -> BoolArray:
        """Ops whose type is among ``op_types``, ``bool[N]``."""
        vocabulary, codes = self._types
        return np.array([name in op_types for name in vocabulary], dtype=np.bool_)[codes]

    @cached_property
    def _types(self) -> tuple[list[str], IntArray]:
        code: dict[str, int] = {}
        codes = np.array([code.setdefault(name, len(code)) for name in self.graph.op_types], dtype=np.int32)
        return list(code), codes


Rule = Callable[[GraphView], IntArray]
"""A function that returns the pairs of ops that must share a group, ``int32[K, 2]``."""


def pairs_of(first: IntArray, second: IntArray) -> IntArray:
    """Two aligned ``int32[K]`` as ``int32[K, 2]``."""
    return np.ascontiguousarray(np.stack((first, second), axis=1), dtype=np.int32)
