"""A placement beside everything that it could be replaced with, run in turns: the rows of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace._base.progress import Progress
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.pools import able_devices, hinted, without_hint
from ov_autoplace.decide.rate_rule import Pair
from ov_autoplace.decide.stages.rates import enter_pools, run_pools
from ov_autoplace.decide.widths import widths_for
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.names import device_properties, is_emulated
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.feasibility import feasibility_of
from ov_autoplace.measure.isolation.interface import Executable
from ov_autoplace.measure.loads import run_in_turns
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.sustained import turn_seconds
from ov_autoplace.plan.decision import Candidate, Decision, Load
from ov_autoplace.plan.fitting import fit
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import ModelPlan, Plan, PoolPlan, WholePlan

__all__ = ["Comparison", "compared_rates", "comparison"]

_MOST_SAMPLES = 1000
_ANSWER = "AUTOPLACE"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A placement that is ready to be run beside its rivals.

    Attributes:
        machine: The devices.
        placement: What is compared.
        session: The model, in the form that the placement fits.
        plan: How that form runs.
    """

    machine: Machine
    placement: Placement
    session: ProfilingSession
    plan: ModelPlan

    @cached_property
    def plans(self) -> dict[str, ModelPlan]:
        """What is compared, by row: the plan, its rivals, and of the losers the best one on lanes."""
        devices, decision = self.machine.devices, _decision_of(self.placement)
        alone = [WholePlan(device) for device in devices]
        for device in devices:
            widths = widths_for(self.machine, device, self.session.model)
            alone += [WholePlan(device, width) for width in widths]
        plans: dict[str, ModelPlan] = {plan.name: plan for plan in alone}
        plans |= {virtual: WholePlan(f"{virtual}:{','.join(devices)}") for virtual in ("AUTO", "HETERO")}
        if not self.plan.lane_count:
            schedules = [c for c in decision.candidates if c.plan.lane_count]
            best = min(schedules, key=lambda c: (c.seconds, c.expected_seconds), default=None)
            if best is not None:
                plans[best.name] = best.plan.one_model
        return {**plans, _ANSWER: self.plan}

    def run(self, seconds: float, progress: Progress) -> tuple[Candidate, ...]:
        """Run devices alone, a CPU's widths, AUTO, default HETERO and the placement, which comes last.

        One that cannot be compiled says why, and has no times.

        Args:
            seconds: How long to measure, all together.
            progress: Called as the work goes on.
        """
        field, outputs = (
            self._candidates(),
            self.session.compare_outputs(self.machine.options.output_tolerance, Budget(seconds)),
        )
        compiled: dict[Candidate, Executable] = {}
        ours = self.session.mended() or self.session
        for done, candidate in enumerate(field):
            progress(done, len(field), f"compile {candidate.name}")
            is_answer = candidate is field[-1]
            try:
                executable = self.plans[candidate.name].compile(ours if is_answer else self.session)
            except (PlacementError, ProfilingError) as cause:
                candidate.dropped = str(cause)
                continue
            compiled[candidate] = executable
            if not candidate.plan.lane_count:
                candidate.subgraphs = executable.subgraphs
            way = candidate.name if is_answer else candidate.plan.computes_like(self.session.makes)
            outputs.note(candidate.name, executable, way)
        self._measure(compiled, seconds, progress)
        emulated = {device for device in self.machine.devices if is_emulated(self.machine.core, device)}
        for candidate in field:
            candidate.output_difference = outputs.difference(candidate.name)
            wrong = outputs.refusal(candidate.name) if outputs.is_wrong(candidate.name) else ""
            made_up = "emulated" if emulated.intersection(candidate.plan.devices) else ""
            candidate.dropped = "; ".join(filter(None, (candidate.dropped, wrong, made_up)))
        return tuple(field)

    def _candidates(self) -> list[Candidate]:
        """What is run, with what the decision predicted of it."""
        decision = _decision_of(self.placement)
        known = {c.name: c for c in decision.candidates} | {_ANSWER: decision.winner}
        found = []
        for name, plan in self.plans.items():
            candidate = Candidate(name, plan)
            if name in known:
                candidate.predicted_seconds = known[name].predicted_seconds
                candidate.subgraphs = known[name].subgraphs
            found.append(candidate)
        found[-1].predicted_seconds = decision.winner.predicted_seconds or self.placement.latency_seconds
        return found

    def _measure(self, compiled: Mapping[Candidate, Executable], seconds: float, progress: Progress) -> None:
        """Time compiled candidates back to back, and after idle gaps; nobody is left out for being slower."""
        quota = self.machine.quota
        how: dict[str, Any] = {"divided": any(plan.is_divided for plan in self.plans.values())}
        if how["divided"] and quota is not None:
            # What was chosen by whole periods is shown by them.
            how["min_sample_seconds"] = turn_seconds(quota)
        for load, what in ((Load.STEADY, "measure"), (Load.PAUSED, "measure after pauses")):
            running = [candidate for candidate in compiled if not candidate.dropped]
            part = seconds / 2

            def show(rounds: int, _: int, spent: float, what: str = what, part: float = part) -> None:
                progress(int(10 * spent), int(10 * part), f"{what}, round {rounds}")

            result = run_in_turns(
                self.session,
                [compiled[candidate] for candidate in running],
                load,
                part,
                min_rounds=_MOST_SAMPLES,
                max_rounds=_MOST_SAMPLES,
                seed=self.machine.options.seed,
                names=[candidate.name for candidate in running],
                progress=show,
                **how,
            )
            for candidate, timing in zip(running, result.timings, strict=True):
                candidate.remember(load, timing.samples)
                candidate.dropped = timing.dropped


@contextmanager
def comparison(machine: Machine, model: ov.Model, placement: Placement) -> Iterator[Comparison]:
    """Open a model to compare a placement of it.

    Args:
        machine: The devices, and what the user asked for.
        model: Is not modified.
        placement: Covers its ops; was decided.
    """
    options, fitted = machine.options, fit(model, placement)
    limits, target = options.memory_limits, machine.target
    with ProfilingSession(
        core=machine.core,
        model=fitted.model,
        devices=machine.devices,
        properties=device_properties(machine.core, machine.devices, options.properties),
        shapes=options.shapes,
        seed=options.seed,
        isolation=options.isolation,
        feasibility=feasibility_of(
            machine.core, fitted.model, machine.devices, options.shapes, limits, target
        ),
    ) as session:
        yield Comparison(machine, placement, session, placement.plan.one_model)


def compared_rates(
    machine: Machine, prepared: PreparedModel, plan: Plan, seconds: float
) -> tuple[Candidate, ...]:
    """Run a plan and everything that OpenVINO offers in turns; the plan comes last.

    Args:
        machine: Its options carry the hint.
        prepared: The model.
        plan: The answer.
        seconds: For all of it.

    Raises:
        ProfilingError: The plan cannot be run.
        PlacementError: It is not for many requests.
    """
    if not isinstance(plan, PoolPlan):
        raise PlacementError(
            f"the placement {plan.name} is for one request at a time; compare it without a hint for many, or "
            "give the model without its annotation"
        )
    bare = without_hint(machine)
    base = pool = Candidate(_ANSWER, PoolPlan(_ANSWER, plan.base))
    if plan.members:
        pool = Candidate(f"{_ANSWER} for waiting threads", plan)
    with bare.open(prepared, Budget(seconds)) as opened:
        session = opened.mended() or opened
        bench = Workbench(session, None, Budget(math.inf), machine.options.seed)
        hints = hinted(able_devices(bare, session), prepared)
        field = list(dict.fromkeys([*hints, base, pool]))
        enter_pools(bench, field)
        bench.executable(base)
        bench.executable(pool)
        for candidate in field:  # those that compute wrong outputs are shown, too
            candidate.dropped = "" if candidate.is_wrong else candidate.dropped
        run_pools(bench, field, seconds, keep_all=True)
    return (*hints, replace(Pair(base, pool).candidate(), name=_ANSWER))


def _decision_of(placement: Placement) -> Decision:
    if placement.decision is None:
        raise PlacementError("this placement does not say how it was decided")
    return placement.decision
