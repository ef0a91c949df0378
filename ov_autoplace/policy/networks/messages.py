"""Message passing over directed graphs: one function with two implementations.

``bag`` is torch's ``embedding_bag`` over the compressed rows of the graph; it traces, and OpenVINO runs it
as ``EmbeddingBagOffsets``. ``dgl`` is DGL's kernels. A test keeps them equal, so a network may be trained on
either.
"""

from __future__ import annotations

import os
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

__all__ = ["IMPLEMENTATIONS", "Reduce", "Topology", "aggregate_edges", "propagate"]

IMPLEMENTATIONS = ("bag", "dgl")
"""Who can pass messages."""

Reduce: TypeAlias = Literal["sum", "mean", "max"]


class Topology:
    """Who sends to whom: E edges between N nodes, sorted by the node that receives.

    What is derived from the edges is made on first use and kept. Whoever traces a network passes ``offsets``
    (and ``reversed_order`` with ``reversed_offsets``) as tensors instead, so that no step depends on data.

    Args:
        source: Sending node of each edge, ``int64[E]``.
        target: Receiving node of each edge, ``int64[E]``, ascending.
        num_nodes: N.
        offsets: Edges of node ``n`` are ``offsets[n]`` to ``offsets[n + 1]``, ``int64[N + 1]``.
        reversed_order: Edge that becomes each edge of the reversed graph, ``int64[E]``.
        reversed_offsets: ``offsets`` of the reversed graph, ``int64[N + 1]``.

    Raises:
        ValueError: ``target`` is not ascending.
    """

    def __init__(
        self,
        source: Tensor,
        target: Tensor,
        num_nodes: int,
        *,
        offsets: Tensor | None = None,
        reversed_order: Tensor | None = None,
        reversed_offsets: Tensor | None = None,
    ) -> None:
        if not _tracing() and bool((target[1:] < target[:-1]).any()):
            raise ValueError("The edges of a topology must be sorted by their target.")
        self.source = source
        self.target = target
        self.num_nodes = num_nodes
        self._offsets = offsets
        self._reversed_order = reversed_order
        self._reversed_offsets = reversed_offsets
        self._reversed: Topology | None = None
        self._dgl_graph: Any = None

    @property
    def offsets(self) -> Tensor:
        """Where the edges of each receiving node start, ``int64[N + 1]``."""
        if self._offsets is None:
            nodes = torch.arange(self.num_nodes + 1, device=self.target.device)
            self._offsets = torch.searchsorted(self.target, nodes)
        return self._offsets

    @property
    def degree(self) -> Tensor:
        """Number of edges that each node receives, ``int64[N]``."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def reversed_order(self) -> Tensor:
        """Edge that becomes each edge of ``reversed``, ``int64[E]``: reorder edge values with it."""
        if self._reversed_order is None:
            opposite = self._reversed
            # The way back undoes the way there; sorting anew could swap edges between the same two nodes.
            known = None if opposite is None else opposite._reversed_order
            self._reversed_order = torch.argsort(self.source if known is None else known, stable=True)
        return self._reversed_order

    @property
    def reversed(self) -> Topology:
        """The same edges in the opposite direction; reversed twice is this very object."""
        if self._reversed is None:
            order, offsets = self.reversed_order, self._reversed_offsets
            opposite = Topology(self.target[order], self.source[order], self.num_nodes, offsets=offsets)
            opposite._reversed = self
            self._reversed = opposite
        return self._reversed

    @property
    def dgl_graph(self) -> Any:
        """The ``dgl.DGLGraph`` with the same edges in the same order."""
        if self._dgl_graph is None:
            self._dgl_graph = _dgl().graph((self.source, self.target), num_nodes=self.num_nodes)
        return self._dgl_graph


def aggregate_edges(
    topology: Topology,
    values: Tensor,
    reduce: Reduce = "sum",
    implementation: str = "bag",
) -> Tensor:
    """Reduce what arrives at each node; a node without incoming edges gets 0.

    Args:
        topology: The graph.
        values: What each edge carries, ``[E, ...]``.
        reduce: How the values that arrive at a node become one.
        implementation: Who computes it, of :data:`IMPLEMENTATIONS`.

    Returns:
        ``[N, ...]``, differentiable in ``values``.
    """
    if _is_dgl(implementation):
        return _by_dgl("copy_e", topology, reduce, values)
    rows = _rows(values)
    if _tracing():
        # Without edges there is no row that the bag behind the last node could hold.
        rows = torch.cat([rows, rows.new_zeros(1, rows.shape[1])])
        edges = torch.arange(rows.shape[0], device=rows.device)
        result = _traced_bags(topology, edges, rows, reduce)
    else:
        edges = torch.arange(len(rows), device=rows.device)
        result = embedding_bag(edges, rows, topology.offsets[:-1], mode=reduce)
    return result.reshape(result.shape[0], *values.shape[1:])


def propagate(
    topology: Topology,
    x: Tensor,
    weight: Tensor | None = None,
    reduce: Reduce = "sum",
    implementation: str = "bag",
) -> Tensor:
    """Reduce ``weight[e] * x[source[e]]`` over the edges ``e`` that arrive at each node; 0 where none does.

    Args:
        topology: The graph.
        x: What each node sends, ``[N, ...]``.
        weight: Factor of each edge, ``[E]``; 1 when absent.
        reduce: How the values that arrive at a node become one. A mean divides by the number of edges.
        implementation: Who computes it, of :data:`IMPLEMENTATIONS`.

    Returns:
        ``[N, ...]``, differentiable in ``x`` and ``weight``.
    """
    if _is_dgl(implementation):
        if weight is None:
            return _by_dgl("copy_u", topology, reduce, x)
        return _by_dgl("u_mul_e", topology, reduce, x, weight.reshape(-1, *[1] * (x.dim() - 1)))
    rows, source = _rows(x), topology.source
    if _tracing():
        source = torch.cat([source, source.new_zeros(1)])
        if weight is not None:
            # OpenVINO 2026.4.1 does not compile weighted bags of dynamic shapes, so the rows are weighted.
            rows = rows.index_select(0, source) * torch.cat([weight, weight.new_zeros(1)])[:, None]
            source = torch.arange(rows.shape[0], device=rows.device)
        result = _traced_bags(topology, source, rows, reduce)
    elif weight is None:
        result = embedding_bag(source, rows, topology.offsets[:-1], mode=reduce)
    elif reduce == "max":
        edges = torch.arange(len(source), device=rows.device)
        weighted = rows.index_select(0, source) * weight[:, None]
        result = embedding_bag(edges, weighted, topology.offsets[:-1], mode="max")
    else:
        result = embedding_bag(source, rows, topology.offsets[:-1], mode="sum", per_sample_weights=weight)
        if reduce == "mean":
            result = result / topology.degree.clamp(min=1)[:, None]
    return result.reshape(result.shape[0], *x.shape[1:])


def _traced_bags(topology: Topology, indices: Tensor, rows: Tensor, reduce: Reduce) -> Tensor:
    """The bags of all nodes, made so that OpenVINO computes them for any number of nodes and edges.

    OpenVINO refuses offsets that point behind the last index, as those of trailing nodes without edges do.
    So one index more than there are edges goes into one bag more than there are nodes, which is dropped.
    """
    if reduce == "max":
        raise ValueError("A maximum over edges cannot be exported: OpenVINO's bags know only sums and means.")
    total = embedding_bag(indices, rows, topology.offsets, mode="sum")[:-1]
    return total if reduce == "sum" else total / topology.degree.clamp(min=1)[:, None]


def _is_dgl(implementation: str) -> bool:
    if implementation not in IMPLEMENTATIONS:
        raise ValueError(f"There is no message passing called {implementation!r}; use 'bag' or 'dgl'.")
    return implementation == "dgl"


def _tracing() -> bool:
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


def _rows(values: Tensor) -> Tensor:
    """``values`` as a matrix, which is all that bags can hold."""
    return values[:, None] if values.dim() == 1 else values.flatten(1)


def _dgl() -> Any:
    """DGL on torch, also where nobody has chosen its back end yet."""
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl

    return dgl


def _by_dgl(
    message: Literal["copy_e", "copy_u", "u_mul_e"], topology: Topology, reduce: Reduce, *operands: Tensor
) -> Tensor:
    kernel = getattr(_dgl().ops, f"{message}_{reduce}")
    result: Tensor = kernel(topology.dgl_graph, *operands)
    if reduce == "max":  # of nothing, which DGL calls minus infinity
        empty = topology.degree == 0
        result = result.masked_fill(empty.reshape(-1, *[1] * (result.dim() - 1)), 0.0)
    return result
