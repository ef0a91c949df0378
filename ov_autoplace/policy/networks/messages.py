"""Message passing over directed graphs: functions with two implementations each, chosen by the graph.

``dgl`` is a DGL graph and DGL's kernels, g-SpMM (M. Wang et al., "Deep Graph Library", 2019); it
is the default where DGL is installed. ``bag`` is torch's ``embedding_bag`` over the compressed rows of the
graph. Tests keep the two equal, so a network that was trained on either goes on with the other.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

__all__ = [
    "IMPLEMENTATIONS",
    "Reduce",
    "Topology",
    "default_implementation",
    "message_library",
    "propagate",
]

IMPLEMENTATIONS = ("bag", "dgl")
"""Who can pass messages."""

Reduce: TypeAlias = Literal["sum", "mean", "max"]

_log = logging.getLogger("ov_autoplace")


def default_implementation() -> str:
    """``dgl`` where DGL is installed and works with this torch, ``bag`` elsewhere."""
    return "bag" if _dgl() is None else "dgl"


def message_library() -> str:
    """What passes messages by default, for a checkpoint's card: ``bag``, or ``dgl`` with its version."""
    library = _dgl()
    return "bag" if library is None else f"dgl {library.__version__}"


class Topology:
    """Who sends to whom: E edges between N nodes, sorted by the node that receives.

    What is derived from the edges is made on first use and kept.

    Args:
        source: Sending node of each edge, ``int64[E]``.
        target: Receiving node of each edge, ``int64[E]``, ascending.
        num_nodes: N.
        implementation: Who passes messages on it, of :data:`IMPLEMENTATIONS`;
            :func:`default_implementation` when absent.

    Raises:
        ValueError: ``target`` is not ascending, or there is no such implementation.
    """

    def __init__(
        self,
        source: Tensor,
        target: Tensor,
        num_nodes: int,
        *,
        implementation: str | None = None,
    ) -> None:
        self.implementation = default_implementation() if implementation is None else implementation
        if self.implementation not in IMPLEMENTATIONS:
            raise ValueError(f"There is no message passing called {implementation!r}; use 'bag' or 'dgl'.")
        if bool((target[1:] < target[:-1]).any()):
            raise ValueError("The edges of a topology must be sorted by their target.")
        self.source = source
        self.target = target
        self.num_nodes = num_nodes
        self._offsets: Tensor | None = None
        self._reversed_order: Tensor | None = None
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
            order = self.reversed_order
            opposite = Topology(
                self.target[order], self.source[order], self.num_nodes, implementation=self.implementation
            )
            opposite._reversed = self
            self._reversed = opposite
        return self._reversed

    @property
    def dgl_graph(self) -> Any:
        """The ``dgl.DGLGraph`` with the same edges in the same order.

        Raises:
            ImportError: DGL is not installed, or does not work with this torch.
        """
        if self._dgl_graph is None:
            library = _dgl()
            if library is None:
                raise ImportError("message passing by DGL needs `pip install 'ov-autoplace[dgl]'`")
            # Sorted by target, the edges are compressed columns already, so that DGL has nothing to sort. Its
            # fast kernels want the edges' numbers even where they are in order.
            numbers = torch.arange(len(self.source), device=self.source.device)
            columns = ("csc", (self.offsets, self.source, numbers))
            self._dgl_graph = library.graph(columns, num_nodes=self.num_nodes)
        return self._dgl_graph


def propagate(
    topology: Topology,
    x: Tensor,
    weight: Tensor | None = None,
    reduce: Reduce = "sum",
) -> Tensor:
    """Reduce ``weight[e] * x[source[e]]`` over the edges ``e`` that arrive at each node; 0 where none does.

    Args:
        topology: The graph.
        x: What each node sends, ``[N, ...]``.
        weight: Factor of each edge, ``[E]``; 1 when absent.
        reduce: How the values that arrive at a node become one. A mean divides by the number of edges.

    Returns:
        ``[N, ...]``, differentiable in ``x`` and ``weight``.
    """
    if topology.implementation == "dgl":
        if weight is None:
            return _reduced_by_dgl("copy_u", topology, reduce, x)
        return _reduced_by_dgl("u_mul_e", topology, reduce, x, weight.reshape(-1, *[1] * (x.dim() - 1)))
    rows, source = _rows(x), topology.source
    if weight is None:
        result = embedding_bag(source, rows, topology.offsets[:-1], mode=reduce)
    elif reduce == "max":
        edges = torch.arange(len(source), device=rows.device)
        weighted = rows.index_select(0, source) * weight[:, None]
        result = embedding_bag(edges, weighted, topology.offsets[:-1], mode="max")
    else:
        result = embedding_bag(source, rows, topology.offsets[:-1], mode="sum", per_sample_weights=weight)
        if reduce == "mean":
            result = result / topology.degree.clamp(min=1)[:, None]
    return _unflattened(result, x)


def _rows(values: Tensor) -> Tensor:
    """``values`` as a matrix, which is all that bags can hold."""
    if values.dim() == 2:
        return values
    return values[:, None] if values.dim() == 1 else values.flatten(1)


def _unflattened(rows: Tensor, like: Tensor) -> Tensor:
    """Undoes :func:`_rows`, for another number of rows."""
    return rows if like.dim() == 2 else rows.reshape(rows.shape[0], *like.shape[1:])


@functools.cache
def _dgl() -> Any:
    """DGL on torch, also where nobody has chosen its back end yet; ``None`` where it does not import."""
    os.environ.setdefault("DGLBACKEND", "pytorch")  # otherwise it writes a file into the home folder
    try:
        import dgl
    except ModuleNotFoundError as cause:
        if cause.name == "dgl":
            return None
        _log.warning("messages are passed by torch alone: DGL is installed and needs %s", cause.name)
        return None
    except (ImportError, OSError) as cause:
        _log.warning("messages are passed by torch alone: DGL is installed and does not load: %s", cause)
        return None
    return dgl


def _kernel(name: str, topology: Topology) -> tuple[Any, Any]:
    """One of DGL's kernels, and the graph that it runs on."""
    graph, library = topology.dgl_graph, _dgl()
    # DGL's threads are its own: without this it takes all cores where torch was told to take one.
    if library.utils.get_num_threads() != torch.get_num_threads():
        library.utils.set_num_threads(torch.get_num_threads())
    return getattr(library.ops, name), graph


def _reduced_by_dgl(
    message: Literal["copy_u", "u_mul_e"], topology: Topology, reduce: Reduce, *operands: Tensor
) -> Tensor:
    """g-SpMM: a value for each node."""
    kernel, graph = _kernel(f"{message}_{'max' if reduce == 'max' else 'sum'}", topology)
    result: Tensor = kernel(graph, *operands)
    if reduce == "sum":
        return result
    degree = topology.degree.reshape(-1, *[1] * (result.dim() - 1))
    if reduce == "mean":  # DGL's own counts the edges anew each time
        return result / degree.clamp(min=1)
    return result.masked_fill(degree == 0, 0.0)  # the maximum of nothing, which DGL calls minus infinity
