"""Why HETERO cannot run a placement: the bonds between ops that it would part, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import IntArray
from ov_autoplace._base.releases import installed
from ov_autoplace.graph.bonds import Bond, bonds_of
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.shape_values import LinkKind
from ov_autoplace.plan.partition import graph_partition

__all__ = ["BrokenBond", "broken_bonds"]


@dataclass(frozen=True, slots=True)
class BrokenBond:
    """Two ops that a placement parts although HETERO needs them in one subgraph, or in subgraphs it can sort.

    Attributes:
        first, second: Friendly names of the ops.
        reason: One sentence that names both and says what goes wrong.
    """

    first: str
    second: str
    reason: str


def broken_bonds(graph: ComputationGraph, device: IntArray, *, as_it_is: bool = False) -> list[BrokenBond]:
    """What keeps HETERO from running a placement; empty when it runs.

    A placement with a broken bond compiles or not, and fails at the latest at its first inference. Ops on one
    device may be parted too: HETERO cuts a device's subgraph where it would wait for itself.

    Args:
        graph: The ops of the very model that is to be compiled, N of them.
        device: Any number per op that tells devices apart, ``int32[N]``.
        as_it_is: Plain HETERO compiles the model as it is, without what ``annotate`` and AUTOPLACE insert
            where a tensor with bounded dimensions crosses.

    Raises:
        PlacementError: ``device`` has another length than the graph.
    """
    device = np.ascontiguousarray(device, dtype=np.int32)
    if (device == device[0]).all():
        return []
    submodels, subgraph = graph_partition(graph, device)
    waiting = _waiting(graph, subgraph) if submodels is None else []
    bonds = bonds_of(graph, as_it_is=as_it_is)
    broken = [
        BrokenBond(graph.names[bond.first], graph.names[bond.second], _reason(graph, bond, device))
        for bond in bonds
        if subgraph[bond.first] != subgraph[bond.second]
    ]
    return waiting + broken + _lost_shapes(graph, subgraph)


def _waiting(graph: ComputationGraph, subgraph: IntArray) -> list[BrokenBond]:
    """A tensor of each cycle of subgraphs that wait for each other; nobody waits for a Constant."""
    source = np.repeat(graph.tensor_producer, np.diff(graph.tensor_offsets))
    edges = np.stack((source, graph.tensor_consumers), axis=1)[~graph.is_constant[source]]
    cycle = _core.merge_cycles(subgraph, edges)
    first, second = edges.T
    of_cycles = edges[(cycle[first] == cycle[second]) & (subgraph[first] != subgraph[second])].tolist()
    return [
        BrokenBond(
            graph.names[first],
            graph.names[second],
            f"the submodels of {_named(graph, first)} and of {_named(graph, second)}, which reads it, wait "
            f"for each other, and OpenVINO {installed()} refuses that",
        )
        for first, second in {int(cycle[edge[0]]): edge for edge in of_cycles}.values()
    ]


def _reason(graph: ComputationGraph, bond: Bond, device: IntArray) -> str:
    apart = (
        "on different devices"
        if device[bond.first] != device[bond.second]
        else "on one device, but in two subgraphs, because a path between them leads over another device"
    )
    return f"{_named(graph, bond.first)} and {_named(graph, bond.second)} are {apart}: {bond.kind.value}"


def _lost_shapes(graph: ComputationGraph, subgraph: IntArray) -> list[BrokenBond]:
    """Tensors that leave a subgraph which does not know their shape, found as in the core."""
    broken = []
    value_lost: dict[int, tuple[int, int]] = {}  # by op: the edge that is to blame
    shape_lost: dict[int, tuple[int, int]] = {}
    for source, target, kind in graph.shape_links.tolist():
        cut = subgraph[source] != subgraph[target]
        if kind & LinkKind.SHAPE and source in shape_lost:
            first, second = shape_lost[source]
            if cut:
                where = "is in another subgraph" if subgraph[first] != subgraph[second] else "is no integer"
                reason = (
                    f"{_named(graph, first)}, from which {_named(graph, second)} takes a shape, {where}, so "
                    f"the shape of what {_named(graph, source)} transfers to {_named(graph, target)} in "
                    "another is not known there"
                )
                broken.append(BrokenBond(graph.names[first], graph.names[second], reason))
            else:
                value_lost.setdefault(target, (first, second))
                if not kind & LinkKind.MEASURES:
                    shape_lost.setdefault(target, (first, second))
        lost_here = cut or kind & LinkKind.IN_FLOATS
        if kind & LinkKind.VALUE and (lost_here or source in value_lost):
            blamed = (source, target) if lost_here else value_lost[source]
            value_lost.setdefault(target, blamed)
            if kind & LinkKind.DECIDES and (cut or not kind & LinkKind.SEES_PARTS):
                shape_lost.setdefault(target, blamed)
    return broken


def _named(graph: ComputationGraph, op: int) -> str:
    return f"{graph.op_types[op]} {graph.names[op]!r}"
