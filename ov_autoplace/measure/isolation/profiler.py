"""The profiler whose work is done in a child process, with the interface of ``_core.Profiler``."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._core import ProfilerError
from ov_autoplace.measure.isolation.process import NoProcessError, ProcessEndedError, WorkerProcess

__all__ = [
    "HANG_VARIABLE",
    "IsolatedExecutable",
    "IsolatedNodeTime",
    "IsolatedProfiler",
    "IsolatedRaceEntry",
    "IsolatedRaceResult",
]

_log = logging.getLogger("ov_autoplace")

HANG_VARIABLE = "AUTOPLACE_HANG_SECONDS"
"""Environment variable: how long the child may at least be silent before it counts as hung."""

_HANG_SECONDS = 60.0
# A child that somebody else ends is started anew so often, whatever it was to do.
_MOST_IDLE_ENDS = 10
# What took so long once may take this many times as long the next time.
_PATIENCE = 20.0
# The slowest that weights are compiled on any device, in bytes per second.
_COMPILE_RATE = 10e6


@dataclass(frozen=True)
class IsolatedNodeTime:
    """See ``_core.NodeTime``; the order is that in which the child tells them."""

    name: str
    subgraph: int
    type: str
    exec_type: str
    status: str
    original_names: list[str]
    consumers: list[str]
    layout: str
    precision: str
    seconds: float


@dataclass(frozen=True, eq=False)
class IsolatedRaceEntry:
    """See ``_core.RaceEntry``."""

    samples: FloatArray
    dropped: str
    dropped_seconds: float


@dataclass(frozen=True, eq=False)
class IsolatedRaceResult:
    """See ``_core.RaceResult``."""

    entries: list[IsolatedRaceEntry]
    best: int
    rounds: int
    seconds: float
    stopped: str


class IsolatedExecutable:
    """A model compiled in the child; see ``_core.Executable``.

    When the child has ended since, the next use compiles the model again. An executable during whose work the
    child died or hung is never tried again.

    Attributes:
        subgraphs: Number of submodels that HETERO made, else 1.
        compile_seconds: How long the last compilation took.
        execution_devices: As the device tells them.
    """

    def __init__(self, profiler: IsolatedProfiler, recipe: Mapping[str, Any]) -> None:
        self._profiler = profiler
        self._recipe = recipe
        self._number = -1
        self._process: WorkerProcess | None = None
        self._failure = ""
        self._slowest = 0.0  # seconds of an inference
        self.subgraphs = 1
        self.compile_seconds = 0.0
        self.execution_devices: list[str] = []

    def __del__(self) -> None:
        self._profiler._forget(self._process, self._number)

    def run(self, runs: int, warmup: int = 1, asynchronous: bool = False, inferences: int = 1) -> FloatArray:
        """Seconds per inference of each run, ``float64[runs]``; see ``_core.Executable.run``.

        Raises:
            ProfilerError: An inference fails, or the child dies or hangs.
        """
        how = {"runs": runs, "warmup": warmup, "asynchronous": asynchronous, "inferences": inferences}
        silence = self._profiler._silence
        seconds = silence + (warmup + runs * inferences) * (_PATIENCE * self._slowest or silence)
        _, payload = self._use(seconds, call="run", **how)
        samples = frozen_array(np.frombuffer(payload, dtype=np.float64), np.float64)
        self._slowest = max(self._slowest, float(samples.max(initial=0.0)))
        return samples

    def node_times(self) -> list[IsolatedNodeTime]:
        """What each node took; see ``_core.Executable.node_times``.

        Raises:
            ProfilerError: The device cannot tell, or the child dies or hangs.
        """
        answer, _ = self._use(self._profiler._silence, call="node_times")
        return [IsolatedNodeTime(*node) for node in answer["nodes"]]

    def _use(self, seconds: float, **request: Any) -> tuple[dict[str, Any], bytes]:
        with self._profiler._lock:
            while True:
                self._compile()
                try:
                    return self._profiler._ask(seconds, number=self._number, **request)
                except ProcessEndedError as cause:
                    if not cause.was_idle:
                        raise ProfilerError(self._blame("ran", cause)) from None

    def _compile(self) -> None:
        """Compile the model, unless the present child holds it."""
        profiler = self._profiler
        while not self._failure and self._process is not (process := profiler._running()):
            self._number = profiler._next_number()
            size = _size(Path(self._recipe["xml_path"]).with_suffix(".bin"))
            seconds = profiler._silence + size / _COMPILE_RATE + _PATIENCE * profiler._longest_compilation
            try:
                answer, _ = profiler._ask(seconds, call="compile", number=self._number, **self._recipe)
            except ProcessEndedError as cause:
                if not cause.was_idle:
                    self._blame("compiled", cause)
                continue
            self._process = process
            self.subgraphs = answer["subgraphs"]
            self.compile_seconds = answer["compile_seconds"]
            self.execution_devices = answer["execution_devices"]
            profiler._longest_compilation = max(profiler._longest_compilation, self.compile_seconds)
        if self._failure:
            raise ProfilerError(self._failure)

    def _blame(self, did: str, cause: ProcessEndedError) -> str:
        """Never run this again; the sentence that says why."""
        self._failure = f"the process that {did} it on {self._recipe['device']} {cause}"
        return self._failure


class IsolatedProfiler:
    """Compiles and times models in a child process, which is started anew when it dies or hangs.

    Args:
        plugins: (device name, plugin library) of devices that OpenVINO does not know by itself.
        device_properties: Settings of each device.

    Raises:
        NoProcessError: No child can be started here.
    """

    def __init__(
        self, plugins: Sequence[tuple[str, str]], device_properties: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._setup: dict[str, Any] = {"plugins": list(plugins), "device_properties": dict(device_properties)}
        self._lock = threading.RLock()
        self._dropped: list[int] = []
        self._numbers = 0
        self._idle_ends = 0
        self._silence = float(os.environ.get(HANG_VARIABLE) or _HANG_SECONDS)
        self._longest_compilation = 0.0
        self._closed = False
        self._process: WorkerProcess | None = self._start()

    def compile(
        self,
        xml_path: str,
        device: str,
        properties: Mapping[str, str] | None = None,
        affinities: Mapping[str, str] | None = None,
        input_high: Mapping[str, int] | None = None,
        seed: int = 0,
    ) -> IsolatedExecutable:
        """See ``_core.Profiler.compile``. The file must stay as long as the executable is used.

        Raises:
            ProfilerError: The model cannot be compiled there, or the child dies or hangs.
        """
        executable = IsolatedExecutable(
            self,
            {
                "xml_path": xml_path,
                "device": device,
                "properties": dict(properties or {}),
                "affinities": None if affinities is None else dict(affinities),
                "input_high": dict(input_high or {}),
                "seed": seed,
            },
        )
        with self._lock:
            executable._compile()
        return executable

    def race(
        self,
        executables: Sequence[IsolatedExecutable],
        budget_seconds: float,
        *,
        progress: Callable[[int, int, float], None] | None = None,
        names: Sequence[str] = (),
        **options: Any,
    ) -> IsolatedRaceResult:
        """See ``_core.Profiler.race``. A candidate with which the child dies or hangs has failed.

        The others are then compiled again and raced anew, within what is left of the budget, but at least
        half of it.

        Raises:
            ProfilerError: None of them can be run.
        """
        failed: dict[int, str] = {}
        start = time.perf_counter()
        with self._lock:
            while True:
                racing = self._compiled(executables, failed)
                if not racing:
                    raise ProfilerError(next(reversed(failed.values()), "there is no candidate"))
                slowest = max(executables[i]._slowest for i in racing)
                request = {
                    "call": "race",
                    "numbers": [executables[i]._number for i in racing],
                    "budget_seconds": max(budget_seconds - (time.perf_counter() - start), budget_seconds / 2),
                    "names": [names[i] for i in racing] if names else [],
                    **options,
                }
                process = self._running()
                process.candidate = -1
                try:
                    answer, payload = self._ask(
                        self._silence + _PATIENCE * slowest, progress=progress, **request
                    )
                except ProcessEndedError as cause:
                    if not cause.was_idle:
                        culprit = racing[max(process.candidate, 0)]
                        failed[culprit] = executables[culprit]._blame("ran", cause)
                    continue
                return _race_result(answer, payload, len(executables), racing, failed)

    @property
    def pid(self) -> int:
        """Process id of the child; it changes when the child is started anew."""
        return self._running().pid

    def restart(self) -> None:
        """End the child; the next request starts another one, in which nothing is compiled yet."""
        with self._lock:
            self._stop()

    def another(self) -> IsolatedProfiler | None:
        """A profiler of the same devices with a child of its own; ``None`` where none can be started."""
        try:
            return IsolatedProfiler(self._setup["plugins"], self._setup["device_properties"])
        except (NoProcessError, ProcessEndedError) as cause:
            _log.info("no further process can be started to measure in: %s", cause)
            return None

    def close(self) -> None:
        """End the child; nothing can be run any more."""
        with self._lock:
            self._closed = True
            self._stop()

    def _compiled(self, executables: Sequence[IsolatedExecutable], failed: dict[int, str]) -> list[int]:
        """Indices of those that the child holds, compiled where necessary; others go to ``failed``."""
        while True:
            process = self._running()
            for i, executable in enumerate(executables):
                if i not in failed:
                    try:
                        executable._compile()
                    except ProfilerError as cause:
                        failed[i] = str(cause)
            if self._process is process:
                return [i for i in range(len(executables)) if i not in failed]

    def _start(self) -> WorkerProcess:
        process = WorkerProcess()
        process.check()
        process.send({"call": "create", **self._setup}, self._silence)
        self._is_created = False
        return process

    def _running(self) -> WorkerProcess:
        """The child, a new one where the last one is gone."""
        if self._closed:
            raise ProfilerError("the profiler was closed")
        if self._process is None or not self._process.is_alive():
            self._dropped.clear()
            try:
                self._process = self._start()
            except (NoProcessError, ProcessEndedError) as cause:
                raise ProfilerError(f"no process can be started to measure in: {cause}") from cause
        return self._process

    def _ask(
        self, seconds: float, *, progress: Callable[..., None] | None = None, **request: Any
    ) -> tuple[dict[str, Any], bytes]:
        """The answer to one request; what interrupts it ends the child, which is in the middle of it.

        Raises:
            ProfilerError: What the child says of a failure.
            ProcessEndedError: It died or hung.
        """
        process = self._running()
        dropped, self._dropped = self._dropped, []
        try:
            if not self._is_created:
                _check(process.answer(self._silence)[0])
                self._is_created = True
            process.send({**request, "drop": dropped}, seconds)
            answer, payload = process.answer(seconds, progress)
        except BaseException as cause:
            self._stop()
            if isinstance(cause, ProcessEndedError) and cause.was_idle:
                self._idle_ends += 1
                cause.was_idle = self._idle_ends <= _MOST_IDLE_ENDS
            raise
        _check(answer)
        return answer, payload

    def _stop(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _forget(self, process: WorkerProcess | None, number: int) -> None:
        """The child may drop what it compiled; told with the next request."""
        if process is not None and process is self._process:
            self._dropped.append(number)


def _check(answer: Mapping[str, Any]) -> None:
    """Raise here what was raised there."""
    if "error" in answer:
        kind = ValueError if answer["kind"] == "ValueError" else ProfilerError
        raise kind(answer["error"] or answer["kind"])


def _race_result(
    answer: Mapping[str, Any], payload: bytes, count: int, racing: Sequence[int], failed: Mapping[int, str]
) -> IsolatedRaceResult:
    """The child's result, with those that were not in its race."""
    entries = [IsolatedRaceEntry(np.empty(0), f"failed: {failed.get(i, '')}", 0.0) for i in range(count)]
    position = 0
    for i, (size, dropped, dropped_seconds) in zip(racing, answer["entries"], strict=True):
        samples = np.frombuffer(payload[position : position + size], dtype=np.float64)
        entries[i] = IsolatedRaceEntry(frozen_array(samples, np.float64), dropped, dropped_seconds)
        position += size
    return IsolatedRaceResult(
        entries, racing[answer["best"]], answer["rounds"], answer["seconds"], answer["stopped"]
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
