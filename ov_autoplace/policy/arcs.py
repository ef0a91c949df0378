"""Who hears whom in a network: each edge as two arcs, one to each end, with what cutting it costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["ARC_FEATURES", "Arcs", "beyond_best_other", "by_mean", "signed_log"]

ARC_FEATURES = ("price_if_other_leaves", "price_if_self_leaves", "cheapest", "share", "forward")
"""Columns of :attr:`Arcs.features`."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """The 2 E arcs of E edges between N units; what is not asked for is not computed.

    Attributes:
        producer, consumer: Ends of each edge, ``int64[E]``.
        price: With the producer on the row's and the consumer on the column's device, ``float64[E, D, D]``.
        share: Part that remains when all consumers receive together, ``float64[E]``.
        units: N.
    """

    producer: NDArray[np.int64]
    consumer: NDArray[np.int64]
    price: NDArray[np.float64]
    share: NDArray[np.float64]
    units: int

    @cached_property
    def source(self) -> NDArray[np.int64]:
        """Unit that each arc comes from, ``int64[2 E]``."""
        return np.concatenate((self.producer, self.consumer)).take(self._order)

    @cached_property
    def target(self) -> NDArray[np.int64]:
        """Unit that each arc goes to, sorted, ``int64[2 E]``."""
        return self._to.take(self._order)

    @cached_property
    def inverse_root_degree(self) -> NDArray[np.float32]:
        """One over the root of the number of arcs to each unit; 0 where there is none, ``float32[N]``."""
        degree = np.bincount(self._to, minlength=self.units)
        return ((degree > 0) / np.sqrt(np.maximum(degree, 1))).astype(np.float32)

    @cached_property
    def pull(self) -> NDArray[np.float64]:
        """What leaving a device for the mean of the others costs a unit at its edges, ``float64[N, D]``."""
        leaves = np.concatenate(_if_other_leaves(self._by_device()), axis=1)
        pull: NDArray[np.float64] = np.array([np.bincount(self._to, row, self.units) for row in leaves]).T
        return pull

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """What cutting each arc costs, ``float32[2 E, D, len(ARC_FEATURES)]``."""
        return _arc_features(self._by_device(), self.share).take(self._order, axis=0)

    @property
    def _to(self) -> NDArray[np.int64]:
        """Target of the arcs to consumers, then of those to producers."""
        return np.concatenate((self.consumer, self.producer))

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """Sorts these by target."""
        return np.argsort(self._to, kind="stable")

    def _by_device(self) -> NDArray[np.float64]:
        """A copy of the prices, ``[consumer's device, producer's device, E]``: one device lies together."""
        return np.array(self.price.T, order="C")


def signed_log(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """``sign(x) log(1 + 50 |x|) / 4``: resolves small costs, compresses large ones."""
    return np.asarray(np.sign(values) * np.log1p(50.0 * np.abs(values)) / 4.0)


def beyond_best_other(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost on each device minus the lowest cost on any other device, ``[n, D]``; 0 with one device."""
    n, D = cost.shape
    if D == 1:
        return np.zeros_like(cost)
    best, second = np.full(n, np.inf), np.full(n, np.inf)
    for column in cost.T:
        second = np.minimum(second, np.maximum(best, column))
        best = np.minimum(best, column)
    return np.asarray((cost.T - np.where(best == cost.T, second, best)).T)


def by_mean(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost on each device by the mean over the devices, less 1, ``[n, D]``."""
    mean = cost.mean(axis=1, keepdims=True)
    return np.asarray(np.clip(cost / np.maximum(mean, 1e-12), 0.0, 4.0) - 1.0)


def _if_other_leaves(price: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean price over the other end's devices, of arcs to consumers and to producers, ``float64[D, E]`` each.

    Args:
        price: Of E edges, ``float64[D, D, E]``, the consumer's device first, 0 where both are one.
    """
    others = max(len(price) - 1, 1)
    return price.sum(axis=1) / others, price.sum(axis=0) / others


def _arc_features(price: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float32]:
    """Columns of :data:`ARC_FEATURES`, ``float32[2 E, D, 5]``: arcs to consumers, then those to producers.

    Args:
        price: Of E edges, ``float64[D, D, E]``, the consumer's device first; its diagonal is overwritten.
        share: Part that remains when all consumers receive together, ``float64[E]``.
    """
    if_other_leaves = _if_other_leaves(price)
    D, _, E = price.shape
    if D > 1:
        price[np.eye(D, dtype=np.bool_)] = np.inf
    features = np.empty((2, E, D, len(ARC_FEATURES)), dtype=np.float32)
    for way in (0, 1):
        leaves = signed_log(if_other_leaves[way]).T
        features[way, :, :, 0] = features[1 - way, :, :, 1] = leaves
        features[way, :, :, 2] = signed_log(price.min(axis=1 - way)).T
        features[way, :, :, 4] = 1 - way
    features[:, :, :, 3] = share[:, None]
    return features.reshape(2 * E, D, len(ARC_FEATURES))
