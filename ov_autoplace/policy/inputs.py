"""The named arrays that an exported network reads, made from a policy graph without torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import offsets_of
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.probes import probe_features

__all__ = ["INPUT_NAMES", "NODE_FIELDS", "network_inputs", "stage_inputs", "stage_outputs"]

NODE_FIELDS = (
    "cost",
    "features",
    "inverse_root_degree",
    "arc_source",
    "arc_price",
    "arc_share",
    "arc_features",
    "member_source",
)
"""Fields of :class:`~ov_autoplace.policy.nodes.Nodes` that are inputs."""

_MAKERS: dict[str, Callable[[PolicyGraph], NDArray[Any]]] = {
    "pair_features": lambda graph: graph.pair_features,
    "node_features": lambda graph: graph.node_features,
    "probes": probe_features,
    "node_cost": lambda graph: graph.node_cost,
    "allowed": lambda graph: graph.allowed,
    "op_type": lambda graph: graph.op_type,
    "edge_source": lambda graph: graph.edge_source,
    "edge_target": lambda graph: graph.edge_target,
    "edge_offsets": lambda graph: graph.edge_offsets,
    "edge_cost": lambda graph: graph.edge_cost,
    "edge_share": lambda graph: graph.edge_share,
    # The same edges sorted by who sends, for messages in the opposite direction.
    "reversed_order": lambda graph: np.argsort(graph.edge_source, kind="stable"),
    "reversed_offsets": lambda graph: np.searchsorted(np.sort(graph.edge_source), np.arange(len(graph) + 1)),
    # One more than there are, see _array.
    "arc_offsets": lambda graph: _offsets(
        np.append(graph.nodes.arc_target, len(graph.nodes.cost) - 1), len(graph.nodes.cost)
    ),
    "member_offsets": lambda graph: _offsets(graph.nodes.member_target, len(graph.nodes.cost)),
    # A batch of one graph.
    "graph_of": lambda graph: np.zeros(len(graph), dtype=np.int64),
    "node_offsets": lambda graph: np.array([0, len(graph)]),
    "graph_features": lambda graph: graph.graph_features[None],
    "unit_features": lambda graph: graph.unit_features,
    "memory_share": lambda graph: graph.memory_share,
    "same_device": lambda graph: graph.same_device[None],
    "window_of": lambda graph: graph.timing.window_of,
    "window_children": lambda graph: np.argsort(graph.timing.window_of, kind="stable"),
    "window_offsets": lambda graph: offsets_of(np.bincount(graph.timing.window_of)).astype(np.int64),
}


def _offsets(target: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """Where what ends in each node starts."""
    return np.searchsorted(target, np.arange(nodes + 1)).astype(np.int64)


INPUT_NAMES = (*_MAKERS, *(f"nodes.{field}" for field in NODE_FIELDS))
"""All inputs that a network may have; an exported one has those that it reads."""


def stage_inputs(stage: int) -> tuple[str, str, str]:
    """Inputs of a stage after the first, beside the graph's: state and scores before it, and the look."""
    return f"stage{stage}.state", f"stage{stage}.scores", f"stage{stage}.look"


def stage_outputs(stage: int, stages: int) -> tuple[str, ...]:
    """Outputs of a stage: what the next one's first two inputs are; of the last one the scores alone."""
    last = stage == stages - 1
    return ("scores",) if last else (f"after{stage}.state", f"after{stage}.scores")


def network_inputs(graph: PolicyGraph, names: Sequence[str] = INPUT_NAMES) -> dict[str, NDArray[Any]]:
    """The arrays by name.

    Args:
        graph: N units on D devices.
        names: Those that are wanted; no others are computed.
    """
    return {name: np.ascontiguousarray(_array(graph, name)) for name in names}


def _array(graph: PolicyGraph, name: str) -> NDArray[Any]:
    """One of the arrays.

    OpenVINO refuses bags that start behind the last index, as those of trailing nodes without arcs do. So an
    arc that weighs nothing is added to the last node, the whole graph, which has none.
    """
    _, _, field = name.partition(".")
    if not field:
        return _MAKERS[name](graph)
    array: NDArray[Any] = getattr(graph.nodes, field)
    if not field.startswith("arc_"):
        return array
    return np.concatenate((array, np.zeros((1, *array.shape[1:]), dtype=array.dtype)))
