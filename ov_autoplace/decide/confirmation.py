"""A short race of an answer that was found on a busy machine, or elsewhere, against the devices alone."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import Interval
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.race import PAUSE_SECONDS, PAUSED_SECONDS, must_win_after_pauses, sampling
from ov_autoplace.decide.rate_again import confirm_rate
from ov_autoplace.decide.verdict import (
    CONVINCING_ROUNDS,
    Verdict,
    is_faster,
    paired,
    sustained,
    were_disturbed,
)
from ov_autoplace.decide.widths import is_worth_measuring, widths_for
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.quota import Quota
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.sustained import run_over_periods
from ov_autoplace.placement.decision import Candidate
from ov_autoplace.placement.plan import ModelPlan, Plan, PoolPlan, WholePlan

__all__ = ["Confirmation", "confirm", "holds"]

_log = logging.getLogger("ov_autoplace")
_SECONDS, _SUSTAINED_SECONDS = 0.5, 4.0


@dataclass(frozen=True)
class Confirmation:
    """A placement beside the devices alone.

    Attributes:
        holds: Whether it would be chosen again; ``None`` where that cannot be told, because the machine is
            busy. It does where there is nothing to compare it with.
        seconds: Median latency of the placement; ``None`` where it was not run.
        best_device: The fastest of the other placements on one device; empty where there is none.
        best_seconds: Its median latency.
        ratio: Of the two, in the same rounds; ``None`` where those are too few to say anything.
    """

    holds: bool | None
    seconds: float | None = None
    best_device: str = ""
    best_seconds: float | None = None
    ratio: Interval | None = None


def holds(machine: Machine, model: ov.Model, plan: Plan) -> bool | None:
    """Whether a plan would be chosen again; ``None`` where that cannot be told, because the machine is busy.

    Args:
        machine: The devices that were asked for.
        model: The model that the plan is of.
        plan: The answer, for one request at a time or for many.
    """
    if isinstance(plan, PoolPlan):
        return confirm_rate(machine, prepare(model, machine.options.shapes), plan)
    return confirm(machine, model, plan.one_model).holds


def confirm(machine: Machine, model: ov.Model, plan: ModelPlan) -> Confirmation:
    """Run a plan beside the devices that can run the model alone, as the race did that chose it.

    A device as OpenVINO runs it by itself holds where no other one is faster by more than 2 %, and none of
    its widths wins. A mix, a width and lanes have to be faster than all devices, lanes after idle gaps too
    unless requests come back to back; lanes that the user demands have only to run. Under a quota of
    processor time, widths and lanes have to win by what is sustained over its periods. Who computes wrong
    outputs is no rival.

    Args:
        machine: The devices that were asked for.
        model: The model that the plan is of.
        plan: The answer.
    """
    prepared = prepare(model, machine.options.shapes)
    with machine.open(prepared, Budget(_SECONDS)) as opened:
        session = opened.untied() or opened
        answer = Candidate("the answer", plan)
        rivals = [device for device in _devices(machine) if not (plan.is_default and device in plan.devices)]
        plans: list[ModelPlan] = [WholePlan(device) for device in rivals]
        if plan.is_default:
            plans += _widths(machine, prepared.model, *plan.devices)
        field = [answer, *(Candidate(rival.name, rival) for rival in plans)]
        bench = Workbench(session, None, Budget(math.inf), machine.options.seed)
        try:
            # Who cannot run or hold the model alone is no rival.
            entered = bench.enter(field, lambda *_: True) or [c for c in field if c.is_wrong]
            if answer not in entered:
                return Confirmation(holds=False)
            return _compared(bench, machine, entered)
        except (PlacementError, ProfilingError) as cause:
            _log.debug("an answer cannot be run: %s", cause)
            return Confirmation(holds=False)


def _devices(machine: Machine) -> list[str]:
    """The devices on which the whole model may be, pinned to no other."""
    pinned = set(machine.options.pins.values())
    return [device for device in machine.devices if pinned <= {device}]


def _widths(machine: Machine, model: ov.Model, device: str) -> list[WholePlan]:
    """The widths of a device that is the answer, where one of them could be faster."""
    able = widths_for(machine, device, model) if is_worth_measuring(machine, device, model) else ()
    return [WholePlan(device, width) for width in able]


def _compared(bench: Workbench, machine: Machine, entered: Sequence[Candidate]) -> Confirmation:
    """What races of an answer say, which is the first one, with devices, and with widths of its own.

    Raises:
        ProfilingError: None of them can be run.
    """
    if len(entered) == 1:
        return Confirmation(holds=True)
    options, quota, answer = machine.options, machine.quota, entered[0]
    needs_proof, has_lanes = not answer.plan.is_default, answer.plan.lane_count > 0
    is_divided = any(candidate.plan.is_divided for candidate in entered)
    if quota is not None and is_divided:
        found = _sustained(bench, entered, quota, needs_proof=needs_proof)
    else:
        samples = _raced(bench, entered, _SECONDS, **sampling(divided=is_divided))
        found = _judged(dict(zip(entered, samples, strict=True)), needs_proof=needs_proof)
    if has_lanes and options.executor == "OVERLAP":
        return replace(found, holds=found.seconds is not None)
    if found.holds and found.best_device and must_win_after_pauses(options, has_lanes=has_lanes):
        best = next(rival for rival in entered if rival.name == found.best_device)
        paused = _raced(bench, [answer, best], PAUSED_SECONDS, pause_seconds=PAUSE_SECONDS)
        return replace(found, holds=_still_holds(paused))
    return found


def _judged(samples: Mapping[Candidate, FloatArray], *, needs_proof: bool) -> Confirmation:
    """What back to back says of an answer, see :func:`_compared`.

    Args:
        samples: Of everybody.
        needs_proof: The answer has to be faster than the devices.
    """
    answer, *rivals = samples
    own = samples[answer]
    if not len(own):
        return Confirmation(holds=False)
    seconds = {c: float(np.median(samples[c])) for c in rivals if c.plan.width is None and len(samples[c])}
    best = min(seconds, key=seconds.__getitem__, default=None)
    narrow = [paired(samples[c], own) for c in rivals if c.plan.width is not None]
    holds: bool | None = not any(found is not None and is_faster(found) for found in narrow)
    disturbed = were_disturbed(samples.values())
    if best is None:
        return Confirmation(None if disturbed else holds, float(np.median(own)))
    ratio = paired(own, samples[best])
    if ratio is None or disturbed:
        holds = None
    else:
        holds = is_faster(ratio) if needs_proof else holds and ratio.median <= 1 + MINIMAL_GAIN
    return Confirmation(holds, float(np.median(own)), best.name, seconds[best], ratio)


def _sustained(
    bench: Workbench, entered: Sequence[Candidate], quota: Quota, *, needs_proof: bool
) -> Confirmation:
    """What whole periods of a quota say of an answer, see :func:`_compared`."""
    answer, *rivals = entered
    outcomes = run_over_periods([bench.executable(c) for c in entered], quota, _SUSTAINED_SECONDS)
    pairs = zip(entered, outcomes, strict=True)
    turns = {candidate: found for candidate, found in pairs if not isinstance(found, ProfilingError)}
    if answer not in turns:
        return Confirmation(holds=False)

    def wins(one: Candidate, other: Candidate) -> bool:
        verdict = Verdict(other, (), [other])
        return sustained([other], verdict, {c: turns[c] for c in (one, other)}).winner is one

    ran = [rival for rival in rivals if rival in turns]
    holds = all(wins(answer, c) for c in ran) if needs_proof else not any(wins(c, answer) for c in ran)
    seconds = {c: float(np.mean([turn.seconds for turn in turns[c]])) for c in (answer, *ran)}
    best = min((c for c in ran if c.plan.width is None), key=seconds.__getitem__, default=None)
    if best is None:
        return Confirmation(holds, seconds[answer])
    return Confirmation(holds, seconds[answer], best.name, seconds[best])


def _still_holds(paused: Sequence[FloatArray]) -> bool | None:
    """Whether an answer is faster than the best device after idle gaps, too."""
    ratio = paired(*paused)
    return None if ratio is None or were_disturbed(paused) else is_faster(ratio, gain=0.0)


def _raced(bench: Workbench, candidates: Sequence[Candidate], seconds: float, **how: Any) -> list[FloatArray]:
    """Samples of each, in as many rounds as prove something.

    Raises:
        ProfilingError: None of them can be run.
    """
    result = bench.race(candidates, seconds, min_rounds=CONVINCING_ROUNDS, **how)
    if result.rounds < CONVINCING_ROUNDS:
        # The first round also warms up, so the others are no longer.
        seconds = CONVINCING_ROUNDS * result.seconds / result.rounds
        result = bench.race(candidates, seconds, min_rounds=CONVINCING_ROUNDS, **how)
    return [entry.samples for entry in result.entries]
