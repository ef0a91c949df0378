"""What HETERO sees of a placed model: nodes, the tensors between them, and the group of each node.

Costs are known per group, but HETERO cuts ops. Where a placement makes subgraphs wait for each other, which
edges it cuts depends on the ops inside the groups; a weight's decompression chain may be cut off its own
convolution, for example. A table that was made from a model therefore keeps the model's wiring, and a
table that was not is wired group by group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace.errors import CostTableError
from ov_autoplace.graph.bonds import bonds_of
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph

__all__ = ["CONSTANT", "GROUP", "PARAMETER", "RESULT", "Wiring", "node_kinds", "wiring_of_ops"]

# The kinds of the C++ core's NodeKind.
PARAMETER, CONSTANT, RESULT, GROUP = 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class Wiring:
    """N nodes in topological order that exchange T tensors.

    Attributes:
        node_group: Group of each node, ``int32[N]``.
        node_kind: 0 = op, 1 = Parameter, 2 = Constant, 3 = Result, 4 = a whole group, ``int32[N]``.
        tensor_producer: Node that makes each tensor, ``int32[T]``.
        tensor_bytes: Bytes of each tensor, ``float64[T]``; those of a Constant are never transferred.
        tensor_offsets, tensor_consumers: CSR of consuming nodes, ``int32[T + 1]``, ``int32[E]``, one entry
            per input port.
        bonds: Pairs of nodes that fail or go wrong in different subgraphs, ``int32[B, 2]``: the ReadValue
            and the Assign of a variable, and the two ends of an edge that cannot be transferred. That they
            share a group is not enough, because HETERO may cut inside a group.
        links: Edges along which the knowledge of shapes is lost, ``int32[L, 3]``; see
            ``ComputationGraph.shape_links``. A tensor that leaves a subgraph which
            has lost its shape fails too.
    """

    node_group: IntArray
    node_kind: IntArray
    tensor_producer: IntArray
    tensor_bytes: FloatArray
    tensor_offsets: IntArray
    tensor_consumers: IntArray
    bonds: IntArray
    links: IntArray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int32))

    def __post_init__(self) -> None:
        for name in ("node_group", "node_kind", "tensor_producer", "tensor_offsets", "tensor_consumers"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.int32))
        object.__setattr__(self, "tensor_bytes", frozen_array(self.tensor_bytes, np.float64))
        object.__setattr__(self, "bonds", frozen_array(self.bonds, np.int32).reshape(-1, 2))
        object.__setattr__(self, "links", frozen_array(self.links, np.int32).reshape(-1, 3))
        for name, ends in (("bonds", self.bonds), ("links", self.links[:, :2])):
            if ends.size and not 0 <= ends.min() <= ends.max() < len(self.node_group):
                raise CostTableError(f"the wiring's {name} must name nodes below {len(self.node_group)}")
        if len(self.node_group) != len(self.node_kind):
            raise CostTableError(
                f"the wiring has {len(self.node_group)} nodes with a group, "
                f"but {len(self.node_kind)} with a kind"
            )
        if len(self.tensor_bytes) != len(self.tensor_producer) or (
            len(self.tensor_offsets) != len(self.tensor_producer) + 1
        ):
            raise CostTableError(
                "the wiring's tensors need one producer, one size and one range of consumers each"
            )
        offsets = self.tensor_offsets
        if offsets[0] or offsets[-1] != len(self.tensor_consumers) or (np.diff(offsets) < 0).any():
            raise CostTableError(
                "the wiring's tensor_offsets must rise from 0 to the number of its tensor_consumers, "
                f"{len(self.tensor_consumers)}, without a fall"
            )
        for name in ("tensor_producer", "tensor_consumers"):
            ends = getattr(self, name)
            if ends.size and not 0 <= ends.min() <= ends.max() < len(self.node_group):
                raise CostTableError(f"the wiring's {name} must name nodes below {len(self.node_group)}")
        if len(self.node_kind) and not 0 <= self.node_kind.min() <= self.node_kind.max() <= GROUP:
            raise CostTableError(f"the wiring's node kinds must lie between 0 and {GROUP}")


def node_kinds(graph: ComputationGraph) -> IntArray:
    """What the C++ core takes each op of a graph for, ``int32[N]``."""
    kinds = graph.is_parameter * PARAMETER + graph.is_constant * CONSTANT + graph.is_result * RESULT
    return frozen_array(kinds, np.int32)


def wiring_of_ops(coarse: CoarseGraph) -> Wiring:
    """The wiring of a model's ops, as exact as HETERO itself."""
    ops = coarse.ops
    return Wiring(
        node_group=coarse.group_of,
        node_kind=node_kinds(ops),
        tensor_producer=ops.tensor_producer,
        tensor_bytes=ops.tensor_bytes,
        tensor_offsets=ops.tensor_offsets,
        tensor_consumers=ops.tensor_consumers,
        bonds=np.array([(b.first, b.second) for b in bonds_of(ops)], dtype=np.int32).reshape(-1, 2),
        links=ops.shape_links,
    )
