"""The command ``ov-autoplace``, outside the package, because that imports OpenVINO.

Importing it takes a while, in which Ctrl-C would show as a traceback, or as an ImportError of an extension
module.
"""

from __future__ import annotations

import signal
import sys
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
        with _interrupts(signal.SIG_DFL):
            from ov_autoplace.cli.app import run
        code = run(arguments)
    except KeyboardInterrupt:
        code = 130
    if code == 130:
        _show_cursor()
    return code


def _show_cursor() -> None:
    """Show it again: an interrupt may come while a progress bar hides it, or while the bar is taken away."""
    if sys.stderr.isatty():
        with _interrupts(signal.SIG_IGN):
            sys.stderr.write("\x1b[?25h")
            sys.stderr.flush()


@contextmanager
def _interrupts(handler: signal.Handlers) -> Iterator[None]:
    """Another answer to Ctrl-C, where it is Python's own that would answer."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
