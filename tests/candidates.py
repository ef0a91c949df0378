"""Candidates whose groups are on given devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.placement.decision import Candidate, Decision
from ov_autoplace.placement.findings import Finding, Kind
from ov_autoplace.placement.plan import plan_of_groups

__all__ = ["FOUND", "detail", "kinds", "numbers", "on_groups"]

_Candidate = TypeVar("_Candidate", bound=Candidate)


FOUND = (Finding.of(Kind.GIVEN, "somebody", detail="a test"),)
"""What was found before."""


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


def kinds(decided: Verdict | Decision) -> list[Kind]:
    """What the findings say, in their order."""
    return [finding.kind for finding in decided.findings]


def numbers(decided: Verdict | Decision, kind: Kind) -> Mapping[str, float]:
    """The numbers of the one finding of a kind."""
    (finding,) = (finding for finding in decided.findings if finding.kind is kind)
    return finding.numbers


def detail(decided: Verdict | Decision, kind: Kind) -> str:
    """What the one finding of a kind quotes."""
    (finding,) = (finding for finding in decided.findings if finding.kind is kind)
    return finding.detail
