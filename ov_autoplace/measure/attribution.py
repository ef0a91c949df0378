"""From the nodes that a device really ran back to the ops of the model.

A plugin fuses, folds, splits and inserts: what it times are its own nodes. Each node lists the ops that
it computes, but only those that the plugin's own graph fused; earlier, common transformations leave
the name of the last op of a pattern alone. So times belong to groups of ops, and the groups are found
here: the listed ops, and every unlisted op all of whose readers are in one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.plan.lane import Form

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import NodeTime

__all__ = ["Attribution", "attribute"]

# Nodes of a compiled model that do no work of an op.
_AXES = "abcdef"  # as a plugin names the dimensions in the order in which they lie in memory
_NOT_RUN = frozenset({"Parameter", "Result", "Constant", "Input", "Output", "Const"})


@dataclass(frozen=True, eq=False)
class Attribution:
    """Node times of one device, by op.

    Attributes:
        op_seconds: Time of each op, ``float64[N]``. All of a group's is at its op of most flops.
        nodes_run: Number of nodes that were run for each op, ``int32[N]``, at the same place.
        fused: Friendly names of the ops of every group of two and more.
        unassigned_seconds: Time of nodes that could be led back to no op.
        forms: How the first outputs of ops lie in memory, by friendly name, where that is not as the model
            has it.
    """

    op_seconds: FloatArray
    nodes_run: IntArray
    fused: tuple[tuple[str, ...], ...]
    unassigned_seconds: float
    forms: Mapping[str, Form] = field(default_factory=dict)


def _forms(graph: ComputationGraph, nodes: Sequence[NodeTime]) -> Iterator[tuple[str, Form]]:
    """Name and form of ops behind nodes that compute in another type or order of dimensions."""
    for node in nodes:
        if node.type in _NOT_RUN:
            continue
        axes = _AXES[: len(node.layout)]
        form = Form(
            channels_last=len(axes) > 2 and node.layout == axes[0] + axes[2:] + axes[1],
            bf16=node.precision.upper() == "BF16",
        )
        if form != Form():
            yield from ((name, form) for name in _stands_for(node) if name in graph.index)


def attribute(graph: ComputationGraph, nodes: Sequence[NodeTime], seconds: FloatArray) -> Attribution:
    """Give each node's time to ops of ``graph``.

    Nodes that belong to no op (a Reorder of the memory layout, a Convert that a transformation inserted) go
    to the group that they feed, or to the one that feeds them where they end the model.

    Args:
        graph: The model.
        nodes: All nodes of the compiled model, in any order.
        seconds: Time of each node, ``float64[len(nodes)]``.
    """
    group_of = np.full(len(graph), -1, dtype=np.int32)
    anchors: dict[str, int] = {}
    for g, node in enumerate(nodes):
        if node.type in _NOT_RUN:
            continue
        listed = (graph.index[name] for name in _stands_for(node) if name in graph.index)
        ops = [op for op in listed if group_of[op] < 0 and not graph.is_constant[op]]
        group_of[ops] = g
        if ops:
            anchors[node.name] = max(ops, key=lambda op: (graph.flops[op], graph.output_bytes[op]))
    _absorb_unlisted(graph, group_of)

    op_seconds = np.zeros(len(graph))
    nodes_run = np.zeros(len(graph), dtype=np.int32)
    unassigned = 0.0
    readers = {node.name: tuple(node.consumers) for node in nodes}
    writers = _reversed(readers)
    for node, node_seconds in zip(nodes, seconds.tolist(), strict=True):
        # A GPU's inputs and outputs take time: they are copied between the host and the device there.
        if _was_optimised_away(node) or (node.type in _NOT_RUN and node_seconds == 0):
            continue
        anchor = _nearest(node.name, anchors, readers)
        if anchor is None:
            anchor = _nearest(node.name, anchors, writers)
        if anchor is None:
            unassigned += node_seconds
        else:
            op_seconds[anchor] += node_seconds
            nodes_run[anchor] += 1
    return Attribution(
        op_seconds=frozen_array(op_seconds, np.float64),
        nodes_run=frozen_array(nodes_run, np.int32),
        fused=_groups(graph, group_of),
        unassigned_seconds=unassigned,
        forms=dict(_forms(graph, nodes)),
    )


def _was_optimised_away(node: NodeTime) -> bool:
    """The CPU plugin gives such nodes no layout; the GPU plugin says so, and does give them one."""
    return node.status == "OPTIMIZED_OUT" or (not node.layout and node.status != "EXECUTED")


def _stands_for(node: NodeTime) -> Sequence[str]:
    """Names of the ops that a node lists.

    Where the GPU plugin writes an op's result straight into an output, its runtime model shows the op only as
    that output, optimised away; what was run has an entry under the op's own name and nothing else.
    """
    return (node.name,) if node.status == "EXECUTED" and not node.layout else node.original_names


def _absorb_unlisted(graph: ComputationGraph, group_of: IntArray) -> None:
    """Put every op that no node lists into the group of its readers when they agree; in place.

    Backwards, so that whole patterns are absorbed. Parameters and Results are left to the coarsening.
    """
    first_tensor = np.searchsorted(graph.tensor_producer, np.arange(len(graph) + 1))
    for op in range(len(graph) - 1, -1, -1):
        if group_of[op] >= 0 or graph.is_constant[op] or graph.is_parameter[op] or graph.is_result[op]:
            continue
        begin, end = graph.tensor_offsets[first_tensor[op]], graph.tensor_offsets[first_tensor[op + 1]]
        groups = set(group_of[graph.tensor_consumers[begin:end]].tolist())
        if len(groups) == 1:
            group_of[op] = groups.pop()


def _nearest(start: str, anchors: Mapping[str, int], edges: Mapping[str, Sequence[str]]) -> int | None:
    """Anchor of the first node with one, breadth first along ``edges``."""
    pending, seen = [start], {start}
    for name in pending:
        if name in anchors:
            return anchors[name]
        fresh = [other for other in edges.get(name, ()) if other not in seen]
        seen.update(fresh)
        pending.extend(fresh)
    return None


def _reversed(edges: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for name, targets in edges.items():
        for target in targets:
            result.setdefault(target, []).append(name)
    return result


def _groups(graph: ComputationGraph, group_of: IntArray) -> tuple[tuple[str, ...], ...]:
    """Names of the members of every group with at least two, in topological order."""
    members: dict[int, list[str]] = {}
    for name, g in zip(graph.names, group_of.tolist(), strict=True):
        if g >= 0:
            members.setdefault(g, []).append(name)
    return tuple(tuple(names) for names in members.values() if len(names) > 1)
