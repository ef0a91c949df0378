"""Measuring many requests in flight: closed loops of waiting callers or of a queue, in turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ov_autoplace import _core
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.model_file import reported_failure
from ov_autoplace.measure.session import ProfilingSession

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable, RaceResult

__all__ = ["Load", "race_loads"]


@dataclass(frozen=True, eq=False)
class Load:
    """So many requests, each of which begins anew as soon as it has finished.

    Attributes:
        members: What the requests belong to, in turns.
        requests: How many.
        asynchronous: One thread starts whichever request is idle, as ``AsyncInferQueue`` does; otherwise each
            request has a thread that waits in ``infer()``.
    """

    members: tuple[Executable, ...]
    requests: int
    asynchronous: bool


def race_loads(
    session: ProfilingSession, loads: Sequence[Load], budget_seconds: float, **options: Any
) -> RaceResult:
    """Run loads in turns until one is left or the budget ends; samples are seconds per finished request.

    Args:
        session: Has compiled the members.
        loads: What to compare.
        budget_seconds: When to stop.
        **options: Further keyword arguments of ``_core.race_loads``.

    Raises:
        ProfilingError: None of them can be run.
    """
    race: Any = (
        session.profiler.race_loads if isinstance(session.profiler, IsolatedProfiler) else _core.race_loads
    )
    with reported_failure("no load can be run"):
        result: RaceResult = race(
            [(list(load.members), load.requests, load.asynchronous) for load in loads],
            budget_seconds,
            **options,
        )
        return result
