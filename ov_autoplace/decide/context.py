"""What the stages of one decision share, and what a stage is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.costs import CostSource, Measured
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.proposals import ProposalSource
from ov_autoplace.decide.race import Race
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.problem.problem import Problem

__all__ = ["Context", "Stage"]


@dataclass(eq=False)
class Context:
    """One decision on its way from a model to an answer.

    Attributes:
        machine: The devices, and what the user asked for.
        prepared: The model.
        budget: Wall-clock time of all stages; grows by what they need unless the user gave it.
        source: Who proposes placements.
        phase: Times a phase, and tells the caller that it began.
        costs: Where costs come from.
        as_given: What outputs of devices are called that were wrong before the model was mended, by device.
        is_final: Whether it stands: nothing else can win, or there is no time left to find out.
        rate_bound: Requests per second that no mixture of placements exceeds, where that is known.
    """

    machine: Machine
    prepared: PreparedModel
    budget: Budget
    source: ProposalSource
    phase: Callable[[str], AbstractContextManager[None]]
    costs: CostSource = field(init=False)
    as_given: dict[str, str] = field(default_factory=dict)
    is_final: bool = False
    rate_bound: float | None = None
    _bench: Workbench | None = None
    _known: Measured | None = None
    _problem: Problem | None = None
    _verdict: Verdict | None = None

    def __post_init__(self) -> None:
        """Take the costs from where the user says."""
        self.costs = CostSource(self.machine, self.budget)

    @property
    def options(self) -> PlacerOptions:
        """What the user asked for."""
        return self.machine.options

    @property
    def compile_seconds(self) -> float:
        """What compiling the model for one device took, on average."""
        return self.known.counted.compile_seconds / len(self.machine.devices)

    @property
    def verdict(self) -> Verdict:
        """The answer so far."""
        assert self._verdict is not None
        return self._verdict

    @verdict.setter
    def verdict(self, verdict: Verdict | None) -> None:
        self._verdict = verdict

    @property
    def has_verdict(self) -> bool:
        """Whether there is an answer so far."""
        return self._verdict is not None

    @property
    def race(self) -> Race:
        """Races on the bench."""
        return Race(self.bench, self.options)

    def open(self, session: ProfilingSession) -> None:
        """Go on with a session, in which nothing is compiled yet."""
        self._bench = Workbench(session, None, self.budget, self.options.seed)

    @property
    def bench(self) -> Workbench:
        """Compiles and races candidates, where something is measured."""
        assert self._bench is not None
        return self._bench

    @property
    def session(self) -> ProfilingSession:
        """Where they are compiled and run."""
        return self.bench.session

    @property
    def known(self) -> Measured:
        """What the devices took for the nodes of the model, once that was counted."""
        assert self._known is not None
        return self._known

    @known.setter
    def known(self, known: Measured) -> None:
        self._known = known

    @property
    def problem(self) -> Problem:
        """The costs of the model as far as they are known, and constraints."""
        assert self._problem is not None
        return self._problem

    @problem.setter
    def problem(self, problem: Problem) -> None:
        self._problem = problem
        if self._bench is not None:
            self._bench.table = problem.table

    @property
    def table(self) -> CostTable | None:
        """The costs, where they are known."""
        return None if self._problem is None else self._problem.table

    def allow(self, seconds: float) -> None:
        """Let the decision take longer by this, unless the user gave the budget."""
        if self.options.time_budget_ms is None:
            self.budget.seconds += seconds


class Stage(ABC):
    """One kind of answer: who could be it, and how they have to win."""

    def estimate(self, context: Context) -> Verdict | None:
        """The answer so far where nothing may be measured; ``None`` where there is none yet."""
        return context.verdict if context.has_verdict else None

    def reserve(self, context: Context) -> None:  # noqa: B027 - most keep nothing
        """Keep some of a budget that does not grow, for when it is this stage's turn."""

    @abstractmethod
    def propose(self, context: Context) -> list[Candidate]:
        """Who could beat the answer so far; measures what that needs."""

    def decide(self, context: Context, candidates: Sequence[Candidate]) -> Verdict | None:
        """Race candidates with the answer so far.

        Args:
            context: The decision.
            candidates: What :meth:`propose` returned.

        Returns:
            The answer so far, ``None`` where there is none yet.
        """
        return context.race.challenge(context.verdict, candidates) if candidates else context.verdict
