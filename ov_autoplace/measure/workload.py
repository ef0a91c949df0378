"""Several compiled models at once, as an application calls them: what is run, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.measure.isolation.interface import Executable, Profiler
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.model_file import reported_failure

__all__ = ["Callers", "Outcome", "Span", "Workload"]


@dataclass(frozen=True, eq=False)
class Callers:
    """Threads that run the requests of one source.

    Attributes:
        model: Index of the model at which they begin.
        count: How many threads.
        arrivals: When requests should begin, in seconds, ``float64[n]``; ``None`` = each as soon as the
            caller's last one has ended.
    """

    model: int
    count: int = 1
    arrivals: FloatArray | None = None


@dataclass(frozen=True)
class Span:
    """One inference: which model, in which caller, from when to when in seconds, and on which processor.

    That is where the caller was at its end; a model on several threads has others besides.
    """

    model: int
    caller: int
    begin: float
    end: float
    processor: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What S sources and M models did.

    Attributes:
        rates: Finished requests per second of each source, ``float64[S]``.
        latencies: Seconds of each request from when it should have begun, by source; infinite for one of an
            open source that could not begin in time.
        inferences: Of each model, ``float64[M]``.
        busy_seconds: Within them, by all callers, ``float64[M]``.
        cores: How many were busy on average, by the processor time of all threads.
        spans: Each inference, where they were asked for.
    """

    rates: FloatArray
    latencies: tuple[FloatArray, ...]
    inferences: FloatArray
    busy_seconds: FloatArray
    cores: float
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, eq=False)
class Workload:
    """Compiled models with the links between them.

    Attributes:
        profiler: Has compiled them.
        models: The copies of each model, M.
        links: From which model to which, and how often.
        in_turn: One thread runs everything.
    """

    profiler: Profiler
    models: tuple[tuple[Executable, ...], ...]
    links: tuple[tuple[int, int, float], ...] = ()
    in_turn: bool = field(default=False)

    def run(self, sources: Sequence[Callers], seconds: float, *, spans: bool = False) -> Outcome:
        """Run everything at once for about so long.

        Raises:
            ProfilingError: A model fails.
        """
        given: list[tuple[int, int, bool, list[float]]] = [
            (s.model, s.count, s.arrivals is not None, [] if s.arrivals is None else s.arrivals.tolist())
            for s in sources
        ]
        profiler = self.profiler
        run: Any = profiler.run_workload if isinstance(profiler, IsolatedProfiler) else _core.run_workload
        models, links = list(map(list, self.models)), list(self.links)
        with reported_failure("the models cannot be run at once"):
            found = run(
                models, sources=given, links=links, seconds=seconds, in_turn=self.in_turn, spans=spans
            )
        counts = np.array(found.models, dtype=np.float64).reshape(-1, 2)
        return Outcome(
            frozen_array(found.rates, np.float64),
            tuple(frozen_array(np.frombuffer(part), np.float64) for part in found.latency_bytes),
            frozen_array(counts[:, 0], np.float64),
            frozen_array(counts[:, 1], np.float64),
            found.cpu_seconds / max(found.seconds, 1e-12),
            tuple(Span(*span) for span in found.spans),
        )
