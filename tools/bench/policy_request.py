"""What every section of the policy's benchmark is given, and what it hands back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ov_autoplace.policy.runner import PolicyRunner

__all__ = ["Bar", "Request", "Section"]


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Attributes:
        policy: The policy that is judged.
        workloads: Folder of held-out workloads.
        quick: Fewer problems, for a look.
        workers: Processes that search for best placements.
        seconds: Of each longer search.
        cache: File that keeps the best placements' latencies.
    """

    policy: PolicyRunner
    workloads: Path
    quick: bool
    workers: int
    seconds: float
    cache: Path | None

    def count(self, usual: int) -> int:
        """How many of something: a quarter when quick."""
        return -(-usual // 4) if self.quick else usual


@dataclass(frozen=True)
class Bar:
    """One thing that was to be reached.

    Attributes:
        what: In words, with its unit.
        limit: At most.
        reached: What it is.
    """

    what: str
    limit: float
    reached: float

    @property
    def is_met(self) -> bool:
        """Whether it was reached."""
        return self.reached <= self.limit


@dataclass(frozen=True)
class Section:
    """Results of a section.

    Attributes:
        data: Everything, for JSON.
        bars: Those that the section decides.
    """

    data: dict[str, Any]
    bars: list[Bar] = field(default_factory=list)
