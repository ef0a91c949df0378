"""A short race of an answer that was found on a busy machine, or elsewhere, against the devices alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.statistics import Interval
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.race import PAUSE_SECONDS, PAUSED_SECONDS, must_win_after_pauses, sampling
from ov_autoplace.decide.verdict import (
    CONVINCING_ROUNDS,
    Verdict,
    is_faster,
    paired,
    sustained,
    were_disturbed,
)
from ov_autoplace.decide.widths import is_worth_measuring, widths_for
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.isolation.interface import Executable
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.sustained import run_over_periods
from ov_autoplace.placement.decision import Candidate
from ov_autoplace.placement.lane_plan import LanePlan

__all__ = ["Confirmation", "confirm"]

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


def confirm(
    machine: Machine,
    model: ov.Model,
    device_of: Mapping[str, str],
    width: Width | None = None,
    plan: LanePlan | None = None,
) -> Confirmation:
    """Run a placement beside the devices that can run the model alone, as the race did that chose it.

    A device as OpenVINO runs it by itself holds where no other one is faster by more than 2 %, and none of
    its widths wins. A mix, a width and lanes have to be faster than all devices, lanes after idle gaps too
    unless requests come back to back; lanes that the user demands have only to run. Under a quota of
    processor time, widths and lanes have to win by what is sustained over its periods.

    Args:
        machine: The devices that were asked for.
        model: The model whose ops are placed.
        device_of: The placement.
        width: Of its one device.
        plan: Of its lanes.
    """
    options, is_lanes = machine.options, plan is not None
    used, is_divided = set(device_of.values()), width is not None or is_lanes
    prepared = prepare(model, options.shapes)
    with machine.open(prepared) as session:
        try:
            if plan is not None:
                executables = [session.compile_schedule(plan)]
            elif width is not None:
                executables = [session.compile_width(next(iter(used)), width)]
            else:
                executables = [session.compile_placement(device_of)]
        except (PlacementError, ProfilingError) as cause:
            _log.debug("an answer cannot be run: %s", cause)
            return Confirmation(holds=False)
        rivals = []
        for device in _rivals(machine):
            try:
                if used != {device} or is_divided:
                    executables.append(session.compile_device(device))
                    rivals.append(device)
            except ProfilingError:
                continue  # it cannot run or hold the model alone, so it is no rival
        needs_proof = is_divided or len(used) > 1
        if not needs_proof:
            executables += _widths(machine, session, prepared.model, next(iter(used)))
        if len(executables) == 1:
            return Confirmation(holds=True)
        on_parts = is_divided or len(executables) > 1 + len(rivals)
        try:
            if machine.quota is not None and on_parts:
                found = _sustained(executables, rivals, machine.quota, needs_proof=needs_proof)
            else:
                how = sampling(divided=on_parts)
                samples = _raced(session, executables, _SECONDS, seed=options.seed, **how)
                found = _judged(samples, rivals, needs_proof=needs_proof)
            if is_lanes and options.executor == "OVERLAP":
                return replace(found, holds=found.seconds is not None)
            if found.holds and found.best_device and must_win_after_pauses(options, has_lanes=is_lanes):
                pair = [executables[0], executables[1 + rivals.index(found.best_device)]]
                paused = _raced(session, pair, PAUSED_SECONDS, seed=options.seed, pause_seconds=PAUSE_SECONDS)
                return replace(found, holds=_still_holds(paused))
        except ProfilingError as cause:
            _log.debug("an answer cannot be run: %s", cause)
            return Confirmation(holds=False)
    return found


def _widths(machine: Machine, session: ProfilingSession, model: ov.Model, device: str) -> list[Executable]:
    """A device on parts of its threads, where one of them could be faster than all."""
    found = []
    if is_worth_measuring(machine, device, model):
        for width in widths_for(machine, device, model):
            with suppress(ProfilingError):
                found.append(session.compile_width(device, width))
    return found


def _judged(samples: Sequence[FloatArray], rivals: Sequence[str], *, needs_proof: bool) -> Confirmation:
    """What back to back says of an answer.

    Args:
        samples: Of the answer, of its rivals, and of widths of its one device.
        rivals: Devices.
        needs_proof: It has to be faster than these.
    """
    own, others, widths = samples[0], samples[1 : 1 + len(rivals)], samples[1 + len(rivals) :]
    if not len(own):
        return Confirmation(holds=False)
    seconds = {device: float(np.median(s)) for device, s in zip(rivals, others, strict=True) if len(s)}
    best = min(seconds, key=seconds.__getitem__, default="")
    ratio = paired(own, others[rivals.index(best)]) if best else None
    narrow = [found for width in widths if (found := paired(width, own)) is not None]
    holds: bool | None = not any(map(is_faster, narrow))
    if were_disturbed(samples) or (best and ratio is None):
        holds = None
    elif ratio is not None:
        holds = is_faster(ratio) if needs_proof else holds and ratio.median <= 1 + MINIMAL_GAIN
    return Confirmation(holds, float(np.median(own)), best, seconds.get(best), ratio)


def _sustained(
    executables: Sequence[Executable], rivals: Sequence[str], quota: Quota, *, needs_proof: bool
) -> Confirmation:
    """What whole periods of a quota say of an answer, see :func:`_judged`."""
    names = [*rivals, *["a width"] * (len(executables) - 1 - len(rivals))]
    own, others = Candidate("the answer", None, 1), [Candidate(name, None, 1) for name in names]
    outcomes = run_over_periods(executables, quota, _SUSTAINED_SECONDS)
    found = zip((own, *others), outcomes, strict=True)
    turns = {runner: outcome for runner, outcome in found if not isinstance(outcome, ProfilingError)}
    if own not in turns:
        return Confirmation(holds=False)

    def wins(one: Candidate, other: Candidate) -> bool:
        verdict = Verdict(other, "", [other])
        return sustained([other], verdict, {c: turns[c] for c in (one, other)}).winner is one

    ran = [other for other in others if other in turns]
    holds = all(wins(own, other) for other in ran) if needs_proof else not any(wins(o, own) for o in ran)
    seconds = {c: float(np.mean([turn.seconds for turn in turns[c]])) for c in (own, *ran)}
    best = min((c for c in ran if c.name in rivals), key=seconds.__getitem__, default=None)
    if best is None:
        return Confirmation(holds, seconds[own])
    return Confirmation(holds, seconds[own], best.name, seconds[best])


def _still_holds(paused: Sequence[FloatArray]) -> bool | None:
    """Whether an answer is faster than the best device after idle gaps, too."""
    ratio = paired(*paused)
    return None if ratio is None or were_disturbed(paused) else is_faster(ratio, gain=0.0)


def _raced(
    session: ProfilingSession, executables: Sequence[Executable], seconds: float, **how: Any
) -> list[FloatArray]:
    """Samples of each, in as many rounds as prove something.

    Raises:
        ProfilingError: None of them can be run.
    """
    result = session.race(executables, seconds, min_rounds=CONVINCING_ROUNDS, **how)
    if result.rounds < CONVINCING_ROUNDS:
        # The first round also warms up, so the others are no longer.
        seconds = CONVINCING_ROUNDS * result.seconds / result.rounds
        result = session.race(executables, seconds, min_rounds=CONVINCING_ROUNDS, **how)
    return [entry.samples for entry in result.entries]


def _rivals(machine: Machine) -> list[str]:
    """The devices on which the whole model may be: pinned to no other."""
    pinned = set(machine.options.pins.values())
    return [device for device in machine.devices if pinned <= {device}]
