"""What races run on: placements of one model, compiled once and run in turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.decision import Candidate

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable, RaceResult

__all__ = ["Workbench"]

_C = TypeVar("_C", bound=Candidate)
_RECENT = 5  # compilations; the longest of them is the estimate of the next one


class Workbench:
    """Compiles candidates and races them; what was compiled is kept for the next race.

    Args:
        session: The model on its devices.
        table: Says what the devices hold of it; ``None`` = whatever they are given.
        budget: The time that all may take.
        seed: Of the order in each round of a race; each race has its own.
        compile_seconds: What compiling the model took, before anything is compiled here.
    """

    def __init__(
        self,
        session: ProfilingSession,
        table: CostTable | None,
        budget: Budget,
        seed: int = 0,
        compile_seconds: float = 0.0,
    ) -> None:
        self.session = session
        self.table = table
        self.budget = budget
        self._seed = seed
        self._races = 0
        self._executables: dict[Hashable, Executable] = {}
        self._compile_seconds: dict[Hashable, float] = {}
        self._recent = deque([compile_seconds], maxlen=_RECENT)

    def is_compiled(self, candidate: Candidate) -> bool:
        """Whether it can be run at once."""
        plan = candidate.plan
        return plan.key in self._executables or (
            plan.is_default and self.session.has_compiled(plan.devices[0])
        )

    def compile_seconds(self, candidate: Candidate) -> float:
        """What compiling a candidate took, or would take."""
        return self._compile_seconds.get(candidate.plan.key, self.longest_compilation)

    @property
    def longest_compilation(self) -> float:
        """Of the last ones: an estimate of the next one."""
        return max(self._recent)

    def enter(
        self,
        candidates: Sequence[_C],
        allowed: Callable[[_C, list[_C]], bool],
        beside: Sequence[_C] = (),
    ) -> list[_C]:
        """Compile candidates for a race; those that fail are marked and left out.

        Args:
            candidates: The ones that matter most first.
            allowed: Whether there is time to compile one and to race it with those that entered before it.
            beside: Those that entered already, and are compiled.

        Returns:
            Those of ``candidates`` that are compiled now and compute what they should.
        """
        entered: list[_C] = []
        for candidate in candidates:
            rivals = [*beside, *entered]
            if not allowed(candidate, rivals) or not self._fit_together([*rivals, candidate]):
                continue
            try:
                self.executable(candidate)
            except ProfilingError as cause:
                candidate.dropped = f"cannot be run: {cause}"
            else:
                entered.append(candidate)
        return self._computing_right(entered)

    def _computing_right(self, candidates: Sequence[_C]) -> list[_C]:
        """Those of some compiled candidates whose outputs are not wrong; the others are marked."""
        outputs = self.session.outputs
        if outputs is None:
            return list(candidates)
        for candidate in candidates:
            way = candidate.plan.computes_like(self.session.makes)
            outputs.note(candidate.name, self.executable(candidate), way)
        outputs.mark(candidates)
        return [candidate for candidate in candidates if not candidate.is_wrong]

    def race(self, candidates: Sequence[Candidate], seconds: float, **options: Any) -> RaceResult:
        """Run candidates in turns.

        Args:
            candidates: Are compiled first where they are not.
            seconds: When to stop.
            **options: Further arguments of :meth:`ProfilingSession.race`.

        Raises:
            ProfilingError: None of them can be run.
        """
        self._races += 1
        return self.session.race(
            [self.executable(candidate) for candidate in candidates],
            seconds,
            seed=self._seed + self._races - 1,
            names=[candidate.name for candidate in candidates],
            **options,
        )

    def executable(self, candidate: Candidate) -> Executable:
        """The compiled candidate.

        Raises:
            ProfilingError: It cannot be compiled.
        """
        key = candidate.plan.key
        if key not in self._executables:
            before = self.budget.spent
            executable = candidate.plan.one_model.compile(self.session)
            if not candidate.plan.lane_count:
                candidate.subgraphs = executable.subgraphs
            # A device that the session had compiled took no time now, but does when all is compiled anew.
            seconds = max(executable.compile_seconds, self.budget.spent - before)
            self._compile_seconds[key] = seconds
            self._recent.append(seconds)
            self._executables[key] = executable
        return self._executables[key]

    def keep_only(self, candidates: Sequence[Candidate]) -> None:
        """Drop what was compiled for other candidates."""
        kept = {candidate.plan.key for candidate in candidates}
        self._executables = {key: value for key, value in self._executables.items() if key in kept}

    def forget(self) -> None:
        """Drop everything, so that it is compiled anew.

        Where a compiled model happens to be in memory makes it faster or slower by some percent for as long
        as it lives, which no number of runs shows.
        """
        self._executables.clear()
        self.session.forget()

    def _fit_together(self, candidates: Sequence[Candidate]) -> bool:
        """Whether devices can hold all of these at the same time, as a race needs it."""
        table = self.table
        if len(candidates) < 2 or table is None or np.isinf(table.memory_capacity).all():
            return True
        held = sum(held_bytes(table, candidate.assignment) for candidate in candidates)
        return bool((held <= table.memory_capacity).all())
