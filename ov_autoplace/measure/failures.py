"""What devices throw while they compile and run, as one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from ov_autoplace._core import ProfilerError
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.errors import ProfilingError

__all__ = ["failing_on", "reported_failure"]


@contextmanager
def reported_failure(what: str, device: str | None = None) -> Iterator[None]:
    """Turn what a device throws while it compiles or runs into one sentence.

    Args:
        what: What failed, the sentence's beginning.
        device: Whose failure it is.

    Raises:
        ProfilingError: Instead of the profiler's own error.
    """
    try:
        yield
    except ProfilerError as cause:
        raise ProfilingError(f"{what}: {openvino_reason(cause)}", device) from cause


def failing_on(device: str) -> AbstractContextManager[None]:
    """:func:`reported_failure` for a model that is compiled or run on one device or on HETERO."""
    return reported_failure(f"the model cannot be timed on {device}", None if ":" in device else device)
