"""A short race of an answer that was found on a busy machine, or elsewhere, with what OpenVINO runs alone."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import CONVINCING_ROUNDS, MINIMAL_GAIN, Interval
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.outlook import Outlook
from ov_autoplace.decide.pools import (
    able_devices,
    copies,
    copies_that_fit,
    hinted,
    other_bases,
    without_hint,
)
from ov_autoplace.decide.race import PAUSED_GAIN, PAUSED_SECONDS, must_win_after_pauses
from ov_autoplace.decide.rate_rule import RATE_LOADS, Pair, holds
from ov_autoplace.decide.stages.rates import enter_pools, rate_seconds, run_pools
from ov_autoplace.decide.verdict import is_as_fast, is_faster, sustains_more
from ov_autoplace.decide.widths import widths_for
from ov_autoplace.decide.workbench import Raced, Workbench
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import PreparedModel, prepare
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.plan import Plan, PoolPlan, WholePlan

__all__ = ["Confirmation", "confirm"]

_log = logging.getLogger("ov_autoplace")
_SECONDS, _SUSTAINED_SECONDS, _RATE_SECONDS = 0.5, 4.0, 1.5


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


def confirm(machine: Machine, model: ov.Model, plan: Plan) -> Confirmation:
    """Run a plan beside what OpenVINO runs by itself, as the race did that chose it.

    A device as OpenVINO runs it by itself holds where no other one is faster by more than 2 %, and none of
    its widths wins. A mix, a width and lanes have to be faster than all devices, lanes after idle gaps too
    unless requests come back to back; a width that is as fast has to be faster after idle gaps. Lanes that
    the user requires have only to run. Under a quota of processor time, widths and lanes have to win by what
    is sustained over its periods. An answer for many requests has to win as in
    :func:`~ov_autoplace.decide.rate_rule.holds`. Who computes wrong outputs is no rival.

    Args:
        machine: The devices that were asked for.
        model: The model that the plan is of.
        plan: The answer, for one request at a time or for many.
    """
    machine = without_hint(machine) if plan.serves_many else machine
    prepared = prepare(model, machine.options.shapes)
    with machine.open(prepared, Budget(_SECONDS)) as opened:
        session = opened.mended() or opened
        bench = Workbench(session, None, Budget(math.inf), machine.options.seed)
        try:
            if isinstance(plan, PoolPlan):
                return Confirmation(_rate_holds(bench, machine, prepared, plan))
            return _compared(bench, machine, prepared, plan)
        except (PlacementError, ProfilingError) as cause:
            _log.debug("an answer cannot be run: %s", cause)
            return Confirmation(holds=False)


def _compared(bench: Workbench, machine: Machine, prepared: PreparedModel, plan: Plan) -> Confirmation:
    """What races of an answer say with devices, and with widths of its own.

    Raises:
        ProfilingError: None of them can be run.
    """
    answer = Candidate("the answer", plan)
    rivals = [device for device in _devices(machine) if not (plan.is_default and device in plan.devices)]
    plans = [WholePlan(device) for device in rivals]
    if plan.is_default:
        plans += _widths(machine, prepared.model, *plan.devices)
    field = [answer, *(Candidate(rival.name, rival) for rival in plans)]
    # Who cannot run or hold the model alone is no rival.
    entered = bench.enter(field, lambda *_: True) or [c for c in field if c.is_wrong]
    if answer not in entered:
        return Confirmation(holds=False)
    if len(entered) == 1:
        return Confirmation(holds=True)
    options, has_lanes = machine.options, plan.lane_count > 0
    if machine.quota is not None and any(candidate.plan.is_divided for candidate in entered):
        raced = bench.race(entered, Load.SUSTAINED, _SUSTAINED_SECONDS)
    else:
        raced = _raced(bench, entered, Load.STEADY, _SECONDS)
    found = _judged(raced, answer)
    if has_lanes and options.executor == "OVERLAP":
        return replace(found, holds=found.seconds is not None)
    gain = None
    if found.holds and must_win_after_pauses(options, has_lanes=has_lanes):
        gain = 0.0
    elif found.holds is False and options.arrivals != "STEADY" and plan.width and is_as_fast(found.ratio):
        gain = PAUSED_GAIN
    if gain is not None and found.best_device:
        best = next(rival for rival in entered if rival.name == found.best_device)
        paused = _raced(bench, [answer, best], Load.PAUSED, PAUSED_SECONDS)
        ratio = paused.ratio(answer, best)
        is_known = ratio is not None and not paused.was_disturbed
        return replace(found, holds=is_faster(ratio, gain=gain) if is_known and ratio else None)
    return found


def _devices(machine: Machine) -> list[str]:
    """The devices on which the whole model may be, pinned to no other."""
    pinned = set(machine.options.pins.values())
    return [device for device in machine.devices if pinned <= {device}]


def _widths(machine: Machine, model: ov.Model, device: str) -> list[WholePlan]:
    """The widths of a device that is the answer, where one of them could be faster."""
    able = widths_for(machine, device, model) if Outlook.of(machine, device, model).may_win else ()
    return [WholePlan(device, width) for width in able]


def _judged(raced: Raced, answer: Candidate) -> Confirmation:
    """What a race says of an answer, see :func:`confirm`."""
    ran = [c for c, timing in raced.timings.items() if len(timing.samples)]
    if answer not in ran:
        return Confirmation(holds=False)
    seconds = {c: float(np.median(raced.samples(c))) for c in ran}
    devices = [c for c in ran if c is not answer and c.plan.is_default]
    best = min(devices, key=seconds.__getitem__, default=None)
    found = Confirmation(None, seconds[answer])
    if best is not None:
        found = replace(
            found, best_device=best.name, best_seconds=seconds[best], ratio=raced.ratio(answer, best)
        )
    return replace(found, holds=_wins_again(raced, answer, [c for c in ran if c is not answer], found))


def _wins_again(
    raced: Raced, answer: Candidate, rivals: Sequence[Candidate], found: Confirmation
) -> bool | None:
    needs_proof, timings = not answer.plan.is_default, raced.timings
    if raced.load is Load.SUSTAINED:
        if needs_proof:
            return all(sustains_more(timings[answer], timings[rival]) for rival in rivals)
        return not any(sustains_more(timings[rival], timings[answer]) for rival in rivals)
    narrow = [raced.ratio(rival, answer) for rival in rivals if not rival.plan.is_default]
    is_beaten = any(ratio is not None and is_faster(ratio) for ratio in narrow)
    if raced.was_disturbed:
        return None
    if not found.best_device:
        return not is_beaten
    if found.ratio is None:
        return None
    if needs_proof:
        return is_faster(found.ratio)
    return not is_beaten and found.ratio.median <= 1 + MINIMAL_GAIN


def _raced(bench: Workbench, candidates: Sequence[Candidate], load: Load, seconds: float) -> Raced:
    """A race of as many rounds as prove something.

    Raises:
        ProfilingError: None of them can be run.
    """
    raced = bench.race(candidates, load, seconds)
    if raced.rounds < CONVINCING_ROUNDS:
        # The first round also warms up, so the others are no longer.
        raced = bench.race(candidates, load, CONVINCING_ROUNDS * raced.seconds / raced.rounds)
    return raced


def _rate_holds(bench: Workbench, machine: Machine, prepared: PreparedModel, plan: PoolPlan) -> bool | None:
    """Whether an answer for many requests would be chosen again, and a hint beside copies as well."""
    devices = able_devices(machine, bench.session)
    hints = hinted(devices, prepared)
    own = Candidate("the answer", PoolPlan("the answer", plan.base))
    base = next((hint for hint in hints if hint.plan.models == (plan.base,)), own)
    pool = Candidate("its pool", plan) if plan.members else base
    field = list(dict.fromkeys([*hints, base, pool]))
    if base is pool and base in hints:
        fitting = copies_that_fit(bench.session, devices)
        field += [*other_bases(machine, devices, prepared), *copies(machine, devices, prepared, fitting)]
    if field == [base]:
        return True  # there is nothing to compare with
    enter_pools(bench, field)
    seconds = max(_RATE_SECONDS, rate_seconds(len(field)))
    run_pools(bench, field, seconds, keep_all=True)
    rounds = [len(c.on(load)) for c in field if not c.dropped for load in RATE_LOADS]
    if 0 < min(rounds, default=0) < CONVINCING_ROUNDS:
        run_pools(bench, field, seconds * CONVINCING_ROUNDS / min(rounds), keep_all=True)
    return holds(Pair(base, pool), field)
