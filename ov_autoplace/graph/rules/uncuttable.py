"""Tensors that may not cross from one subgraph to another keep their producer and consumers together."""

from __future__ import annotations

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.graph.rules.view import GraphView, pairs_of

__all__ = ["uncuttable_tensors"]


def uncuttable_tensors(view: GraphView) -> IntArray:
    """Pairs of the producer and every consumer of each uncuttable tensor.

    These are the links of shape-computing chains that carry a value known in advance (see
    :mod:`ov_autoplace.graph.shape_values`). Sharing a device would not be enough: two subgraphs of one
    device are as far apart as two devices.
    """
    edges = view.graph.tensor_uncuttable[view.graph.edge_tensor]
    return pairs_of(view.edge_source[edges], view.edge_target[edges])
