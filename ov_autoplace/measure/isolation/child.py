"""The child process of a profiler: asked one thing at a time, and started anew when it dies or hangs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ov_autoplace import _core
from ov_autoplace._base.native import native_libraries
from ov_autoplace.measure.isolation.process import NoProcessError, ProcessEndedError, WorkerProcess

__all__ = ["HANG_VARIABLE", "PATIENCE", "Child"]

HANG_VARIABLE = "AUTOPLACE_HANG_SECONDS"
"""Environment variable: how long the child may at least be silent before it counts as hung."""

PATIENCE = 20.0
"""What took so long once may take this many times as long the next time."""

_HANG_SECONDS = 60.0
# A child that somebody else ends is started anew so often, whatever it was to do.
_MOST_IDLE_ENDS = 10


class Child:
    """A process that compiles and runs models for certain devices.

    Args:
        plugins: (device name, plugin library) of devices that OpenVINO does not know by itself.
        device_properties: Settings of each device.

    Attributes:
        lock: To be held while it is used.
        silence: Seconds without an answer after which it counts as hung, where nothing is known that takes
            longer.
        longest_compilation: Seconds of the slowest compilation so far.

    Raises:
        VersionMismatchError: There is no native part for the OpenVINO that is installed.
        NoProcessError: No child can be started here.
        ProcessEndedError: It died as soon as it was started.
    """

    def __init__(
        self, plugins: Sequence[tuple[str, str]], device_properties: Mapping[str, Mapping[str, str]]
    ) -> None:
        self.lock = threading.RLock()
        self.silence = float(os.environ.get(HANG_VARIABLE) or _HANG_SECONDS)
        self.longest_compilation = 0.0
        self._libraries = native_libraries()
        self._setup = list(plugins), dict(device_properties)
        self._dropped: list[int] = []
        self._numbers = 0
        self._idle_ends = 0
        self._closed = False
        self._is_created = False
        self._process: WorkerProcess | None = self._start()

    def another(self) -> Child:
        """One more child for the same devices; raises as making the first one does."""
        return Child(*self._setup)

    def running(self) -> WorkerProcess:
        """The process, a new one where the last one is gone.

        Raises:
            ProfilerError: It was closed, or none can be started.
        """
        if self._closed:
            raise _core.ProfilerError("the profiler was closed")
        if self._process is None or not self._process.is_alive():
            self._dropped.clear()
            try:
                self._process = self._start()
            except (NoProcessError, ProcessEndedError) as cause:
                raise _core.ProfilerError(f"no process can be started to measure in: {cause}") from cause
        return self._process

    def ask(
        self,
        process: WorkerProcess,
        seconds: float,
        *,
        progress: Callable[..., None] | None = None,
        **request: Any,
    ) -> tuple[dict[str, Any], bytes]:
        """The answer to one request; what interrupts it ends the process, which is in the middle of it.

        Args:
            process: What :meth:`running` gave last. What a request names is compiled in that process
                alone: where it has ended since, another one would know nothing of it.
            seconds: How long it may be silent.
            progress: See ``WorkerProcess.answer``.
            request: What it is asked for.

        Raises:
            ProfilerError: What it says of a failure.
            ProcessEndedError: It died or hung.
        """
        dropped, self._dropped = self._dropped, []
        try:
            if not self._is_created:
                _check(process.answer(self.silence)[0])
                self._is_created = True
            process.send({**request, "drop": dropped}, seconds)
            answer, payload = process.answer(seconds, progress)
        except BaseException as cause:
            self.stop()
            if isinstance(cause, ProcessEndedError) and cause.was_idle:
                self._idle_ends += 1
                cause.was_idle = self._idle_ends <= _MOST_IDLE_ENDS
            raise
        _check(answer)
        return answer, payload

    def is_still(self, process: WorkerProcess) -> bool:
        """Whether no other process has taken its place."""
        return process is self._process

    def next_number(self) -> int:
        """A number that no model has had."""
        self._numbers += 1
        return self._numbers

    def forget(self, process: WorkerProcess | None, number: int) -> None:
        """A process may drop what it compiled; told with the next request."""
        if process is not None and self.is_still(process):
            self._dropped.append(number)

    def stop(self) -> None:
        """End the process; the next request starts another one, in which nothing is compiled yet."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def close(self) -> None:
        """End it for good."""
        self._closed = True
        self.stop()

    def _start(self) -> WorkerProcess:
        process = WorkerProcess()
        process.check()
        plugins, device_properties = self._setup
        request = {"call": "create", "libraries": self._libraries}
        process.send({**request, "plugins": plugins, "device_properties": device_properties}, self.silence)
        self._is_created = False
        return process


def _check(answer: Mapping[str, Any]) -> None:
    """Raise here what was raised there."""
    if "error" in answer:
        kind = ValueError if answer["kind"] == "ValueError" else _core.ProfilerError
        raise kind(answer["error"] or answer["kind"])
