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
    CONSTANT = "devices want these values as constants"
    WANTED_SIZE = "a device finds out a size that it must know from all ops that lead there"
    BOUNDED = "a tensor with a lower bound of a dynamic dimension cannot be transferred"


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


def bonds_of(graph: ComputationGraph, *, as_it_is: bool = False) -> list[Bond]:
    """All bonds of a model's ops, in no particular order.

    Args:
        graph: The ops.
        as_it_is: The model is compiled by plain HETERO from the user's own file; bounded dimensions, which
            are opened where this package compiles or annotates a model, then cannot cross.
    """
    bonds = [
        Bond(a, b, BondKind.VARIABLE) for positions in graph.variables for a, b in pairwise(sorted(positions))
    ]
    bonds += [Bond(a, b, BondKind.CONSTANT) for a, b in graph.hard_edges.tolist()]
    bonds += [Bond(a, b, BondKind.WANTED_SIZE) for a, b in graph.wanted_size_edges.tolist()]
    if as_it_is:
        bonds += [Bond(a, b, BondKind.BOUNDED) for a, b in graph.bounded_edges.tolist()]
    return bonds
