"""Wall-clock budgets: how much is left, and whether the next piece of work still fits in."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, TypeVar

from ov_autoplace.errors import OptionError

__all__ = ["Budget", "Interruption", "parse_seconds"]

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_Result = TypeVar("_Result")
_SAFETY = 1.3  # estimates are medians of a shared machine; what takes this much longer still fits in


class Budget:
    """Seconds of wall-clock time from a starting point, some of which are kept for what comes last.

    Args:
        seconds: All of them.
        started: ``time.perf_counter()`` when they began to count; ``None`` = now.
    """

    def __init__(self, seconds: float, started: float | None = None) -> None:
        self.seconds = seconds
        self.started = time.perf_counter() if started is None else started
        self._reserves: dict[str, float] = {}
        self._durations: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=3))

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

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


class Interruption:
    """Takes Ctrl-C as a request to stop at the next good moment; a second one interrupts at once.

    Python handles signals in its main thread; in another thread this does nothing, and Ctrl-C does what it
    always does.

    Attributes:
        requested: Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None
        self._installed = False

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._previous)
            self._installed = False

    def check(self) -> None:
        """Called where stopping leaves nothing half done.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        if self.requested:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


def parse_seconds(value: str | float) -> float:
    """``120``, ``"120s"``, ``"5m"``, ``"1.5h"`` or ``"800ms"`` in seconds.

    Raises:
        OptionError: It is none of these, or not above 0.
    """
    text = str(value).strip().lower()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    scale = _UNITS.get(text[len(number) :].strip() or "s")
    try:
        seconds = float(number) * (scale if scale is not None else math.nan)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise OptionError(f"the budget is {value!r}; write a time above 0 like 90, 120s, 5m or 1h")
    return seconds
