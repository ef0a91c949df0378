"""Features of a graph's structure alone: degrees, position, fractal dimension, shapes, sizes.

These are the node features of HSDAG (arXiv 2405.14185, section 3 and appendix), except that every width is
fixed, so that a network trained on one model reads any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["NODE_FEATURES", "fractal_dimension", "structural_features"]

_AXES = 6
_CODES = 4  # pairs of sine and cosine
_RADIUS = 4
_WIDEST = 64  # nodes with more neighbours are not walked through

NODE_FEATURES = (
    "log_in_degree",
    "log_out_degree",
    "relative_position",
    "fractal_dimension",
    "log_output_bytes",
    *(f"position_{wave}_{k}" for k in range(_CODES) for wave in ("sin", "cos")),
    *(f"log_output_dim_{axis}" for axis in range(_AXES)),
)
"""Columns of :attr:`~ov_autoplace.policy.features.PolicyGraph.node_features`."""


def structural_features(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    num_nodes: int,
    shapes: tuple[tuple[int, ...], ...],
    output_bytes: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Features of N nodes in topological order, ``float32[N, len(NODE_FEATURES)]``.

    Args:
        source: Producer of each edge, ``int64[E]``.
        target: Consumer of each edge, ``int64[E]``.
        num_nodes: N.
        shapes: Output shape of each node, or nothing.
        output_bytes: Bytes each node sends, ``float64[N]``.
    """
    position = np.arange(num_nodes, dtype=np.float64)
    columns = [
        np.log1p(np.bincount(target, minlength=num_nodes)),
        np.log1p(np.bincount(source, minlength=num_nodes)),
        position / max(num_nodes - 1, 1),
        fractal_dimension(source, target, num_nodes),
        np.log1p(output_bytes) / 10,
    ]
    for k in range(_CODES):
        # Vaswani et al., "Attention Is All You Need", 2017, section 3.5, with 2 * _CODES columns.
        angle = position / 10_000 ** (k / _CODES)
        columns += [np.sin(angle), np.cos(angle)]
    dims = np.zeros((num_nodes, _AXES))
    for i, shape in enumerate(shapes):
        kept = shape[:_AXES]
        dims[i, : len(kept)] = np.log1p(np.maximum(kept, 0)) / 5
    return np.column_stack([*columns, dims]).astype(np.float32)


def fractal_dimension(
    source: NDArray[np.int64], target: NDArray[np.int64], num_nodes: int
) -> NDArray[np.float64]:
    """Node fractal dimension: slope of log N(v, r) over log r, by least squares, ``float64[N]``.

    N(v, r) counts the nodes within r undirected hops of v, v included, for r up to 4. Nodes with very many
    neighbours are counted but not walked through, so that the time stays linear in the graph.
    """
    if num_nodes == 0:
        return np.zeros(0)
    from scipy.sparse import csr_array, diags_array, eye_array

    ones = np.ones(2 * len(source), dtype=np.float32)
    ends = (np.concatenate((source, target)), np.concatenate((target, source)))
    adjacent = csr_array((ones, ends), shape=(num_nodes, num_nodes))
    narrow = (np.diff(adjacent.indptr) <= _WIDEST).astype(np.float32)
    step = eye_array(num_nodes, dtype=np.float32, format="csr") + diags_array(narrow) @ adjacent
    reached = eye_array(num_nodes, dtype=np.float32, format="csr") + adjacent
    counts = [np.diff(reached.indptr)]
    for _ in range(_RADIUS - 1):
        reached = csr_array(reached @ step)
        reached.data[:] = 1.0
        counts.append(np.diff(reached.indptr))
    log_radius = np.log(np.arange(1, _RADIUS + 1))
    centred = log_radius - log_radius.mean()
    log_count = np.log(np.maximum(np.stack(counts, axis=1), 1))
    return np.asarray(log_count @ centred / (centred @ centred))
