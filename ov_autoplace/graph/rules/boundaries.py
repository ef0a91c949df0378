"""Inputs and outputs of the model stay with the ops that use and make them."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.graph.rules.view import GraphView, pairs_of

__all__ = ["parameters_with_consumer", "results_with_producer"]


def parameters_with_consumer(view: GraphView) -> IntArray:
    """Pairs of every Parameter and its main consumer: the first that reads its values.

    A Parameter on another device than all its consumers costs a subgraph that only copies. A ShapeOf
    is the main consumer only when there is no other.
    """
    reads_values = ~view.is_type({"ShapeOf"})[view.edge_target]
    main = view.first_consumer_along(reads_values)
    main = np.where(main < len(view.graph), main, view.first_consumer)
    parameters = np.flatnonzero(view.graph.is_parameter & (main < len(view.graph))).astype(np.int32)
    return pairs_of(parameters, main[parameters])


def results_with_producer(view: GraphView) -> IntArray:
    """Pairs of every Result and its producer; HETERO overrides any other wish."""
    to_result = view.graph.is_result[view.edge_target]
    return pairs_of(view.edge_source[to_result], view.edge_target[to_result])
