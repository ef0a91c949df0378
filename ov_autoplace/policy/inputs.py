"""The named arrays that an exported network reads, made from a policy graph without torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.policy.features import PolicyGraph

__all__ = ["INPUT_NAMES", "network_inputs"]

_MAKERS: dict[str, Callable[[PolicyGraph], NDArray[Any]]] = {
    "pair_features": lambda graph: graph.pair_features,
    "node_cost": lambda graph: graph.node_cost,
    "unit_features": lambda graph: graph.unit_features,
    # A batch of one graph.
    "graph_of": lambda graph: np.zeros(len(graph), dtype=np.int64),
    "node_offsets": lambda graph: np.array([0, len(graph)]),
    "graph_features": lambda graph: graph.graph_features[None],
    "inverse_root_degree": lambda graph: graph.arcs.inverse_root_degree,
    "arc_source": lambda graph: _padded(graph, graph.arcs.source),
    "arc_features": lambda graph: _padded(graph, graph.arcs.features),
    "arc_offsets": lambda graph: _offsets(graph),
}

INPUT_NAMES = tuple(_MAKERS)
"""All inputs that a network may have; an exported one has those that it reads."""


def network_inputs(graph: PolicyGraph, names: Sequence[str] = INPUT_NAMES) -> dict[str, NDArray[Any]]:
    """The arrays by name.

    Args:
        graph: N units on D devices.
        names: Those that are wanted; no others are computed.
    """
    return {name: np.ascontiguousarray(_MAKERS[name](graph)) for name in names}


def _offsets(graph: PolicyGraph) -> NDArray[np.int64]:
    """Where the arcs to each unit start, and where the last ones end."""
    target = np.append(graph.arcs.target, len(graph) - 1) if _is_open(graph) else graph.arcs.target
    return np.searchsorted(target, np.arange(len(graph) + 1)).astype(np.int64)


def _padded(graph: PolicyGraph, array: NDArray[Any]) -> NDArray[Any]:
    """What belongs to arcs, with one more to the last unit if that has none."""
    return np.concatenate((array, np.zeros_like(array, shape=(int(_is_open(graph)), *array.shape[1:]))))


def _is_open(graph: PolicyGraph) -> bool:
    """Whether no arc goes to the last unit.

    OpenVINO refuses bags that start behind the last index, as those of trailing units without arcs do. So one
    is added there, which counts for nothing, as such a unit's ``inverse_root_degree`` is 0.
    """
    target = graph.arcs.target
    return not len(target) or bool(target[-1] < len(graph) - 1)
