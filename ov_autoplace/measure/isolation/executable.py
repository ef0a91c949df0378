"""A model compiled in the child process, with the interface of ``_core.Executable``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.measure.isolation.child import PATIENCE, Child
from ov_autoplace.measure.isolation.process import ProcessEndedError, WorkerProcess

__all__ = ["IsolatedExecutable", "IsolatedNodeTime", "was_lost"]

# The slowest that weights are compiled on any device, in bytes per second.
_COMPILE_RATE = 10e6
_LOST = "the process that"


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


class IsolatedExecutable:
    """See ``_core.Executable``.

    When the child has ended since, the next use compiles the model again. An executable during whose work the
    child died or hung is never tried again.

    Attributes:
        number: What the child knows it by.
        slowest: Seconds of the slowest inference so far.
        subgraphs: Number of submodels that HETERO made, else 1.
        compile_seconds: How long the last compilation took.
        execution_devices: As the device tells them.
        optimal_requests: How many requests in flight the device wants for its best rate.
    """

    def __init__(self, child: Child, recipe: Mapping[str, Any]) -> None:
        self._child = child
        self._recipe = recipe
        self._process: WorkerProcess | None = None
        self._failure = ""
        self.number = -1
        self.slowest = 0.0
        self.subgraphs = 1
        self.compile_seconds = 0.0
        self.execution_devices: list[str] = []
        self.optimal_requests = 1

    def __del__(self) -> None:
        self._child.forget(self._process, self.number)

    def run(self, runs: int, warmup: int = 1, asynchronous: bool = False, inferences: int = 1) -> FloatArray:
        """Seconds per inference of each run, ``float64[runs]``; see ``_core.Executable.run``.

        Raises:
            ProfilerError: An inference fails, or the child dies or hangs.
        """
        how = {"runs": runs, "warmup": warmup, "asynchronous": asynchronous, "inferences": inferences}
        silence = self._child.silence
        seconds = silence + (warmup + runs * inferences) * (PATIENCE * self.slowest or silence)
        _, payload = self._use(seconds, call="run", **how)
        samples = frozen_array(np.frombuffer(payload, dtype=np.float64), np.float64)
        self.slowest = max(self.slowest, float(samples.max(initial=0.0)))
        return samples

    def save_outputs(self, path: str, anew: bool = False) -> None:
        """Keep what it computes; see ``_core.Executable.save_outputs``.

        Raises:
            ProfilerError: It fails, or the child dies or hangs.
        """
        self._use(self._child.silence + PATIENCE * self.slowest, call="save_outputs", path=path, anew=anew)

    def node_times(self) -> list[IsolatedNodeTime]:
        """What each node took; see ``_core.Executable.node_times``.

        Raises:
            ProfilerError: The device cannot tell, or the child dies or hangs.
        """
        answer, _ = self._use(self._child.silence, call="node_times")
        return [IsolatedNodeTime(*node) for node in answer["nodes"]]

    def lane_profile(self) -> str:
        """When the submodels of the last inference ran, as JSON; see ``_core.Executable.lane_profile``.

        Raises:
            ProfilerError: The model does not run on lanes, or the child dies or hangs.
        """
        answer, _ = self._use(self._child.silence, call="lane_profile")
        return str(answer["profile"])

    def ensure_compiled(self) -> WorkerProcess:
        """Compile the model, unless the present process holds it.

        Returns:
            The process that holds it.

        Raises:
            ProfilerError: It cannot be compiled, or the child died or hung with it, now or before.
        """
        child = self._child
        while not self._failure and self._process is not (process := child.running()):
            self.number = child.next_number()
            size = sum(_size(self._recipe[name]) for name in ("xml_path", "weights_path"))
            seconds = child.silence + size / _COMPILE_RATE + PATIENCE * child.longest_compilation
            try:
                answer, _ = child.ask(process, seconds, call="compile", number=self.number, **self._recipe)
            except ProcessEndedError as cause:
                if not cause.was_idle:
                    self.blame("compiled", cause)
                continue
            self._process = process
            self.subgraphs = answer["subgraphs"]
            self.compile_seconds = answer["compile_seconds"]
            self.execution_devices = answer["execution_devices"]
            self.optimal_requests = answer["optimal_requests"]
            child.longest_compilation = max(child.longest_compilation, self.compile_seconds)
        if self._failure:
            raise _core.ProfilerError(self._failure)
        return process

    def blame(self, did: str, cause: ProcessEndedError) -> str:
        """Never run this again; the sentence that says why."""
        self._failure = f"{_LOST} {did} it on {self._recipe['device']} {cause}"
        return self._failure

    def _use(self, seconds: float, **request: Any) -> tuple[dict[str, Any], bytes]:
        with self._child.lock:
            while True:
                process = self.ensure_compiled()
                try:
                    return self._child.ask(process, seconds, number=self.number, **request)
                except ProcessEndedError as cause:
                    if not cause.was_idle:
                        raise _core.ProfilerError(self.blame("ran", cause)) from None


def was_lost(cause: BaseException) -> bool:
    """Whether a failure is that the child died or hung with the model."""
    return _LOST in str(cause)


def _size(xml_path: str) -> int:
    """Bytes of a model's weights."""
    try:
        return Path(xml_path).with_suffix(".bin").stat().st_size if xml_path else 0
    except OSError:
        return 0
