"""Bonds: pairs of ops that HETERO must keep in one subgraph, and why.

That two ops share a device, or a co-location group, is not enough: HETERO cuts a device's subgraph where it
would wait for itself through another device.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from ov_autoplace.graph.computation_graph import ComputationGraph

__all__ = ["Bond", "BondKind", "bonds_of"]


class BondKind(Enum):
    """Why two ops must share a subgraph; the value ends a sentence about the two."""

    VARIABLE = "a state variable is read and written in one subgraph only"
    SHAPE = "the tensor between them has a bounded shape or decides one, which is lost at the border of a subgraph"


@dataclass(frozen=True, slots=True)
class Bond:
    """Two ops, by position in their graph, that must share a subgraph.

    Attributes:
        first, second: Positions of the ops.
        kind: What breaks otherwise.
    """

    first: int
    second: int
    kind: BondKind


def bonds_of(graph: ComputationGraph) -> list[Bond]:
    """All bonds of a model's ops, in no particular order."""
    bonds = [
        Bond(a, b, BondKind.VARIABLE) for positions in graph.variables for a, b in pairwise(sorted(positions))
    ]
    uncuttable = graph.tensor_uncuttable[graph.edge_tensor].nonzero()[0]
    producers = graph.tensor_producer[graph.edge_tensor[uncuttable]].tolist()
    consumers = graph.tensor_consumers[uncuttable].tolist()
    bonds += [Bond(a, b, BondKind.SHAPE) for a, b in zip(producers, consumers, strict=True)]
    return bonds
