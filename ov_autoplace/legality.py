"""Why HETERO cannot run a placement: the bonds between ops that it would part, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ov_autoplace._arrays import IntArray
from ov_autoplace.graph.bonds import Bond, bonds_of
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.partition import graph_subgraphs

__all__ = ["BrokenBond", "broken_bonds"]


@dataclass(frozen=True, slots=True)
class BrokenBond:
    """Two ops that a placement parts although they must share a HETERO subgraph.

    Attributes:
        first, second: Friendly names of the ops.
        reason: One sentence that names both and says what goes wrong.
    """

    first: str
    second: str
    reason: str


def broken_bonds(graph: ComputationGraph, device: IntArray) -> list[BrokenBond]:
    """What keeps HETERO from running a placement; empty when it runs.

    A placement with a broken bond compiles or not, and fails at the latest at its first inference. Ops on one
    device may be parted too: HETERO cuts a device's subgraph where it would wait for itself.

    Args:
        graph: The ops of the very model that is to be compiled, N of them.
        device: Any number per op that tells devices apart, ``int32[N]``.

    Raises:
        PlacementError: ``device`` has another length than the graph.
    """
    device = np.ascontiguousarray(device, dtype=np.int32)
    bonds = bonds_of(graph)
    if not bonds or (device == device[0]).all():
        return []
    subgraph = graph_subgraphs(graph, device)
    return [
        BrokenBond(graph.names[bond.first], graph.names[bond.second], _reason(graph, bond, device))
        for bond in bonds
        if subgraph[bond.first] != subgraph[bond.second]
    ]


def _reason(graph: ComputationGraph, bond: Bond, device: IntArray) -> str:
    first, second = graph.names[bond.first], graph.names[bond.second]
    apart = (
        "on different devices"
        if device[bond.first] != device[bond.second]
        else "on one device, but in two subgraphs, because a path between them leads over another device"
    )
    return (
        f"{graph.op_types[bond.first]} {first!r} and {graph.op_types[bond.second]} {second!r} are {apart}: "
        f"{bond.kind.value}"
    )
