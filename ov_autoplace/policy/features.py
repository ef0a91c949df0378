"""What policies see of a cost table: arrays of numbers whose meaning does not depend on the model.

Policies decide for the units of :class:`~ov_autoplace.problem.units.UnitGraph`. All costs are divided by one
number per table, the mean time of a unit on its fastest device, so that a policy sees the same problem
whatever the unit of time; what spans decades is compressed by
:func:`~ov_autoplace.policy.arcs.signed_log`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray, offsets_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.policy.arcs import Arcs, beyond_best_other, by_mean, signed_log
from ov_autoplace.policy.groupings import build_groupings
from ov_autoplace.policy.structure import NODE_FEATURES, structural_features
from ov_autoplace.policy.timing import UNIT_FEATURES, Timing, timing_of
from ov_autoplace.policy.vocabulary import op_type_indices
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph

__all__ = ["GRAPH_FEATURES", "NODE_FEATURES", "PAIR_FEATURES", "UNIT_FEATURES", "PolicyGraph", "policy_graph"]

PAIR_FEATURES = (
    "seconds",
    "seconds_beyond_best_other",
    "seconds_by_mean",
    "forbidden",
    "device_total",
    "launch",
    "memory_of_unit",
    "log_memory_of_model",
    "copies",
    "copy_sin",
    "copy_cos",
    "edges",
    "turn",
    "spread",
)
"""Columns of :attr:`PolicyGraph.pair_features`."""

GRAPH_FEATURES = (
    "is_estimate",
    "is_overlap",
    "is_rate",
    "has_memory_limits",
    "one_by_devices",
    "log_width",
    "log_corun_factor",
    "mix",
)
"""Columns of :attr:`PolicyGraph.graph_features`."""

_GOLDEN = 0.6180339887498949
_FORBIDDEN_COST = 30.0  # in units of the mean op time, on top of the op's dearest device


@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """N units on D devices with E edges, as policies see them.

    Attributes:
        problem: What it was made from; its units are the N units.
        allowed: Which unit may run where, ``bool[N, D]``.
        pair_features: What the table says of each unit on each device, ``float32[N, D, P]``.
        node_cost: Seconds by ``scale_seconds``; forbidden devices are dear instead of infinite,
            ``float32[N, D]``.
        edge_source, edge_target: Producer and consumer of each edge, sorted by target then source; several
            tensors between the same two units are one edge, ``int64[E]``.
        edge_cost: Price of the edge by ``scale_seconds`` with the producer on the row's and the consumer on
            the column's device: transfers and one launch; 0 on the diagonal, ``float32[E, D, D]``.
        edge_share: Part of the price that remains when all consumers of its tensors receive them
            together, ``float32[E]``.
        arcs: The edges, once to each end.
        scale_seconds: What costs were divided by.
        is_estimate: Whether the table holds estimates, which are wrong by factors, not measurements.
        timing: When units could run.
        graph_features: What holds for the whole problem, its objective first of all,
            ``float32[len(GRAPH_FEATURES)]``.
        memory_share: Bytes of each unit by each device's capacity; 0 where that cannot overflow,
            ``float32[N, D]``.
        same_device: 1 for columns that are lanes of one device and share its memory, ``float32[D, D]``.
        copy_of: First column that each is a copy of, which is itself where it is none, ``int64[D]``.
    """

    problem: Problem
    allowed: BoolArray
    pair_features: NDArray[np.float32]
    node_cost: NDArray[np.float32]
    edge_source: NDArray[np.int64]
    edge_target: NDArray[np.int64]
    edge_cost: NDArray[np.float32]
    edge_share: NDArray[np.float32]
    arcs: Arcs
    scale_seconds: float
    is_estimate: bool
    timing: Timing
    graph_features: NDArray[np.float32]
    memory_share: NDArray[np.float32]
    same_device: NDArray[np.float32]
    copy_of: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.node_cost)

    @property
    def num_devices(self) -> int:
        """Number of devices, D."""
        return int(self.allowed.shape[1])

    @cached_property
    def op_type(self) -> NDArray[np.int64]:
        """Vocabulary index of each unit's heaviest group, ``int64[N]``."""
        table = self.problem.table
        return op_type_indices(table.op_types, len(table))[self._heaviest]

    @cached_property
    def node_features(self) -> NDArray[np.float32]:
        """Structure without costs, ``float32[N, F]``; columns are named by :data:`NODE_FEATURES`."""
        shapes = self.problem.table.output_shapes
        return structural_features(
            self.edge_source,
            self.edge_target,
            len(self),
            () if shapes is None else tuple(shapes[g] for g in self._heaviest),
            self.output_bytes,
        )

    @cached_property
    def output_bytes(self) -> NDArray[np.float64]:
        """Bytes that each unit sends to others, ``float64[N]``."""
        units = self.problem.units
        return np.bincount(units.producer, units.tensor_bytes, len(self)).astype(np.float64)

    @cached_property
    def _heaviest(self) -> NDArray[np.int64]:
        """Of each unit the group that takes longest, ``int64[N]``."""
        return _heaviest_groups(self.problem.table, self.problem.units)

    @property
    def objective(self) -> str:
        """What the problem wants to be short."""
        return self.problem.objective

    @cached_property
    def copy_phase(self) -> NDArray[np.float64]:
        """Place of each column among its copies, from 0 up to 1; NaN where it has none, ``float64[D]``."""
        return _copy_phase(self.copy_of)

    @property
    def unit_features(self) -> NDArray[np.float32]:
        """When units could run, ``float32[N, len(UNIT_FEATURES)]``."""
        return self.timing.features

    @cached_property
    def groupings(self) -> tuple[NDArray[np.int64], ...]:
        """Ever coarser groups of the units, see :mod:`ov_autoplace.policy.groupings`."""
        return build_groupings(self)


def policy_graph(problem: Problem) -> PolicyGraph:
    """What policies see of a problem."""
    table, units = problem.table, problem.units
    # One device after the other: numpy is slow along short axes.
    seconds = np.asfortranarray(units.op_seconds)
    allowed = np.isfinite(seconds)
    dearest = np.where(allowed, seconds, 0.0).max(axis=1, keepdims=True)
    fastest = np.where(allowed, seconds, np.inf).min(axis=1)
    # Where all ops are free, transfers and launches are what is compared.
    scale = float(fastest.mean()) or float(units.launch_seconds.mean() + units.transfer_latency.mean()) or 1.0
    cost = np.where(allowed, seconds, dearest + _FORBIDDEN_COST * scale) / scale
    source, target, price, share = _edges(units, scale)
    timing = timing_of(units, fastest / scale, source, target, problem.objective)
    limited = np.where(units.may_overflow, np.maximum(units.memory_capacity, 1e-30), np.inf)
    memory = units.packing_bytes[:, None] / limited
    copy_of = _copies(units)
    arcs = Arcs(source, target, price, share, len(units))
    pair_features = _pair_features(cost, allowed, units.launch_seconds / scale, memory, copy_of, arcs.pull)
    return PolicyGraph(
        problem=problem,
        allowed=np.ascontiguousarray(allowed),
        pair_features=pair_features,
        node_cost=cost.astype(np.float32, order="C"),
        edge_source=source,
        edge_target=target,
        edge_cost=price.astype(np.float32),
        edge_share=share.astype(np.float32),
        arcs=arcs,
        scale_seconds=scale,
        is_estimate=table.is_estimate,
        timing=timing,
        graph_features=_graph_features(problem, timing, scale),
        memory_share=memory.astype(np.float32),
        same_device=(units.device_of[:, None] == units.device_of).astype(np.float32),
        copy_of=copy_of,
    )


def _graph_features(problem: Problem, timing: Timing, scale: float) -> NDArray[np.float32]:
    """Columns of :data:`GRAPH_FEATURES`."""
    table, units = problem.table, problem.units
    columns = (
        table.is_estimate,
        problem.objective == "overlap",
        problem.objective == "rate",
        units.has_memory_limits,
        1.0 / units.num_devices,
        np.log(timing.width) / 3,
        np.log(table.corun_factor),
        float(signed_log(np.array(table.mix_seconds / scale))),
    )
    return np.array(columns, dtype=np.float32)


def _copies(units: UnitGraph) -> NDArray[np.int64]:
    """First column that each can change places with without changing anything, ``int64[D]``."""
    D = units.num_devices
    same = np.zeros((D, D), dtype=np.bool_)
    shared = units.device_of[:, None] == units.device_of
    ways = (units.transfer_latency, units.transfer_seconds_per_byte, shared.astype(np.float64))
    for a in range(D):
        for b in range(a, D):
            swapped = np.arange(D)
            swapped[[a, b]] = b, a
            same[a, b] = same[b, a] = a == b or bool(
                np.array_equal(units.op_seconds[:, a], units.op_seconds[:, b])
                and units.launch_seconds[a] == units.launch_seconds[b]
                and units.memory_capacity[a] == units.memory_capacity[b]
                and all(np.array_equal(_off(way), _off(way[np.ix_(swapped, swapped)])) for way in ways)
            )
    return np.asarray(same.argmax(axis=1), dtype=np.int64)


def _copy_phase(copy_of: NDArray[np.int64]) -> NDArray[np.float64]:
    same = copy_of[:, None] == copy_of
    count = same.sum(axis=1)
    return np.where(count > 1, np.tril(same, -1).sum(axis=1) / count, np.nan)


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


def _off(way: NDArray[np.float64]) -> NDArray[np.float64]:
    """Without the diagonal, which nothing crosses."""
    return way * (1.0 - np.eye(len(way)))


def _pair_features(
    cost: NDArray[np.float64],
    allowed: BoolArray,
    launch: NDArray[np.float64],
    memory: NDArray[np.float64],
    copy_of: NDArray[np.int64],
    pull: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Columns of :data:`PAIR_FEATURES`."""
    total = cost.sum(axis=0)
    best = max(float(total.min()), 1e-12)
    phase, copies = _copy_phase(copy_of), (copy_of[:, None] == copy_of).mean(axis=1)
    angle, is_copy = 2 * np.pi * np.nan_to_num(phase), np.isfinite(phase)
    # Nothing tells copies of a device apart, nor branches that are alike: numbers do, one after the other in
    # turn, or spread so that any few neighbours are on different copies.
    number = 2 * np.pi * np.arange(len(cost))[:, None]
    columns = (
        signed_log(cost),
        signed_log(beyond_best_other(cost)),
        by_mean(cost),
        ~allowed,
        np.minimum(np.log(np.maximum(total, 1e-12) / best), 5.0),
        signed_log(launch),
        np.minimum(memory, 2.0),
        np.log1p(memory.sum(axis=0)),
        copies,
        np.sin(angle) * is_copy,
        np.cos(angle) * is_copy,
        signed_log(pull),
        np.cos(number / max(int(is_copy.sum()), 1) - angle) * is_copy,
        np.cos(number * _GOLDEN - angle) * is_copy,
    )
    features = np.empty((*cost.shape, len(PAIR_FEATURES)), dtype=np.float32)
    for i, column in enumerate(columns):
        features[:, :, i] = column
    return features
