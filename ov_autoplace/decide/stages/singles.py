"""Devices alone: each is compiled, run and counted, and the fastest is what everything else has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace.decide.bounds import free_transfers
from ov_autoplace.decide.context import Context, Stage
from ov_autoplace.decide.costs import Measured
from ov_autoplace.decide.proposals import propose
from ov_autoplace.decide.verdict import Verdict, out_of_time
from ov_autoplace.measure.counting import CountedDevices, count_devices
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.plan import WholePlan

__all__ = ["Singles"]

# A default budget grows by so many compilations for all devices and inferences on each, at most to twice.
_COMPILATIONS, _INFERENCES = 3, 12
# A processor's clock may change by the first between the profiles of two devices. Those that it may have
# exchanged are raced for the second: a share of the time that is left.
_CLOCKS, _RACE = 2.5, 0.1


class Singles(Stage):
    """Each device as OpenVINO runs it by itself."""

    def __init__(self) -> None:
        self._is_counted = False

    def propose(self, context: Context) -> list[Candidate]:
        """The devices that ran the whole model; none where the budget is too short to count its nodes."""
        machine, session = context.machine, context.session
        with context.phase("profile"):
            # A budget that nobody gave grows with the model, once that was compiled everywhere.
            is_firm = context.options.time_budget_ms is not None
            if machine.known is not None:
                counted: CountedDevices | None = machine.known.counted
            else:
                counted = count_devices(session, context.budget, is_firm=is_firm)
        if counted is None:
            return []
        self._is_counted = True
        with context.phase("measure"):
            _mend(context, tuple(counted.samples))
        context.known = known = Measured(context.session, counted)
        once = sum(float(np.median(samples)) for samples in counted.samples.values())
        context.allow(_COMPILATIONS * counted.compile_seconds)
        context.allow(min(context.budget.seconds, _INFERENCES * once))
        with context.phase("solve"):
            context.problem = machine.problem(
                context.costs.counted(known, free_transfers(machine.devices)).table
            )
        problem, samples = context.problem, counted.samples
        return [
            Candidate(
                name,
                WholePlan(name),
                times={Load.STEADY: samples[name]},
                assignment=problem.units.to_groups(everywhere),
            )
            for d, everywhere in problem.evaluator.singles().items()
            if (name := machine.devices[d]) in samples
        ]

    def decide(self, context: Context, candidates: Sequence[Candidate]) -> Verdict | None:
        """The fastest, or the best by estimates where there was no time to count."""
        if not self._is_counted:
            context.is_final = True
            with context.phase("solve"):
                table = context.costs.estimate(context.prepared, context.session.feasibility.supported)
                context.problem = context.machine.problem(table)
                proposals = propose(context.problem, context.source)
                return out_of_time(proposals, context.budget.seconds)
        if not candidates:
            return None
        with context.phase("measure"):
            _run_in_turns(context, candidates)
        fastest = min(candidates, key=lambda candidate: candidate.seconds)
        return Verdict(fastest, (), candidates, context.known.counted.was_disturbed)


def _run_in_turns(context: Context, candidates: Sequence[Candidate]) -> None:
    """Race the devices that may be fastest: each was counted at a time of its own, at a clock of its own."""
    fastest = min(candidates, key=lambda candidate: candidate.seconds)
    others = [
        c for c in candidates if c is not fastest and float(c.samples.min()) < _CLOCKS * fastest.seconds
    ]
    if not others:
        return
    compiling = (1 + len(others)) * context.compile_seconds
    context.allow(compiling)
    if not context.budget.allows(compiling):
        return
    raced = context.race.once([fastest, *others], _RACE)
    if raced is None or len(raced.timings) < 2:
        return
    samples = {candidate.name: raced.samples(candidate) for candidate in raced.timings}
    samples = {name: own for name, own in samples.items() if len(own)}
    context.known = replace(context.known, counted=context.known.counted.in_turns(samples))


def _mend(context: Context, devices: Sequence[str]) -> None:
    """Go on with another form of the model, where devices compute wrong for a reason that it mends."""
    outputs = context.session.outputs
    if outputs is None or not any(map(outputs.is_wrong, devices)):
        return
    other = context.session.mended()
    if other is None:
        return
    context.as_given = {device: f"{device} (model as given)" for device in devices}
    outputs.rename(context.as_given)
    for device in devices:
        outputs.note(device, other.compile_device(device), other.makes[device])
    context.open(other)
