"""What the placement graph draws: groups, or, of very large graphs, stretches of their subgraphs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, rows_of
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.report.layout import layered_heights, layers

__all__ = ["DrawnGraph", "drawn_graph"]

_MOST_GROUPS = 6000
"""Up to so many groups are drawn one by one."""

_MOST_STRETCHES = 2500
"""Beyond, at most so many stretches are."""

_LONG = 80
"""Up to so many layers share one row."""

_ASPECT = 2.2  # the drawing's width over its height
_BETWEEN_ROWS = 2.0


@dataclass(frozen=True, eq=False, slots=True)
class DrawnGraph:
    """Nodes and edges of the drawing.

    Attributes:
        node_of: Node of each group, ``int32[G]``.
        x, y: Place of each node, ``float64[N]``.
        device: Device of each node, ``int32[N]``.
        subgraph: Subgraph of each node, ``int32[N]``; -1 = several.
        seconds: Time of each node where it runs, ``float64[N]``.
        row: A long graph is broken like lines of text: line of each node, from the top, ``int32[N]``.
        middle: Height of each line's middle, ``float64[R]``.
        edges: ``int32[E, 2]``, each once.
        is_cut: Whether an edge is a transfer, ``bool[E]``.
        is_collapsed: Whether nodes represent several groups.
    """

    node_of: IntArray
    x: FloatArray
    y: FloatArray
    device: IntArray
    subgraph: IntArray
    seconds: FloatArray
    row: IntArray
    middle: FloatArray
    edges: IntArray
    is_cut: BoolArray
    is_collapsed: bool


def drawn_graph(explanation: Explanation) -> DrawnGraph:
    """The drawing of a placement."""
    table, subgraph_of = explanation.table, explanation.schedule.subgraph_of
    count = len(table)
    tensor = rows_of(table.tensor_offsets)
    links = np.stack([table.tensor_producer[tensor], table.tensor_consumers], axis=1)
    links = links[~table.tensor_is_constant[tensor]].astype(np.int32)
    layer = layers(count, links)
    node_of = np.arange(count, dtype=np.int32)
    is_collapsed = count > _MOST_GROUPS
    if is_collapsed:
        # What is in no subgraph stays with what is on the same device.
        owner = np.where(subgraph_of < 0, -1 - explanation.assignment, subgraph_of)
        node_of = _stretches(owner, explanation.assignment, layer)
    nodes = int(node_of.max(initial=-1)) + 1
    first = np.full(nodes, count, dtype=np.int32)
    np.minimum.at(first, node_of, np.arange(count, dtype=np.int32))
    node_layer = np.full(nodes, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(node_layer, node_of, layer)
    seconds = table.op_seconds[np.arange(count), explanation.assignment]
    edges, is_cut = _edges(node_of[links], explanation.crosses(links))
    subgraph = subgraph_of[first]
    mixed = np.zeros(nodes, dtype=np.bool_)
    mixed[node_of[subgraph[node_of] != subgraph_of]] = True
    if is_collapsed:
        # Layers without a node would be gaps.
        node_layer = np.unique(node_layer, return_inverse=True)[1].astype(np.int32)
    height = layered_heights(node_layer, edges)
    x, y, row = _broken_into_rows(node_layer, height)
    return DrawnGraph(
        node_of=node_of,
        x=x,
        y=y,
        device=explanation.assignment[first],
        subgraph=np.where(mixed, -1, subgraph).astype(np.int32),
        seconds=np.bincount(node_of, weights=seconds, minlength=nodes).astype(np.float64),
        row=row,
        middle=np.array(
            [(y[row == r].max() + y[row == r].min()) / 2 for r in range(int(row.max(initial=-1)) + 1)]
        ),
        edges=edges,
        is_cut=is_cut,
        is_collapsed=is_collapsed,
    )


def _stretches(subgraph_of: IntArray, device: IntArray, layer: IntArray) -> IntArray:
    """Node of each group: the part of a subgraph in so many layers that there are few enough parts.

    Where HETERO makes more subgraphs than can be drawn, neighbours on the same device are drawn as one.
    """
    for owner in (subgraph_of, device):
        width = 1
        while True:
            key = owner.astype(np.int64) * (int(layer.max()) + 1) + layer // width
            _, first, node = np.unique(key, return_index=True, return_inverse=True)
            if len(first) <= _MOST_STRETCHES:
                rank = np.empty(len(first), dtype=np.int32)
                rank[np.argsort(first)] = np.arange(len(first))  # in order of the first group
                return rank[node]
            if width > layer.max():
                break
            width *= 2
    return np.zeros(len(layer), dtype=np.int32)  # more devices than can be drawn


def _broken_into_rows(layer: IntArray, height: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Places of nodes, and their rows: layers, and nodes of a layer, become about equally far apart."""
    length = int(layer.max(initial=0)) + 1
    tall = float(np.ptp(height)) if len(height) else 0.0
    rows = 1
    if length > _LONG:
        rows = max(1, int(np.sqrt(length / (_ASPECT * (tall + _BETWEEN_ROWS)))))
    per_row = -(-length // rows)
    row = layer // per_row
    y = height - height.max(initial=0.0) - row * (tall + _BETWEEN_ROWS)
    return (layer % per_row).astype(np.float64), y, row


def _edges(ends: IntArray, crosses: BoolArray) -> tuple[IntArray, BoolArray]:
    """Each pair of different nodes once, and whether any tensor between them is transferred."""
    differ = ends[:, 0] != ends[:, 1]
    ends, crosses = ends[differ], crosses[differ]
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    is_cut = np.zeros(len(edges), dtype=np.bool_)
    is_cut[which[crosses]] = True
    return edges.astype(np.int32), is_cut
