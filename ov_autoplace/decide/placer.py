"""The algorithm: from a model and devices to a placement that is never knowingly slower than one device.

1. Extract the graph, coarsen it, mask what a device cannot run and what the user pinned. The only device is
   the answer at once, on all of its threads or on fewer, where estimates leave nothing to measure.
2. Make the cost table: analytic (ZERO_SHOT) or profiled (PROFILE, TUNE). Where a bound proves that no mix
   can be faster than the best device by what counts, that device is the answer and nothing more is measured.
3. Propose candidates: every single device, default HETERO and the solvers' answers; simulate them. In
   ZERO_SHOT, where costs are estimates, a mix has to be predicted faster by more than they are wrong.
4. PROFILE and TUNE race the best few, and always the best single device, on the devices themselves;
   TUNE corrects the table from what it measured, proposes again, and goes on until its budget ends.
5. Take the winner if it beats the best single device by more than the noise, else that device.
6. Where fewer of a CPU's threads could be faster than that, race them with it, under the same rule.
7. Where lanes or devices that work at once could be faster than that, race the best schedules with it, back
   to back and after idle gaps.

All of it keeps within one budget of wall-clock time. What the budget has no time for is left out, the least
useful first: probes of what crossings cost in this model, repeated compilations, the race, the profile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace.decide.context import Context, Stage
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.outlook import settled
from ov_autoplace.decide.pools import without_hint
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.decide.stages.lanes import Lanes
from ov_autoplace.decide.stages.rates import Rates
from ov_autoplace.decide.stages.singles import Singles
from ov_autoplace.decide.stages.splits import Splits
from ov_autoplace.decide.stages.widths import Widths
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import PreparedModel, prepare
from ov_autoplace.graph.shapes import named_shapes
from ov_autoplace.measure.model_file import UnreadableModelError
from ov_autoplace.measure.outputs import OutputCheck
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate, Decision
from ov_autoplace.plan.findings import Finding, Kind, sentence
from ov_autoplace.plan.fitting import FittedPlacement, fit_prepared
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import WholePlan

__all__ = ["STAGES", "Placer"]

_log = logging.getLogger("ov_autoplace")
_PHASES = (
    ("extract", "prepare", "compile", "profile", "transfers", "solve", "measure"),
    ("extract", "estimate", "solve"),
)


STAGES: Mapping[str, tuple[type[Stage], ...]] = {
    "one request at a time": (Singles, Splits, Widths, Lanes),
    "many requests": (Rates,),
}
"""Which stages a decision has, in this order, by what is asked for."""


class Placer:
    """Places models on a machine.

    Args:
        machine: The devices, and what the user asked for.
        left_out: Why a device takes no part, by device.
        budget: Wall-clock time; as the options say when ``None``.

    Raises:
        OptionError: Options that are about one request, where many are asked for.
    """

    def __init__(
        self, machine: Machine, left_out: Mapping[str, str] | None = None, budget: Budget | None = None
    ) -> None:
        self._serves_many = machine.wants_rate
        if self._serves_many:
            machine.check_rate()
        self._asked = machine
        self._machine = without_hint(machine) if self._serves_many else machine
        self._options = machine.options
        self._left_out = dict(left_out or {})
        self._budget = budget or Budget(machine.options.budget_seconds)
        self._seconds: dict[str, float] = {}
        self._outputs: OutputCheck | None = None

    def place(self, model: ov.Model) -> Placement:
        """See :func:`place`."""
        return self.place_fitted(model)[0]

    def place_fitted(self, model: ov.Model) -> tuple[Placement, FittedPlacement | None]:
        """:meth:`place`, with what :func:`~ov_autoplace.plan.fitting.fit` finds, where that is known."""
        self._seconds = {}
        machine = self._machine
        with self._phase("extract"):
            prepared = prepare(model, self._options.shapes)
            for call in self._options.calls:
                named_shapes(prepared.model, call)
        source = ProposalSource(self._options.solvers, self._options.seed)
        context = Context(machine, prepared, self._budget, source, self._phase)
        stages = [
            stage() for stage in STAGES["many requests" if self._serves_many else "one request at a time"]
        ]
        if self._is_estimated:
            return self._estimated(context, stages)
        is_open = self._serves_many or bool(self._left_out)
        if not is_open and (verdict := settled(machine, prepared.model)) is not None:
            return self._only(context, verdict), None
        try:
            with self._phase("prepare"):
                session = machine.open(prepared, self._budget)
                self._outputs = session.outputs
        except UnreadableModelError as cause:
            placer = Placer(self._asked.estimating(cause), self._left_out, self._budget)
            return placer.place_fitted(model)
        with session:
            try:
                context.open(self._form(session))
                self._run(context, stages)
                context.verdict = self._with_outputs(context)
            except ProfilingError as cause:
                if cause.device is None or len(machine.devices) == 1:
                    if self._serves_many:
                        raise
                    return self._single(prepared, session, cause), None
                failure = {cause.device: cause}
            else:
                return self._answer(context)
        # The same request on the other devices, in the time that is left.
        left_out = self._left_out | {device: str(cause) for device, cause in failure.items()}
        return Placer(self._asked.without(failure), left_out, self._budget).place_fitted(model)

    @property
    def _is_estimated(self) -> bool:
        """Whether nothing is measured."""
        no_time = self._serves_many and self._options.time_budget_ms == 0 and len(self._machine.devices) > 1
        return self._options.mode == "ZERO_SHOT" or no_time

    def _estimated(
        self, context: Context, stages: Sequence[Stage]
    ) -> tuple[Placement, FittedPlacement | None]:
        """The answer by estimates of all stages."""
        with self._phase("estimate"):
            table = context.costs.estimate(context.prepared)
        with self._phase("solve"):
            context.problem = self._machine.problem(table)
            for stage in stages:
                context.verdict = stage.estimate(context)
        return self._answer(context)

    def _form(self, session: ProfilingSession) -> ProfilingSession:
        """The model to run: where many requests are served, as AUTOPLACE compiles it for that."""
        return (session.mended() or session) if self._serves_many else session

    def _run(self, context: Context, stages: Sequence[Stage]) -> None:
        """One stage after the other: each proposes candidates, and races them with the answer so far."""
        first, *later = stages
        context.verdict = first.decide(context, first.propose(context))
        if context.is_final:
            return
        with self._phase("solve"):
            for stage in later if context.has_verdict else ():
                stage.reserve(context)
        for stage in later:
            context.verdict = stage.decide(context, stage.propose(context))
            context.bench.keep_only([context.verdict.winner])

    def _only(self, context: Context, verdict: Verdict) -> Placement:
        """What estimates settled, once it is known that the device holds the model as the user wants."""
        with self._phase("solve"):
            table = context.costs.estimate(context.prepared)
            propose(self._machine.problem(table), ProposalSource(solvers=()))
        return self._whole(context.prepared, verdict.winner, verdict.findings)

    def _single(self, prepared: PreparedModel, session: ProfilingSession, cause: ProfilingError) -> Placement:
        """The fastest device that can be measured, else the first one that compiles, when all else fails.

        Args:
            prepared: The model.
            session: Knows which devices support all ops, and which failed already.
            cause: Why nothing better can be said.

        Raises:
            ProfilingError: None of them compiles it.
        """
        able = [device for device in session.devices if session.feasibility.supports_all(device)]
        compiled = [device for device in able if not session.compilation_failure(device)]
        if not compiled:
            raise cause
        candidates = tuple(session.run_alone(device) for device in compiled)
        chosen = min(candidates, key=lambda c: c.measured_seconds or np.inf)
        ran = chosen.measured_seconds is not None
        kind = Kind.FASTEST_THAT_COMPILES if ran else Kind.FIRST_THAT_COMPILES
        finding = Finding.of(kind, chosen.name, detail=cause)
        placement = self._whole(prepared, chosen, [finding], candidates)
        _log.warning("%s", placement.decision)
        return placement

    def _whole(
        self,
        prepared: PreparedModel,
        chosen: Candidate,
        findings: Sequence[Finding],
        candidates: tuple[Candidate, ...] = (),
    ) -> Placement:
        """Everything on one device, without costs."""
        decision = Decision(
            chosen=chosen.name,
            findings=(*findings, *self._machine.remarks(self._left_out)),
            mode=self._options.mode,
            candidates=candidates or (chosen,),
            seconds=dict(self._seconds),
            left_out=self._left_out,
            quota=self._machine.quota,
        )
        placement = Placement.on_device(prepared.given, *chosen.plan.devices)
        return replace(placement, solver=chosen.name, plan=chosen.plan, decision=decision)

    def _with_outputs(self, context: Context) -> Verdict:
        """The verdict with what is known of everybody's outputs."""
        verdict, outputs = context.verdict, self._outputs
        if outputs is None:
            return verdict
        given = [Candidate(name, WholePlan(device)) for device, name in context.as_given.items()]
        candidates = [*verdict.candidates, *given]
        if not self._serves_many:
            outputs.mark(candidates)
        said = outputs.findings(is_chosen_wrong=verdict.winner.is_wrong)
        if given:
            said = (*said, Finding(Kind.MENDED))
        if any(candidate.is_wrong for candidate in candidates):
            _log.warning("%s", sentence(said))
        return replace(verdict.noting(*said), candidates=candidates)

    def _answer(self, context: Context) -> tuple[Placement, FittedPlacement | None]:
        table, prepared, verdict = context.table, context.prepared, context.verdict
        winner = verdict.winner
        decision = Decision(
            chosen=winner.name,
            findings=(*verdict.findings, *self._machine.remarks(self._left_out)),
            mode=self._options.mode,
            candidates=tuple(verdict.candidates),
            seconds=dict(self._seconds),
            table=table,
            left_out=self._left_out,
            disturbed=verdict.disturbed,
            rate_bound=context.rate_bound,
            quota=self._machine.quota,
        )
        _log.info("%s", decision)
        if table is None or not len(winner.assignment):
            placement = Placement.on_device(prepared.given, winner.plan.models[0].devices[0])
            return replace(placement, solver=winner.name, plan=winner.plan, decision=decision), None
        placement = replace(
            Placement.of_groups(table, winner.assignment, solver=winner.name),
            plan=winner.plan,
            latency_seconds=winner.predicted_seconds,
            lower_bound_seconds=winner.lower_bound_seconds,
            decision=decision,
        )
        fitted = fit_prepared(prepared, placement)
        placement = unfolded(fitted, None if self._serves_many else context.problem, context.source)
        return placement, replace(fitted, placement=placement)

    @property
    def _compared_seconds(self) -> float:
        return 0.0 if self._outputs is None else self._outputs.seconds

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Time a phase, but for comparing outputs, which is one of its own; tell the caller that it began."""
        phases = _PHASES[self._is_estimated]
        if self._options.progress is not None:
            self._options.progress(phases.index(name), len(phases), name)
        start, compared = time.perf_counter(), self._compared_seconds
        try:
            yield
        finally:
            compared = self._compared_seconds - compared
            seconds = time.perf_counter() - start - compared
            if compared:
                self._seconds["outputs"] = self._seconds.get("outputs", 0.0) + compared
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
            _log.debug("%s took %.3f s; %.3f s of the budget are left", name, seconds, self._budget.left)
