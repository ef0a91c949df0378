"""Coarsening: union-find over must-stay-together rules, then over rules that keep the groups few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray, IntArray, frozen_array
from ov_autoplace._base.collector import collection_paused
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.group_graph import group_graph
from ov_autoplace.graph.rules import MUST_RULES, GraphView
from ov_autoplace.graph.rules.fused import fused_together
from ov_autoplace.graph.rules.light_ops import light_ops_with_neighbour
from ov_autoplace.graph.rules.pins import group_pins, pinned_ops

__all__ = ["coarsen"]


@collection_paused()
def coarsen(
    graph: ComputationGraph,
    *,
    fused: Sequence[Sequence[str]] = (),
    pins: Mapping[str, str] | None = None,
    light_ops: bool = True,
    heavy: BoolArray | None = None,
) -> CoarseGraph:
    """Join ops into co-location groups that form an acyclic graph.

    No tensor between two groups is one that HETERO cannot transfer (see
    :data:`~ov_autoplace.graph.rules.MUST_RULES` for why each rule is needed). HETERO runs most placements of
    the groups, not all: to break a cycle of subgraphs it cuts one device's subgraph, if need be inside a
    group. :func:`~ov_autoplace.plan.legality.broken_bonds` tells what that would part; the simulator
    calls such a placement infinite, and ``annotate`` and ``count_subgraphs`` refuse it with the reason.

    Args:
        graph: The ops of a model.
        fused: Groups of friendly names that a device runs as one kernel (``originalLayersNames`` of a
            compiled model); kept together unless they are pinned apart.
        pins: Device by pattern of friendly names (``fnmatch``). Rules that are not needed for legality
            join only ops with the same pin, so that a pin never spreads to ops that it does not name.
        light_ops: Whether cheap ops follow a neighbour (:mod:`~ov_autoplace.graph.rules.light_ops`);
            without it there is about one group per running op.
        heavy: Ops that are not cheap whatever their type, ``bool[N]``.

    Raises:
        PlacementError: Ops that cannot be separated are pinned to different devices.
    """
    view = GraphView(graph)
    pins = pins or {}
    pin_of = pinned_ops(graph, pins)
    pairs = np.concatenate([rule(view) for rule in MUST_RULES])
    labels = _acyclic_groups(view, pairs)
    pin_of_group = group_pins(graph, labels, pin_of, pins)

    together = fused_together(view, fused, pin_of_group[labels])
    while together:
        merged = np.concatenate([pairs, *together])
        candidate = _acyclic_groups(view, merged)
        clashing = _groups_with_two_pins(candidate, pin_of_group[labels])
        if not clashing:
            pin_of_op = pin_of_group[labels]
            pairs, labels = merged, candidate
            pin_of_group = pin_of_op[np.unique(labels, return_index=True)[1]]
            break
        # Closing a cycle has caught an op that is pinned elsewhere: do without the groups behind it.
        together = [group for group in together if int(candidate[group[0, 0]]) not in clashing]

    if light_ops:
        pairs = np.concatenate([pairs, light_ops_with_neighbour(view, labels, pin_of_group, heavy)])
        labels = _acyclic_groups(view, pairs)
    coarse, constant = group_graph(view, labels)
    return CoarseGraph(
        graph=coarse, ops=graph, group_of=frozen_array(labels, np.int32), tensor_is_constant=constant
    )


def _acyclic_groups(view: GraphView, pairs: IntArray) -> IntArray:
    """Group of each op, ``int32[N]``: the pairs joined, cycles merged, in topological order."""
    labels = _core.connected_labels(len(view.graph), np.ascontiguousarray(pairs, dtype=np.int32))
    return np.asarray(_core.merge_cycles(labels, view.dependencies), dtype=np.int32)


def _groups_with_two_pins(labels: IntArray, pin_of: IntArray) -> set[int]:
    """Groups whose ops differ in their pins (no pin counts as one)."""
    num_groups = int(labels.max(initial=-1)) + 1
    lowest = np.full(num_groups, np.iinfo(np.int32).max, dtype=np.int32)
    highest = np.full(num_groups, -1, dtype=np.int32)
    np.minimum.at(lowest, labels, pin_of)
    np.maximum.at(highest, labels, pin_of)
    return set(np.flatnonzero(lowest != highest).tolist())
