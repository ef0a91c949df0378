"""A short race of an answer that was found on a busy machine, or elsewhere, against the devices alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import openvino as ov

from ov_autoplace._base.statistics import Interval, paired_ratio, was_disturbed
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.placement.lane_plan import LanePlan

__all__ = ["Confirmation", "confirm"]

_log = logging.getLogger("ov_autoplace")
_SECONDS, _FEWEST_ROUNDS = 0.5, 6


@dataclass(frozen=True)
class Confirmation:
    """A placement beside the devices alone.

    Attributes:
        holds: Whether it is as fast as the fastest of them; ``None`` where that cannot be told, because the
            machine is busy. It is where no device may run the model alone: there is nothing to compare with.
        seconds: Median latency of the placement; ``None`` where it was not run.
        best_device: The fastest of the other placements on one device; empty where there is none.
        best_seconds: Its median latency.
        ratio: Of the two, in the same rounds.
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
    """Run a placement beside the devices that can run the model alone.

    Args:
        machine: The devices that were asked for.
        model: The model whose ops are placed.
        device_of: The placement.
        width: Of its one device.
        plan: Of its lanes.
    """
    options = machine.options
    used = set(device_of.values())
    with machine.open(prepare(model, options.shapes)) as session:
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
                if used != {device} or width is not None or plan is not None:
                    executables.append(session.compile_device(device))
                    rivals.append(device)
            except ProfilingError:
                continue  # it cannot run or hold the model alone, so it is no rival
        if not rivals:
            return Confirmation(holds=True)
        result = session.race(executables, _SECONDS, seed=options.seed, min_rounds=_FEWEST_ROUNDS)
    samples = [entry.samples for entry in result.entries]
    if not len(samples[0]):
        return Confirmation(holds=False)
    ran = [i for i in range(1, len(samples)) if len(samples[i])]
    if not ran:
        return Confirmation(holds=True, seconds=float(np.median(samples[0])))
    medians = {i: float(np.median(samples[i])) for i in (0, *ran)}
    best = min(ran, key=medians.__getitem__)
    ratio = paired_ratio(samples[0], samples[best])
    disturbed = any(was_disturbed(found) for found in samples)
    holds = None if disturbed else ratio.median <= 1 + MINIMAL_GAIN
    return Confirmation(holds, medians[0], rivals[best - 1], medians[best], ratio)


def _rivals(machine: Machine) -> list[str]:
    """The devices on which the whole model may be: pinned to no other."""
    pinned = set(machine.options.pins.values())
    return [device for device in machine.devices if pinned <= {device}]
