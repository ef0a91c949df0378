"""What policies see of a cost table: arrays of numbers whose meaning does not depend on the model.

Policies decide for the units of :class:`~ov_autoplace.problem.units.UnitGraph`. All costs are divided by one
number per table, the mean time of a unit on its fastest device, so that a policy sees the same problem
whatever the unit of time; what spans decades is compressed by
:func:`~ov_autoplace.policy.levels.signed_log`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray, offsets_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.policy.levels import Level, beyond_best_other, build_levels, signed_log
from ov_autoplace.policy.structure import NODE_FEATURES, structural_features
from ov_autoplace.policy.vocabulary import op_type_indices
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph

__all__ = ["NODE_FEATURES", "PAIR_FEATURES", "PolicyGraph", "policy_graph"]

PAIR_FEATURES = (
    "seconds",
    "seconds_beyond_best_other",
    "share_of_seconds",
    "forbidden",
    "device_total",
    "launch",
)
"""Columns of :attr:`PolicyGraph.pair_features`."""

_FORBIDDEN_COST = 30.0  # in units of the mean op time, on top of the op's dearest device


@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """N units on D devices with E edges, as policies see them.

    Attributes:
        problem: What it was made from; its units are the N units.
        allowed: Which unit may run where, ``bool[N, D]``.
        op_type: Vocabulary index of each unit's heaviest group, ``int64[N]``.
        output_shapes: Shape of that group's output, length N; empty when not known.
        output_bytes: Bytes that each unit sends to others, ``float64[N]``.
        pair_features: What the table says of each unit on each device, ``float32[N, D, P]``.
        node_cost: Seconds by ``scale_seconds``; forbidden devices are dear instead of infinite,
            ``float32[N, D]``.
        edge_source, edge_target: Producer and consumer of each edge, sorted by target then source; several
            tensors between the same two units are one edge, ``int64[E]``.
        edge_offsets: CSR by target, ``int64[N + 1]``.
        edge_cost: Price of the edge by ``scale_seconds`` with the producer on the row's and the consumer on
            the column's device: transfers and one launch; 0 on the diagonal, ``float32[E, D, D]``.
        edge_share: Part of the price that remains when all consumers of its tensors receive them
            together, ``float32[E]``.
        scale_seconds: What costs were divided by.
        is_estimate: Whether the table holds estimates, which are wrong by factors, not measurements.
        kept: What functions of a graph made once; it goes with the graph to other processes.
    """

    problem: Problem
    allowed: BoolArray
    op_type: NDArray[np.int64]
    output_shapes: tuple[tuple[int, ...], ...]
    output_bytes: NDArray[np.float64]
    pair_features: NDArray[np.float32]
    node_cost: NDArray[np.float32]
    edge_source: NDArray[np.int64]
    edge_target: NDArray[np.int64]
    edge_offsets: NDArray[np.int64]
    edge_cost: NDArray[np.float32]
    edge_share: NDArray[np.float32]
    scale_seconds: float
    is_estimate: bool
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.node_cost)

    @property
    def num_devices(self) -> int:
        """Number of devices, D."""
        return int(self.allowed.shape[1])

    @cached_property
    def node_features(self) -> NDArray[np.float32]:
        """Structure without costs, ``float32[N, F]``; columns are named by :data:`NODE_FEATURES`."""
        return structural_features(
            self.edge_source, self.edge_target, len(self), self.output_shapes, self.output_bytes
        )

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The graph and ever coarser groupings of it, see :mod:`ov_autoplace.policy.levels`."""
        return build_levels(
            self.node_cost,
            self.allowed,
            self.edge_source,
            self.edge_target,
            self.edge_cost,
            self.edge_share,
        )


def policy_graph(problem: Problem) -> PolicyGraph:
    """What policies see of a problem."""
    table, units = problem.table, problem.units
    allowed = np.isfinite(units.op_seconds)
    dearest = np.where(allowed, units.op_seconds, 0.0).max(axis=1, keepdims=True)
    fastest = np.where(allowed, units.op_seconds, np.inf).min(axis=1)
    # Where all ops are free, transfers and launches are what is compared.
    scale = float(fastest.mean()) or float(units.launch_seconds.mean() + units.transfer_latency.mean()) or 1.0
    cost = np.where(allowed, units.op_seconds, dearest + _FORBIDDEN_COST * scale) / scale
    source, target, price, share = _edges(units, scale)
    heaviest = _heaviest_groups(table, units)
    shapes = table.output_shapes
    return PolicyGraph(
        problem=problem,
        allowed=allowed,
        op_type=op_type_indices(table.op_types, len(table))[heaviest],
        output_shapes=() if shapes is None else tuple(shapes[g] for g in heaviest),
        output_bytes=np.bincount(units.producer, units.tensor_bytes, len(units)).astype(np.float64),
        pair_features=_pair_features(cost, allowed, units.launch_seconds / scale),
        node_cost=cost.astype(np.float32),
        edge_source=source,
        edge_target=target,
        edge_offsets=np.searchsorted(target, np.arange(len(units) + 1)),
        edge_cost=price.astype(np.float32),
        edge_share=share.astype(np.float32),
        scale_seconds=scale,
        is_estimate=table.source == "analytic",
    )


def _edges(
    units: UnitGraph, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Edges sorted by (target, source), their prices ``[E, D, D]`` and shared parts ``[E]``."""
    N, D = len(units), units.num_devices
    consumers_of = np.diff(units.offsets)
    tensor = np.repeat(np.arange(len(units.producer)), consumers_of)
    key = units.consumers.astype(np.int64) * N + units.producer[tensor]
    edge, edge_of = np.unique(key, return_inverse=True)
    target, source = np.divmod(edge, max(N, 1))
    count = np.bincount(edge_of, minlength=len(edge)).astype(np.float64)
    nbytes = np.bincount(edge_of, units.tensor_bytes[tensor], len(edge))
    alone = 1.0 / np.maximum(consumers_of[tensor], 1)
    share = np.bincount(edge_of, alone, len(edge)) / np.maximum(count, 1)
    across = 1.0 - np.eye(D)
    price = (
        count[:, None, None] * units.transfer_latency
        + nbytes[:, None, None] * units.transfer_seconds_per_byte
        + units.launch_seconds
    )
    return source, target, price * across / scale, share


def _heaviest_groups(table: CostTable, units: UnitGraph) -> NDArray[np.int64]:
    """Of each unit the group that takes longest, ``int64[N]``."""
    seconds = np.where(table.supported, table.op_seconds, 0.0).max(axis=1)
    if len(units) == len(table):
        return np.arange(len(table))
    order = np.lexsort((seconds, units.unit_of))
    last = offsets_of(np.bincount(units.unit_of, minlength=len(units)))[1:] - 1
    return np.asarray(order[last], dtype=np.int64)


def _pair_features(
    cost: NDArray[np.float64], allowed: BoolArray, launch: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Columns of :data:`PAIR_FEATURES`."""
    total = cost.sum(axis=0)
    best = max(float(total.min()), 1e-12)
    everywhere = np.broadcast_to
    columns = (
        signed_log(cost),
        signed_log(beyond_best_other(cost)),
        cost / np.maximum(cost.sum(axis=1, keepdims=True), 1e-12),
        ~allowed,
        everywhere(np.minimum(np.log(np.maximum(total, 1e-12) / best), 5.0), cost.shape),
        everywhere(signed_log(launch), cost.shape),
    )
    return np.stack(columns, axis=2).astype(np.float32)
