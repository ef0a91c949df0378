"""The costs of a problem's units and of the edges between them, by one number per table.

All costs are divided by the mean time of a unit on its fastest device, so that they mean the same whatever
the unit of time. What is grouped by them is in :mod:`ov_autoplace.problem.groupings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace.problem.groupings import build_groupings
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph

__all__ = ["UnitCosts"]

Own = TypeVar("Own", bound="UnitCosts")

_FORBIDDEN_COST = 30.0  # in units of the mean op time, on top of the op's dearest device


@dataclass(frozen=True, eq=False)
class UnitCosts:
    """N units on D devices with E edges.

    Attributes:
        problem: What it was made from; its units are the N units.
        allowed: Which unit may run where, ``bool[N, D]``.
        node_cost: Seconds by ``scale_seconds``; forbidden devices are dear instead of infinite,
            ``float32[N, D]``.
        edge_source, edge_target: Producer and consumer of each edge, sorted by target then source; several
            tensors between the same two units are one edge, ``int64[E]``.
        edge_cost: Price of the edge by ``scale_seconds`` with the producer on the row's and the consumer on
            the column's device: transfers and one launch; 0 on the diagonal, ``float32[E, D, D]``.
        scale_seconds: What costs were divided by.
    """

    problem: Problem
    allowed: BoolArray
    node_cost: NDArray[np.float32]
    edge_source: NDArray[np.int64]
    edge_target: NDArray[np.int64]
    edge_cost: NDArray[np.float32]
    scale_seconds: float

    @classmethod
    def of(cls: type[Own], problem: Problem) -> Own:
        """The costs of a problem."""
        units = problem.units
        # One device after the other: numpy is slow along short axes.
        seconds = np.asfortranarray(units.op_seconds)
        allowed = np.isfinite(seconds)
        dearest = np.where(allowed, seconds, 0.0).max(axis=1, keepdims=True)
        fastest = np.where(allowed, seconds, np.inf).min(axis=1)
        # Where all ops are free, transfers and launches are what is compared.
        free = float(units.launch_seconds.mean() + units.transfer_latency.mean())
        scale = float(fastest.mean()) or free or 1.0
        cost = np.where(allowed, seconds, dearest + _FORBIDDEN_COST * scale) / scale
        source, target, price = _edges(units, scale)
        return cls(
            problem=problem,
            allowed=np.ascontiguousarray(allowed),
            node_cost=cost.astype(np.float32, order="C"),
            edge_source=source,
            edge_target=target,
            edge_cost=price.astype(np.float32),
            scale_seconds=scale,
        )

    def __len__(self) -> int:
        return len(self.node_cost)

    @property
    def num_devices(self) -> int:
        """Number of devices, D."""
        return int(self.allowed.shape[1])

    @property
    def objective(self) -> str:
        """What the problem wants to be short."""
        return self.problem.objective

    @cached_property
    def groupings(self) -> tuple[NDArray[np.int64], ...]:
        """Ever coarser groups of the units, see :mod:`ov_autoplace.problem.groupings`."""
        return build_groupings(self)


def _edges(
    units: UnitGraph, scale: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Edges sorted by (target, source), and their prices ``[E, D, D]``."""
    N, D = len(units), units.num_devices
    tensor = np.repeat(np.arange(len(units.producer)), np.diff(units.offsets))
    key = units.consumers.astype(np.int64) * N + units.producer[tensor]
    edge, edge_of = np.unique(key, return_inverse=True)
    target, source = np.divmod(edge, max(N, 1))
    count = np.bincount(edge_of, minlength=len(edge)).astype(np.float64)
    nbytes = np.bincount(edge_of, units.tensor_bytes[tensor], len(edge))
    price = (
        count[:, None, None] * units.transfer_latency
        + nbytes[:, None, None] * units.transfer_seconds_per_byte
        + units.launch_seconds
    )
    return source, target, price * (1.0 - np.eye(D)) / scale
