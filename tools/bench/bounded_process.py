"""Pieces of a run that may take only so long as a whole."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from suite_process import Failure, in_child

__all__ = ["child_until"]


def child_until(end: float, timeout: float, function: str, arguments: Mapping[str, Any]) -> Any:
    """What :func:`suite_process.in_child` gives, or a failure where no time is left.

    Args:
        end: Of the run, on the clock of ``time.perf_counter``.
        timeout: Seconds of one piece; it gets less where less is left.
        function: ``module:function``.
        arguments: Its keyword arguments.
    """
    left = end - time.perf_counter()
    if left <= 0:
        return Failure(
            "the run took too long before it; start it again with --models, or with suite.py --resume"
        )
    return in_child(function, arguments, timeout=min(timeout, left))
