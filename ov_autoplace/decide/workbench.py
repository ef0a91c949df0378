"""What races run on: candidates for one model, compiled once and timed in turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.releases import installed
from ov_autoplace._base.statistics import CONVINCING_ROUNDS, Interval
from ov_autoplace._base.text import counted
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.verdict import paired, were_disturbed
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.isolation.interface import Compiled, members_of
from ov_autoplace.measure.loads import Timing, run_in_turns
from ov_autoplace.measure.model_file import failing_on
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.hetero_rules import are_rules_known
from ov_autoplace.plan.plan import SplitPlan

__all__ = ["Raced", "Workbench"]

_C = TypeVar("_C", bound=Candidate)
_RECENT = 5  # compilations; the longest of them is the estimate of the next one


@dataclass(frozen=True, eq=False)
class Raced:
    """What one race measured.

    Attributes:
        load: Under which it was.
        timings: Of everybody, in the same rounds.
        rounds: How many.
        seconds: Of all of it.
        best: The fastest that stayed.
    """

    load: Load
    timings: Mapping[Candidate, Timing]
    rounds: int
    seconds: float
    best: Candidate

    def samples(self, candidate: Candidate) -> FloatArray:
        """What one took, ``float64[n]`` in seconds; empty for one that was not in it."""
        return self.timings[candidate].samples if candidate in self.timings else np.empty(0)

    def ratio(self, one: Candidate, other: Candidate) -> Interval | None:
        """Of two in the rounds that both ran; ``None`` where those are too few to prove anything."""
        return paired(self.samples(one), self.samples(other))

    @property
    def was_disturbed(self) -> bool:
        """Whether other work on the machine made some of it long."""
        return were_disturbed(timing.samples for timing in self.timings.values())

    def record(self) -> None:
        """Write into the candidates what it measured."""
        for candidate, timing in self.timings.items():
            candidate.remember(self.load, timing.samples)
            candidate.dropped = timing.dropped
            if timing.latencies:
                candidate.tail_seconds = timing.tail_seconds


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
        self._executables: dict[Candidate, Compiled] = {}
        self._compile_seconds: dict[Candidate, float] = {}
        self._recent = deque([compile_seconds], maxlen=_RECENT)

    def is_compiled(self, candidate: Candidate) -> bool:
        """Whether it can be run at once."""
        plan = candidate.plan
        return candidate in self._executables or (
            plan.is_default and not plan.serves_many and self.session.has_compiled(plan.devices[0])
        )

    def compile_seconds(self, candidate: Candidate) -> float:
        """What compiling a candidate took, or would take."""
        return self._compile_seconds.get(candidate, self.longest_compilation)

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
            members = members_of(self.executable(candidate))
            distinct = dict(zip(candidate.plan.models, members, strict=True))  # of copies one is enough
            for name, (model, executable) in zip(candidate.parts, distinct.items(), strict=True):
                outputs.note(name, executable, model.computes_like(self.session.makes))
        outputs.mark(candidates)
        return [candidate for candidate in candidates if not candidate.is_wrong]

    def race(self, candidates: Sequence[_C], load: Load, seconds: float, **options: Any) -> Raced:
        """Run candidates in turns; they do not remember it unless they are told to.

        Args:
            candidates: Are compiled first where they are not.
            load: How they are called.
            seconds: When to stop.
            **options: Further arguments of :func:`~ov_autoplace.measure.loads.run_in_turns`.

        Raises:
            ProfilingError: None of them can be run.
        """
        self._races += 1
        options.setdefault("min_rounds", CONVINCING_ROUNDS)
        found = run_in_turns(
            self.session,
            [self.executable(candidate) for candidate in candidates],
            load,
            seconds,
            divided=any(candidate.plan.is_divided for candidate in candidates),
            seed=self._seed + self._races - 1,
            names=[candidate.name for candidate in candidates],
            **options,
        )
        timings: dict[Candidate, Timing] = dict(zip(candidates, found.timings, strict=True))
        return Raced(load, timings, found.rounds, found.seconds, candidates[found.best])

    def executable(self, candidate: Candidate) -> Compiled:
        """The compiled candidate.

        Raises:
            ProfilingError: It cannot be compiled, or HETERO cuts it otherwise than predicted.
        """
        if candidate not in self._executables:
            before = self.budget.spent
            executable = candidate.plan.compile(self.session)
            if not are_rules_known():
                self._check_submodels(candidate, executable)
            if not candidate.plan.lane_count:
                candidate.subgraphs = executable.subgraphs
            # A device that the session had compiled took no time now, but does when all is compiled anew.
            seconds = max(executable.compile_seconds, self.budget.spent - before)
            self._compile_seconds[candidate] = seconds
            self._recent.append(seconds)
            self._executables[candidate] = executable
        return self._executables[candidate]

    def _check_submodels(self, candidate: Candidate, executable: Compiled) -> None:
        """Refuse what HETERO cuts as nobody predicted: whether that computes the same is not known either."""
        for model, compiled in zip(candidate.plan.models, members_of(executable), strict=True):
            if not isinstance(model, SplitPlan):
                continue
            predicted = self.session.predicted_submodels(model)
            if compiled.subgraphs != predicted:
                raise ProfilingError(
                    f"OpenVINO {installed()}, whose rules of cutting models are not known, makes "
                    f"{counted(compiled.subgraphs, 'submodel')} of it instead of {predicted}"
                )

    def shortest_seconds(self, candidate: Candidate, runs: int) -> float:
        """The shortest of so many inferences, which tells how long they are, and compares nothing.

        Raises:
            ProfilingError: It cannot be run.
        """
        compiled = self.executable(candidate)
        model, *_ = members_of(compiled)
        with failing_on(candidate.name):
            return float(np.min(model.run(runs, warmup=int(runs > 1))))

    def note_memory(self, candidate: Candidate) -> None:
        """Compile a candidate, run it once, and note what memory that takes of the process that does it.

        Whoever cannot be run is found out by those who time it.
        """
        profiler = self.session.profiler
        try:
            before = profiler.resident_bytes()
            for model in members_of(self.executable(candidate)):
                model.run(1, warmup=0)
            after = profiler.resident_bytes()
        except (_core.ProfilerError, ProfilingError):
            return
        if before and after:
            candidate.memory_bytes = max(0, after - before)

    def keep_only(self, candidates: Sequence[Candidate]) -> None:
        """Drop what was compiled for other candidates."""
        self._executables = {key: value for key, value in self._executables.items() if key in candidates}

    def forget(self) -> None:
        """Drop everything, so that it is compiled anew.

        Where a compiled model happens to be in memory makes it faster or slower by some percent for as long
        as it lives, which no number of runs shows.
        """
        self._executables.clear()
        self.session.forget()

    @property
    def is_short_of_memory(self) -> bool:
        """Whether devices may not hold everything at once."""
        return self.table is not None and bool(np.isfinite(self.table.memory_capacity).any())

    def _fit_together(self, candidates: Sequence[Candidate]) -> bool:
        """Whether devices can hold all of these at the same time, as a race needs it."""
        table, known = self.table, [c for c in candidates if not c.plan.serves_many]
        if table is None or len(known) < 2 or not self.is_short_of_memory:
            return True
        held = sum(held_bytes(table, candidate.assignment) for candidate in known)
        return bool((held <= table.memory_capacity).all())
