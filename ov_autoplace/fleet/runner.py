"""What runs on the nodes: functions of this package by name, one at a time in a process of its own."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from ov_autoplace.errors import AutoplaceError

__all__ = ["Runner"]

_PATIENCE, _STEP = 15.0, 0.05  # seconds
_PACKAGE = __name__.partition(".")[0]


class Runner:
    """Lives in one process of a node and runs one unit after the other.

    What it is given and what it gives back are plain JSON values.
    """

    def __init__(self) -> None:
        self._held = ExitStack()

    def hold(self, host: str) -> bool:
        """Take the lock of the computer; ``False`` if others keep it.

        Waiting here costs those others nothing; starting this process again and again would.

        Args:
            host: Boot id of the computer.
        """
        from ov_autoplace.fleet.host_lock import host_lock

        end = time.monotonic() + _PATIENCE
        while True:
            with ExitStack() as taken:
                if taken.enter_context(host_lock(host)):
                    self._held = taken.pop_all()  # until this process ends
                    return True
            if time.monotonic() > end:
                return False
            time.sleep(_STEP)

    def run(self, function: str, request: Any, data: tuple[Any, ...]) -> dict[str, Any]:
        """Run a function of a module that is installed here.

        Args:
            function: ``MODULE:NAME``; takes ``request`` and ``data``.
            request: What to do.
            data: References to large objects, which the function gets from the cluster where it needs them.

        Returns:
            ``answer``, or ``error`` with the sentence, ``kind`` and ``exit_code`` of one of this package's
            errors. Others are raised, so that the driver sees them as Ray shows them. ``notes`` are the
            warnings that were logged meanwhile.
        """
        notes = _Notes()
        log = logging.getLogger(_PACKAGE)
        log.addHandler(notes)
        try:
            return {"answer": _named(function)(request, data), "notes": notes.lines}
        except AutoplaceError as error:
            kind = type(error).__name__
            return {"error": str(error), "kind": kind, "exit_code": error.exit_code, "notes": notes.lines}
        finally:
            log.removeHandler(notes)


class _Notes(logging.Handler):
    """Keeps warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _named(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)
