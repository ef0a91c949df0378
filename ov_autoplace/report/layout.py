"""Where the nodes of a directed graph are drawn: in layers from left to right, with few crossings."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.sparse import csr_array

from ov_autoplace._base.arrays import FloatArray, IntArray

__all__ = ["layered_heights", "layers"]

_SWEEPS = 12


def layers(count: int, edges: IntArray) -> IntArray:
    """Layer of each node, ``int32[count]``: one more than that of its latest producer.

    What has no producer comes directly before its first consumer.

    Args:
        count: Number of nodes, in topological order.
        edges: ``int32[E, 2]`` (producer, consumer).
    """
    layer = [0] * count
    has_producer = np.zeros(count, dtype=np.bool_)
    has_producer[edges[:, 1]] = True
    ordered = edges[np.argsort(edges[:, 0], kind="stable")].tolist()
    for producer, consumer in ordered:
        layer[consumer] = max(layer[consumer], layer[producer] + 1)
    result = np.array(layer, dtype=np.int32)
    first_consumer = np.full(count, np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(first_consumer, edges[:, 0], result[edges[:, 1]])
    sources = ~has_producer & (first_consumer < np.iinfo(np.int32).max)
    result[sources] = first_consumer[sources] - 1
    lowest: int = int(result.min(initial=0))
    return (result - lowest).astype(np.int32)


def layered_heights(layer: IntArray, edges: IntArray) -> FloatArray:
    """Height of each node, ``float64[n]``, at least 1 apart within a layer.

    Nodes move towards the mean of their neighbours, layer by layer: they are ordered by it (the barycentre
    heuristic of Sugiyama, Tagawa and Toda, 1981), and then placed as near to it as the distance allows, which
    is an isotonic regression.

    Args:
        layer: Of each node, ``int32[n]``.
        edges: ``int32[E, 2]``.
    """
    count = len(layer)
    ones = np.ones(2 * len(edges))
    both = np.concatenate([edges, edges[:, ::-1]])
    neighbours = csr_array((ones, (both[:, 0], both[:, 1])), shape=(count, count))
    degree = np.bincount(both[:, 0], minlength=count)
    height: FloatArray = _centred(layer)
    for _ in range(_SWEEPS):
        mean = np.where(degree > 0, (neighbours @ height) / np.maximum(degree, 1), height)
        # Half way, or neighbouring layers would only swap their heights.
        height = _spread((mean + height) / 2, layer)
    return height


def _centred(layer: IntArray) -> FloatArray:
    """Heights 1 apart around 0 in each layer, in the order of the nodes."""
    order = np.argsort(layer, kind="stable")
    sizes = np.bincount(layer)
    rank = np.arange(len(layer)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    height = np.empty(len(layer))
    height[order] = rank - (sizes[layer[order]] - 1) / 2
    return height


def _spread(wanted: FloatArray, layer: IntArray) -> FloatArray:
    """Heights near those that are wanted, at least 1 apart within each layer."""
    order = np.lexsort((wanted, layer))
    result: FloatArray = wanted.copy()
    bounds = np.flatnonzero(np.diff(layer[order], prepend=-1, append=-1))
    if not len(order):
        return result
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if last - first == 1:
            continue
        nodes = order[first:last]
        steps = np.arange(last - first)
        result[nodes] = isotonic_regression(wanted[nodes] - steps).x + steps
    return result
