"""Draws of sizes that the configurations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

_Value = TypeVar("_Value")


def pick(random: np.random.Generator, values: Sequence[_Value]) -> _Value:
    """One of ``values``."""
    return values[int(random.integers(len(values)))]


def chance(random: np.random.Generator, probability: float) -> bool:
    """True that often."""
    return bool(random.random() < probability)


def split_depth(random: np.random.Generator, depth: int, stages: int) -> tuple[int, ...]:
    """``depth`` blocks dealt to at most ``stages`` stages, unevenly, at least one to each.

    A depth below ``stages`` gives fewer stages. How much is drawn does not depend on the depth.
    """
    shares = random.uniform(0.5, 2.0, stages)[: min(stages, depth)]
    dealt = np.ones(len(shares), dtype=np.int64)
    bounds = np.round(np.cumsum(shares / shares.sum()) * (depth - len(shares))).astype(np.int64)
    return tuple((dealt + np.diff(bounds, prepend=0)).tolist())
