"""The algorithm: from a model and devices to a placement that is never knowingly slower than one device.

1. Extract the graph, coarsen it, mask what a device cannot run and what the user pinned. The only device is
   the answer at once unless fewer of its threads, or lanes, could be faster.
2. Make the cost table: analytic (ZERO_SHOT) or profiled (PROFILE, TUNE). Where a bound proves that no mix
   can be faster than the best device by what counts, that device is the answer and nothing more is measured.
3. Propose candidates: every single device, default HETERO, the solvers' answers, the learned policy's
   answer and draws from it; simulate them. In ZERO_SHOT, where costs are estimates, the policy comes first.
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
from operator import attrgetter

import numpy as np
import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide import lanes, widths
from ov_autoplace.decide.bounds import cheap_transfers, free_transfers, unbeatable_device
from ov_autoplace.decide.costs import CostSource, Measured
from ov_autoplace.decide.divisions import is_worth_dividing
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.proposals import POLICY_NAME, ProposalSource, propose
from ov_autoplace.decide.race import Race
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.decide.verdict import Verdict, out_of_time, predicted, proven
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import PreparedModel, prepare
from ov_autoplace.measure.counting import CountedDevices, count_devices
from ov_autoplace.measure.model_file import UnreadableModelError
from ov_autoplace.measure.outputs import OutputCheck
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.decision import Candidate, Decision
from ov_autoplace.placement.findings import Finding, Kind, sentence
from ov_autoplace.placement.fitting import FittedPlacement, fit_prepared
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.plan import WholePlan
from ov_autoplace.policy.runner import find_policy
from ov_autoplace.problem.problem import Problem

__all__ = ["Placer"]

_log = logging.getLogger("ov_autoplace")
_PHASES = (
    ("extract", "prepare", "profile", "transfers", "solve", "measure"),
    ("extract", "estimate", "solve"),
)
# A default budget grows by so many compilations for all devices and inferences on each, at most to twice.
_COMPILATIONS, _INFERENCES = 3, 12
# Compiling the learned policy took 0.12 to 0.18 s on a Zen 5 core, and the search from its answer 0.2 s.
_POLICY_SECONDS = 0.5


class Placer:
    """Places models on a machine.

    Args:
        machine: The devices, and what the user asked for.
        left_out: Why a device takes no part, by device.
        budget: Wall-clock time; as the options say when ``None``.
    """

    def __init__(
        self, machine: Machine, left_out: Mapping[str, str] | None = None, budget: Budget | None = None
    ) -> None:
        self._machine = machine
        self._options = machine.options
        self._left_out = dict(left_out or {})
        self._budget = budget or Budget(machine.options.budget_seconds)
        self._costs = CostSource(machine, self._budget)
        self._seconds: dict[str, float] = {}
        self._outputs: OutputCheck | None = None
        self._as_given: dict[str, str] = {}  # names of devices that were wrong and are mended, by device

    def place(self, model: ov.Model) -> Placement:
        """See :func:`place`."""
        return self.place_fitted(model)[0]

    def place_fitted(self, model: ov.Model) -> tuple[Placement, FittedPlacement | None]:
        """:meth:`place`, with what :func:`~ov_autoplace.placement.fitting.fit` finds, where that is known."""
        self._seconds = {}
        options, machine = self._options, self._machine
        # Who names the policy among the solvers demands one: the shipped one when none is named.
        asked = options.policy or ("base" if POLICY_NAME in options.solvers else None)
        policy = find_policy(asked, len(machine.devices))
        source = ProposalSource(options.solvers, policy, asked is not None, options.seed)
        with self._phase("extract"):
            prepared = prepare(model, options.shapes)
        if options.mode == "ZERO_SHOT":
            with self._phase("estimate"):
                table = self._costs.estimate(prepared)
            with self._phase("solve"):
                problem = machine.problem(table)
                verdict = widths.estimated(machine, table, prepared, predicted(propose(problem, source)))
                verdict = lanes.not_estimated(machine, verdict)
            return self._answer(prepared, problem, verdict, source)
        if self._is_settled(prepared):
            return self._only(prepared), None
        try:
            with self._phase("prepare"):
                session = machine.open(prepared, self._budget)
                self._outputs = session.outputs
        except UnreadableModelError as cause:
            placer = Placer(machine.estimating(cause), self._left_out, self._budget)
            return placer.place_fitted(model)
        with session:
            try:
                with self._phase("profile"):
                    # A budget that nobody gave grows with the model, once that was compiled everywhere.
                    is_firm = options.time_budget_ms is not None
                    counted = (
                        count_devices(session, self._budget, is_firm=is_firm)
                        if machine.known is None
                        else machine.known.counted
                    )
                if counted is None:
                    with self._phase("solve"):
                        problem = machine.problem(self._costs.estimate(prepared, session.room.supported))
                        candidates = propose(problem, self._affordable(source))
                        verdict = out_of_time(candidates, self._budget.seconds)
                else:
                    with self._phase("measure"):
                        known = Measured(self._mended(session, counted), counted)
                    with self._phase("solve"):
                        self._reserve(known, prepared)
                    problem, verdict = self._measure(known, source)
                    disturbed = verdict.disturbed or counted.was_disturbed
                    verdict = replace(verdict, disturbed=disturbed)
                    with self._phase("measure"):
                        verdict = widths.raced(machine, known, prepared, problem, verdict, self._budget)
                        verdict = lanes.scheduled(machine, known, prepared, problem, verdict, self._budget)
                    verdict = self._with_outputs(verdict)
            except ProfilingError as cause:
                if cause.device is None or len(machine.devices) == 1:
                    return self._single(prepared, session, cause), None
                failure = {cause.device: cause}
            else:
                return self._answer(prepared, problem, verdict, source)
        # The same request on the other devices, in the time that is left.
        left_out = self._left_out | {device: str(cause) for device, cause in failure.items()}
        return Placer(machine.without(failure), left_out, self._budget).place_fitted(model)

    def _is_settled(self, prepared: PreparedModel) -> bool:
        """Whether there is one device and one way to run the model on it: nothing is worth measuring."""
        machine, devices = self._machine, self._machine.devices
        if len(devices) > 1 or self._left_out or self._options.executor == "OVERLAP":
            return False
        if widths.is_worth_measuring(machine, devices[0], prepared.model):
            return False
        return self._options.executor == "HETERO" or not is_worth_dividing(
            machine, devices[0], prepared.model
        )

    def _only(self, prepared: PreparedModel) -> Placement:
        """The one device, once it is known that it supports the model and holds it as the user wants."""
        (device,) = self._machine.devices
        with self._phase("solve"):
            propose(self._machine.problem(self._costs.estimate(prepared)), ProposalSource(solvers=()))
        findings = [Finding.of(Kind.ONLY_DEVICE, device)]
        if self._machine.widths(device):
            findings.append(Finding(Kind.NARROWER_UNLIKELY))
        return self._whole(prepared, Candidate(device, WholePlan(device)), findings)

    def _single(self, prepared: PreparedModel, session: ProfilingSession, cause: ProfilingError) -> Placement:
        """The fastest device that can be measured, else the first one that compiles, when all else fails.

        Args:
            prepared: The model.
            session: Knows which devices support all ops, and which failed already.
            cause: Why nothing better can be said.

        Raises:
            ProfilingError: None of them compiles it.
        """
        able = [device for device in session.devices if session.room.supports_all(device)]
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
        return replace(Placement.on_device(prepared.given, chosen.name), decision=decision)

    def _measure(self, known: Measured, source: ProposalSource) -> tuple[Problem, Verdict]:
        """From counted nodes to an answer, with as few further measurements as prove it."""
        budget, options = self._budget, self._options
        if options.time_budget_ms is None:
            once = sum(float(np.median(samples)) for samples in known.counted.samples.values())
            base = budget.seconds + _COMPILATIONS * known.counted.compile_seconds
            budget.seconds = base + min(base, _INFERENCES * once)
        with self._phase("solve"):
            answer = self._proven(known, free_transfers(self._machine.devices))
        if answer is not None:
            return answer
        with self._phase("transfers"):
            transfers, are_known = self._costs.transfers(known.session)
        # TUNE corrects what crossings cost, so that they prove nothing there.
        if are_known and options.mode == "PROFILE":
            with self._phase("solve"):
                answer = self._proven(known, cheap_transfers(transfers), transfers)
            if answer is not None:
                return answer
        with self._phase("profile"):
            profile = self._costs.profile(known, transfers)
        with self._phase("solve"):
            problem = self._machine.problem(profile.table)
            candidates = propose(problem, self._affordable(source))
        with self._phase("measure"):
            race = Race(known.session, problem, profile.samples, source, options, budget)
            return problem, race.run(candidates)

    def _reserve(self, known: Measured, prepared: PreparedModel) -> None:
        """Keep some of the budget for widths and lanes, which race when devices and mixes have.

        Args:
            known: What was measured.
            prepared: The model.
        """
        machine, samples = self._machine, known.counted.samples
        if self._options.time_budget_ms is None and self._options.mode != "TUNE":
            return  # it grows by what these take
        problem = machine.problem(self._costs.counted(known, free_transfers(machine.devices)).table)
        alone = [
            Candidate(
                name,
                WholePlan(name),
                samples=samples[name],
                assignment=problem.units.to_groups(everywhere),
            )
            for d, everywhere in problem.evaluator.singles().items()
            if (name := machine.devices[d]) in samples
        ]
        fastest = min(alone, key=attrgetter("seconds"), default=None)
        if fastest is None:
            return
        verdict = Verdict(fastest, (), alone)
        widths.reserve(machine, known, prepared, verdict, self._budget)
        lanes.reserve(machine, known, prepared, problem, verdict, self._budget)

    def _proven(
        self, known: Measured, assumed: TransferFit, shown: TransferFit | None = None
    ) -> tuple[Problem, Verdict] | None:
        """The best device, where no mix can be faster even if crossings cost ``assumed``; or the only one.

        Args:
            known: What was measured.
            assumed: What crossings cost at least.
            shown: What they cost, for the table of the answer; assumed by kind of device when ``None``.
        """
        if known.counted.was_disturbed and len(self._machine.devices) > 1:
            return None
        samples = known.counted.samples
        hopeful = self._machine.problem(self._costs.counted(known, assumed).table)
        best = unbeatable_device(hopeful, samples, self._options.seed)
        outputs = known.session.outputs
        if best is None or (outputs is not None and outputs.is_wrong(best.name)):
            return None
        problem = self._machine.problem(
            self._costs.counted(known, shown or self._costs.assumed_transfers()).table
        )
        candidates = propose(problem, ProposalSource(solvers=()))
        return problem, proven(candidates, samples, best.name)

    @property
    def _compared_seconds(self) -> float:
        return 0.0 if self._outputs is None else self._outputs.seconds

    def _mended(self, session: ProfilingSession, counted: CountedDevices) -> ProfilingSession:
        """The session to go on with, where devices compute wrong for a reason that our compiling mends.

        Args:
            session: The model as it was given.
            counted: What the devices took.
        """
        outputs, devices = session.outputs, tuple(counted.samples)
        if outputs is None or not any(map(outputs.is_wrong, devices)) or (other := session.untied()) is None:
            return session
        self._as_given = {device: f"{device} (model as given)" for device in devices}
        outputs.rename(self._as_given)
        for device in devices:
            outputs.note(device, other.compile_device(device), other.makes[device])
        return other

    def _with_outputs(self, verdict: Verdict) -> Verdict:
        """The verdict with what is known of everybody's outputs."""
        outputs = self._outputs
        if outputs is None:
            return verdict
        given = [Candidate(name, WholePlan(device)) for device, name in self._as_given.items()]
        candidates = [*verdict.candidates, *given]
        outputs.mark(candidates)
        said = outputs.findings(verdict.winner.name)
        if given:
            said = (*said, Finding(Kind.UNTIED))
        if any(candidate.is_wrong for candidate in candidates):
            _log.warning("%s", sentence(said))
        return replace(verdict.noting(*said), candidates=candidates)

    def _affordable(self, source: ProposalSource) -> ProposalSource:
        """Without the policy where there is no time to compile it and nobody asked for it."""
        policy = source.policy
        if policy is None or source.policy_is_demanded or policy.is_compiled:
            return source
        return source if self._budget.allows(_POLICY_SECONDS) else replace(source, policy=None)

    def _answer(
        self, prepared: PreparedModel, problem: Problem, verdict: Verdict, source: ProposalSource
    ) -> tuple[Placement, FittedPlacement]:
        table, winner = problem.table, verdict.winner
        decision = Decision(
            chosen=winner.name,
            findings=(*verdict.findings, *self._machine.remarks(self._left_out)),
            mode=self._options.mode,
            candidates=tuple(verdict.candidates),
            seconds=dict(self._seconds),
            table=table,
            left_out=self._left_out,
            disturbed=verdict.disturbed,
            quota=self._machine.quota,
        )
        _log.info("%s", decision)
        placement = replace(
            Placement.of_groups(table, winner.assignment, solver=winner.name),
            own_plan=winner.plan if winner.plan.is_divided else None,
            latency_seconds=winner.predicted_seconds,
            lower_bound_seconds=winner.lower_bound_seconds,
            decision=decision,
        )
        fitted = fit_prepared(prepared, placement)
        placement = unfolded(fitted, problem, source)
        return placement, replace(fitted, placement=placement)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Time a phase, but for comparing outputs, which is one of its own; tell the caller that it began."""
        phases = _PHASES[self._options.mode == "ZERO_SHOT"]
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
