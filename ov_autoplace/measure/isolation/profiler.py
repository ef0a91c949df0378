"""The profiler whose work is done in a child process, with the interface of ``_core.Profiler``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.measure.isolation.child import PATIENCE, Child
from ov_autoplace.measure.isolation.executable import IsolatedExecutable
from ov_autoplace.measure.isolation.process import NoProcessError, ProcessEndedError, WorkerProcess

__all__ = ["IsolatedOutcome", "IsolatedProfiler", "IsolatedRaceEntry", "IsolatedRaceResult"]

_log = logging.getLogger("ov_autoplace")

_MOST_OF_A_WORKLOAD = 4.0  # times the time that it is to run, with what is begun late and ends later


@dataclass(frozen=True, eq=False)
class IsolatedRaceEntry:
    """See ``_core.RaceEntry``."""

    samples: FloatArray
    dropped: str


@dataclass(frozen=True, eq=False)
class IsolatedRaceResult:
    """See ``_core.RaceResult``."""

    entries: list[IsolatedRaceEntry]
    best: int
    rounds: int
    seconds: float
    stopped: str


@dataclass(frozen=True, eq=False)
class IsolatedOutcome:
    """See ``_core.WorkloadOutcome``."""

    rates: list[float]
    latency_bytes: list[bytes]
    models: list[tuple[int, float]]
    spans: list[tuple[int, int, float, float, int]]
    seconds: float
    cpu_seconds: float


class IsolatedProfiler:
    """Compiles and times models in a child process, which is started anew when it dies or hangs.

    Args:
        child: The process.
    """

    def __init__(self, child: Child) -> None:
        self._child = child

    def compile(
        self,
        xml_path: str,
        device: str,
        properties: Mapping[str, str] | None = None,
        affinities: Mapping[str, str] | None = None,
        input_high: Mapping[str, int] | None = None,
        seed: int = 0,
        extensions: Sequence[str] = (),
        weights_path: str = "",
        calls: Sequence[tuple[Mapping[str, Sequence[int]], float, Sequence[str]]] = (),
    ) -> IsolatedExecutable:
        """See ``_core.Profiler.compile``. The files must stay as long as the executable is used.

        Raises:
            ProfilerError: The model cannot be compiled there, or the child dies or hangs.
        """
        executable = IsolatedExecutable(
            self._child,
            {
                "xml_path": xml_path,
                "device": device,
                "properties": dict(properties or {}),
                "affinities": None if affinities is None else dict(affinities),
                "input_high": dict(input_high or {}),
                "seed": seed,
                "extensions": list(extensions),
                "weights_path": weights_path,
                "calls": [(dict(shapes), times, list(growing)) for shapes, times, growing in calls],
            },
        )
        with self._child.lock:
            executable.ensure_compiled()
        return executable

    def save_op_by_op(
        self, xml_path: str, path: str, smallest: float, *, limit_seconds: float, **how: Any
    ) -> list[float]:
        """See ``_core.Profiler.save_op_by_op``.

        Raises:
            ProfilerError: It cannot be run so or not in time, or the child dies or hangs.
        """
        with self._child.lock:
            try:
                answer, _ = self._child.ask(
                    self._child.running(),
                    self._child.silence + limit_seconds,
                    call="save_op_by_op",
                    xml_path=xml_path,
                    path=path,
                    smallest=smallest,
                    limit_seconds=limit_seconds,
                    **how,
                )
            except ProcessEndedError as cause:
                raise _core.ProfilerError(f"the process that ran it {cause}") from cause
            return list(answer["differences"])

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

        The others are then compiled again and raced anew, within what is left of the budget, but for at least
        half of it, and half as long after each further failure: altogether for at most twice the budget.

        Raises:
            ProfilerError: None of them can be run.
        """

        def request(racing: Sequence[int]) -> dict[str, Any]:
            return {"call": "race", "numbers": [executables[i].number for i in racing], **options}

        return self._race([[e] for e in executables], request, budget_seconds, progress, names)

    def race_loads(
        self,
        loads: Sequence[tuple[Sequence[IsolatedExecutable], int, bool]],
        budget_seconds: float,
        *,
        progress: Callable[[int, int, float], None] | None = None,
        names: Sequence[str] = (),
        **options: Any,
    ) -> IsolatedRaceResult:
        """See ``_core.race_loads``; failures are as in :meth:`race`."""

        def request(racing: Sequence[int]) -> dict[str, Any]:
            asked = [([member.number for member in loads[i][0]], loads[i][1], loads[i][2]) for i in racing]
            return {"call": "race_loads", "loads": asked, **options}

        return self._race([members for members, _, _ in loads], request, budget_seconds, progress, names)

    def run_workload(
        self, models: Sequence[Sequence[IsolatedExecutable]], *, seconds: float, **how: Any
    ) -> IsolatedOutcome:
        """See ``_core.run_workload``.

        Raises:
            ProfilerError: It fails, or the child dies or hangs: none of them is tried again then.
        """
        failed: dict[int, str] = {}
        with self._child.lock:
            while True:
                process, _ = self._compiled(models, failed)
                if failed:
                    raise _core.ProfilerError(next(iter(failed.values())))
                members = [member for copies in models for member in copies]
                slowest = max((member.slowest for member in members), default=0.0)
                numbers = [[member.number for member in copies] for copies in models]
                silence = self._child.silence + _MOST_OF_A_WORKLOAD * seconds + PATIENCE * slowest
                request = {"call": "run_workload", "models": numbers, "duration": seconds, **how}
                try:
                    answer, payload = self._child.ask(process, silence, **request)
                except ProcessEndedError as cause:
                    if cause.was_idle:
                        continue
                    blamed = [member.blame("ran", cause) for member in members]
                    raise _core.ProfilerError(blamed[0]) from None
                return _outcome(answer, payload)

    def _race(
        self,
        candidates: Sequence[Sequence[IsolatedExecutable]],
        request_of: Callable[[Sequence[int]], dict[str, Any]],
        budget_seconds: float,
        progress: Callable[[int, int, float], None] | None,
        names: Sequence[str],
    ) -> IsolatedRaceResult:
        """A race of candidates, each of which is made of some executables.

        Args:
            candidates: The executables of each.
            request_of: What the child is asked for with those that are left, by their indices.
            budget_seconds: When to stop.
            progress: See :meth:`race`.
            names: Of the candidates, or none.
        """
        failed: dict[int, str] = {}
        start, failures = time.perf_counter(), 0
        with self._child.lock:
            while True:
                process, racing = self._compiled(candidates, failed)
                if not racing:
                    raise _core.ProfilerError(next(reversed(failed.values()), "there is no candidate"))
                slowest = max(member.slowest for i in racing for member in candidates[i])
                left = budget_seconds - (time.perf_counter() - start)
                request = {
                    **request_of(racing),
                    "budget_seconds": max(left, budget_seconds / 2 ** max(failures, 1)),
                    "names": [names[i] for i in racing] if names else [],
                }
                process.candidate = -1
                try:
                    answer, payload = self._child.ask(
                        process, self._child.silence + PATIENCE * slowest, progress=progress, **request
                    )
                except ProcessEndedError as cause:
                    failures += 1
                    if not cause.was_idle:
                        culprit = racing[max(process.candidate, 0)]
                        for member in candidates[culprit]:
                            failed[culprit] = member.blame("ran", cause)
                    continue
                return _race_result(answer, payload, len(candidates), racing, failed)

    def resident_bytes(self) -> int:
        """Memory of the child; see ``_core.Profiler.resident_bytes``.

        Raises:
            ProfilerError: The child dies or hangs.
        """
        with self._child.lock:
            try:
                answer, _ = self._child.ask(self._child.running(), self._child.silence, call="resident_bytes")
            except ProcessEndedError as cause:
                raise _core.ProfilerError(f"the process that measures {cause}") from cause
            return int(answer["bytes"])

    @property
    def pid(self) -> int:
        """Process id of the child; it changes when the child is started anew."""
        return self._child.running().pid

    def restart(self) -> None:
        """End the child; the next request starts another one, in which nothing is compiled yet."""
        with self._child.lock:
            self._child.stop()

    def another(self) -> IsolatedProfiler | None:
        """A profiler of the same devices with a child of its own; ``None`` where none can be started."""
        try:
            return IsolatedProfiler(self._child.another())
        except (NoProcessError, ProcessEndedError) as cause:
            _log.info("no further process can be started to measure in: %s", cause)
            return None

    def close(self) -> None:
        """End the child; nothing can be run any more."""
        with self._child.lock:
            self._child.close()

    def _compiled(
        self, candidates: Sequence[Sequence[IsolatedExecutable]], failed: dict[int, str]
    ) -> tuple[WorkerProcess, list[int]]:
        """The process that holds them, compiled where necessary, and which; others go to ``failed``."""
        while True:
            process = self._child.running()
            for i, members in enumerate(candidates):
                if i not in failed:
                    try:
                        for executable in members:
                            executable.ensure_compiled()
                    except _core.ProfilerError as cause:
                        failed[i] = str(cause)
            if self._child.is_still(process):
                return process, [i for i in range(len(candidates)) if i not in failed]


def _race_result(
    answer: Mapping[str, Any], payload: bytes, count: int, racing: Sequence[int], failed: Mapping[int, str]
) -> IsolatedRaceResult:
    """The child's result, with those that were not in its race."""
    entries = [IsolatedRaceEntry(np.empty(0), f"failed: {failed.get(i, '')}") for i in range(count)]
    position = 0
    for i, (size, dropped) in zip(racing, answer["entries"], strict=True):
        samples = np.frombuffer(payload[position : position + size], dtype=np.float64)
        entries[i] = IsolatedRaceEntry(frozen_array(samples, np.float64), dropped)
        position += size
    return IsolatedRaceResult(
        entries, racing[answer["best"]], answer["rounds"], answer["seconds"], answer["stopped"]
    )


def _outcome(answer: Mapping[str, Any], payload: bytes) -> IsolatedOutcome:
    parts, position = [], 0
    for size in answer["sizes"]:
        parts.append(payload[position : position + size])
        position += size
    return IsolatedOutcome(
        answer["rates"], parts, answer["models"], answer["spans"], answer["seconds"], answer["cpu_seconds"]
    )
