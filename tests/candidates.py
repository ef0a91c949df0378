"""Candidates whose groups are on given devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ov_autoplace.placement.decision import Candidate
from ov_autoplace.placement.plan import plan_of_groups

__all__ = ["on_groups"]

_Candidate = TypeVar("_Candidate", bound=Candidate)


def on_groups(
    name: str,
    assignment: Sequence[int],
    seconds: float | None = None,
    samples: Sequence[float] = (),
    devices: tuple[str, ...] = ("D0", "D1"),
    kind: type[_Candidate] = Candidate,
    **known: Any,
) -> _Candidate:
    """A candidate that puts each of some groups on one device.

    Args:
        name: Who proposed it.
        assignment: Index into ``devices`` of each group.
        seconds: What is predicted.
        samples: What was measured, in seconds.
        devices: Names of the devices.
        kind: Its class.
        **known: Further fields.
    """
    chosen = np.asarray(assignment, dtype=np.int32)
    plan = plan_of_groups(devices, tuple(f"group{g}" for g in range(len(chosen))), chosen)
    return kind(name, plan, seconds, samples=np.asarray(samples), assignment=chosen, **known)
