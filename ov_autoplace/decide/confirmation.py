"""A short race of a stored answer that was found on a busy machine against the devices alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
import openvino as ov

from ov_autoplace._base.statistics import paired_ratio, was_disturbed
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.placement.lane_plan import LanePlan

__all__ = ["confirm"]

_log = logging.getLogger("ov_autoplace")
_SECONDS, _FEWEST_ROUNDS = 0.5, 6


def confirm(
    machine: Machine,
    model: ov.Model,
    device_of: Mapping[str, str],
    width: Width | None = None,
    plan: LanePlan | None = None,
) -> bool | None:
    """Whether a placement is as fast as the fastest of the devices that can run the model alone.

    Args:
        machine: The devices that were asked for.
        model: The model whose ops are placed.
        device_of: The placement.
        width: Of its one device.
        plan: Of its lanes.

    Returns:
        ``None`` where that cannot be told, because the machine is still busy; ``True`` where no device may
        run the model alone, so that there is nothing to compare with.
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
            _log.debug("a stored answer cannot be run: %s", cause)
            return False
        for device in _rivals(machine):
            try:
                if used != {device} or width is not None or plan is not None:
                    executables.append(session.compile_device(device))
            except ProfilingError:
                continue  # it cannot run or hold the model alone, so it is no rival
        if len(executables) == 1:
            return True
        result = session.race(executables, _SECONDS, seed=options.seed, min_rounds=_FEWEST_ROUNDS)
    samples = [entry.samples for entry in result.entries]
    if any(was_disturbed(found) for found in samples):
        return None
    best = min(samples[1:], key=lambda found: float(np.median(found)))
    return paired_ratio(samples[0], best).median <= 1 + MINIMAL_GAIN


def _rivals(machine: Machine) -> list[str]:
    """The devices on which the whole model may be: pinned to no other."""
    pinned = set(machine.options.pins.values())
    return [device for device in machine.devices if pinned <= {device}]
