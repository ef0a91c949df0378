"""Wall-clock budgets: how much is left, and whether the next piece of work still fits in."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Budget"]

_Result = TypeVar("_Result")
_SAFETY = 1.3  # estimates are medians of a shared machine; what takes this much longer still fits in


class Budget:
    """Seconds of wall-clock time from a starting point, some of which are kept for what comes last.

    Args:
        seconds: All of them.
        started: What ``clock`` said when they began to count; ``None`` = now.
        clock: Tells the time in seconds.
    """

    def __init__(
        self,
        seconds: float,
        started: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.seconds = seconds
        self.started = clock() if started is None else started
        self._clock = clock
        self._reserves: dict[str, float] = {}
        self._durations: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=3))

    def check(self) -> None:
        """Called where stopping leaves nothing half done; a budget that can be cut short raises here."""

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return self._clock() - self.started

    @property
    def left(self) -> float:
        """Seconds until the end, not negative."""
        return max(0.0, self.seconds - self.spent)

    @property
    def free(self) -> float:
        """Seconds that are left and not reserved, not negative."""
        return max(0.0, self.left - sum(self._reserves.values()))

    def reserve(self, purpose: str, seconds: float) -> None:
        """Keep so many seconds for something that must be done at the end; replaces what was kept for it."""
        self._reserves[purpose] = seconds * _SAFETY

    def release(self, purpose: str) -> None:
        """What was kept for this is free now."""
        self._reserves.pop(purpose, None)

    def allows(self, seconds: float) -> bool:
        """Whether work that is estimated to take ``seconds`` can be started."""
        return seconds * _SAFETY <= self.free

    def timed(self, label: str, action: Callable[[], _Result]) -> _Result:
        """Do something, and remember how long it took."""
        before = self.spent
        try:
            return action()
        finally:
            self._durations[label].append(self.spent - before)

    def duration(self, label: str, unknown: float = 0.0) -> float:
        """How long something takes: the longest of the last three times."""
        return max(self._durations[label], default=unknown)
