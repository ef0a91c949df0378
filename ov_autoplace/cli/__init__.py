"""The command line: one file per command, ``app`` puts them together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; ``sys.argv`` when ``None``.

    Returns:
        The exit code: 0, 2 when the request was wrong, 1 when something failed, 130 after Ctrl-C.
    """
    try:
        with _ended_by_interrupts():
            from ov_autoplace.cli.app import run
        return run(arguments)
    except KeyboardInterrupt:
        return 130


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Let Ctrl-C end the process at once: in an import it would show as a traceback, or as an ImportError."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
