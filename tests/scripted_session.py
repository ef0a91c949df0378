"""A profiling session that is only played: everybody takes what a test says, with the same noise for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from candidates import result_of
from ov_autoplace.errors import ProfilingError
from ov_autoplace.plan.plan import Plan

__all__ = ["NOISE", "ScriptedSession"]

NOISE = np.random.default_rng(7).lognormal(sigma=0.1, size=60)


class ScriptedSession:
    """Compiles and races whatever it knows the name of.

    Args:
        compilations: What each takes over ``seconds``, by name: as it is compiled first, and each time that
            everything is compiled anew; the last of them stays.
        paused: After idle gaps; as back to back when ``None``.
        seconds: Of a factor of one.
        compile_seconds: Of each compilation.
        name_of: What a plan is called here.

    Attributes:
        races: Who was in each race.
        budgets: How long each might take.
        loads: Its other options.
        noise: Factors of all samples, ``float64[n]``.
        predicted: How many submodels HETERO makes of a mix, which is one.
    """

    outputs: Any = None  # nobody compares them
    makes: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        *compilations: Mapping[str, float],
        paused: Mapping[str, float] | None = None,
        seconds: float = 1e-4,
        compile_seconds: float = 0.01,
        name_of: Callable[[Plan], str] = attrgetter("name"),
    ) -> None:
        self.compilations, self.paused = list(compilations), paused
        self.seconds, self.compile_seconds, self.name_of = seconds, compile_seconds, name_of
        self.races: list[list[str]] = []
        self.budgets: list[float] = []
        self.loads: list[dict[str, Any]] = []
        self.noise = NOISE
        self.predicted = 1

    def compile_whole(self, plan: Plan) -> SimpleNamespace:
        name = self.name_of(plan)
        if name not in self.compilations[0]:
            raise ProfilingError(f"{name} cannot be compiled")
        return SimpleNamespace(name=name, compile_seconds=self.compile_seconds, subgraphs=1)

    def compile_split(self, plan: Plan) -> SimpleNamespace:
        return self.compile_whole(plan)

    def predicted_submodels(self, plan: Plan) -> int:
        return self.predicted

    def compile_lanes(self, plan: Plan) -> SimpleNamespace:
        return self.compile_whole(plan)

    def has_compiled(self, device: str) -> bool:
        return False

    def forget(self) -> None:
        if len(self.compilations) > 1:
            self.compilations.pop(0)

    def race(
        self, executables: Sequence[SimpleNamespace], budget: float, *, min_rounds: int, **options: Any
    ) -> SimpleNamespace:
        """Whoever takes twice as long as the fastest leaves as soon as that is allowed."""
        names = [executable.name for executable in executables]
        self.races.append(names)
        self.budgets.append(budget)
        self.loads.append(options)
        is_paused = "pause_seconds" in options and self.paused is not None
        factors = [(self.paused if is_paused else self.compilations[0])[name] for name in names]
        slow = [factor >= 2 * min(factors) for factor in factors]
        kept = [self.noise[:min_rounds] if is_slow else self.noise for is_slow in slow]
        return result_of([self.seconds * f * own for f, own in zip(factors, kept, strict=True)])
