"""How long fine-tuning may take, as the user writes it, and how Ctrl-C ends it early."""

from __future__ import annotations

import math
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from ov_autoplace._base.budget import Budget
from ov_autoplace.errors import OptionError

__all__ = ["TuningBudget", "parse_seconds"]

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class TuningBudget(Budget):
    """The time of a run, which Ctrl-C may cut short: it asks to stop at the next good moment.

    A second Ctrl-C interrupts at once. Python handles signals in its main thread, and while this is used as a
    context manager; elsewhere Ctrl-C does what it always does.

    Attributes:
        stop_requested: Whether Ctrl-C was pressed.
    """

    stop_requested = False
    _previous: Any = None
    _installed = False

    def __enter__(self) -> TuningBudget:
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
        if self.stop_requested:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.stop_requested:
            raise KeyboardInterrupt
        self.stop_requested = True


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
