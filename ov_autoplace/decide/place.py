"""``ov_autoplace.place``: the placer with all its options as arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import openvino as ov

from ov_autoplace._base.progress import Progress
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import DEFAULT_SOLVERS, PREFIX, PlacerOptions
from ov_autoplace.decide.placer import Placer
from ov_autoplace.devices.extra_devices import own_core
from ov_autoplace.errors import OptionError
from ov_autoplace.plan.fitting import FittedPlacement
from ov_autoplace.plan.placement import Placement

__all__ = ["machine_for", "place", "place_fitted"]


def place(
    model: ov.Model,
    devices: str | Sequence[str] | None = None,
    mode: str = "PROFILE",
    core: ov.Core | None = None,
    *,
    time_budget_ms: float | None = None,
    pins: Mapping[str, str] | None = None,
    memory_limits: Mapping[str, float | str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    target: str | os.PathLike[str] | None = None,
    solvers: Sequence[str] | str = DEFAULT_SOLVERS,
    seed: int = 0,
    isolation: bool = True,
    executor: str = "AUTO",
    lanes: str | Sequence[tuple[int, int]] = (),
    arrivals: str = "ANY",
    output_tolerance: float | str = "AUTO",
    properties: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Placement:
    """Decide which device runs each op of ``model``, which is not modified.

    Args:
        model: Any model; names that occur twice are told apart as ``annotate`` renames them.
        devices: Real devices, ``"GPU,CPU"`` or a sequence; all of the Core's when ``None``.
        mode: ``ZERO_SHOT``, ``PROFILE`` or ``TUNE``.
        core: Where the devices are; ``None`` means a new Core.
        time_budget_ms: Milliseconds for the whole decision; the mode's default when ``None``. This and what
            follows is told at length in :class:`~ov_autoplace.decide.options.PlacerOptions`.
        pins: Device by pattern of op names.
        memory_limits: Bytes, or a text like ``"2GiB"``, by device.
        shapes: Shape by input name, for dynamic inputs.
        target: A target profile: a path, or a name of the catalogue.
        solvers: Who proposes placements, in this order.
        seed: Of everything random.
        isolation: Measure in a child process.
        executor: ``HETERO``, ``OVERLAP`` or ``AUTO``: who runs the answer.
        lanes: Into which lanes a CPU may be divided, like ``"2x1"``.
        arrivals: ``ANY``, or ``STEADY`` where requests come back to back.
        output_tolerance: By how much outputs may differ: ``AUTO``, a number, or ``OFF``.
        properties: OpenVINO properties that the model will be compiled with.
        progress: Called as the work goes on.

    Returns:
        A device for every op; ``decision`` says how it was chosen.

    Raises:
        AutoplaceError: One of its kinds, when the request or the model cannot be met.
    """
    settings = PlacerOptions.from_arguments(
        {
            "mode": mode,
            "time_budget_ms": time_budget_ms,
            "pins": pins,
            "memory_limits": memory_limits,
            "shapes": shapes,
            "target": target,
            "solvers": solvers,
            "seed": seed,
            "isolation": isolation,
            "executor": executor,
            "lanes": lanes,
            "arrivals": arrivals,
            "output_tolerance": output_tolerance,
            "properties": properties,
            "progress": progress,
        }
    )
    return place_fitted(machine_for(core or own_core(), devices, settings), model)[0]


def place_fitted(machine: Machine, model: ov.Model) -> tuple[Placement, FittedPlacement | None]:
    """:func:`place`, with what :func:`~ov_autoplace.plan.fitting.fit` finds for the two.

    Whoever writes or counts the placement next need not read the model again then, as long as nobody changes
    it. ``None`` where the decision did not need it.
    """
    return Placer(machine).place_fitted(model)


def machine_for(core: ov.Core, devices: str | Sequence[str] | None, settings: PlacerOptions) -> Machine:
    """The devices that a request names, on which it is to be met.

    Args:
        core: Where the devices are.
        devices: As :func:`place` takes them.
        settings: What is asked for; the machine has it with the properties that the devices take.

    Raises:
        AutoplaceError: A device that is not here, or an option that does not fit.
    """
    if settings.application is not None:
        raise OptionError(
            f"{PREFIX}APPLICATION is {settings.application!r}, a plan that compile_model follows; "
            "leave it out where something is to be decided"
        )
    if settings.target is not None and settings.mode == "ZERO_SHOT":
        # The profile of another machine names devices that need not be here.
        machine = Machine(core, load_target(settings.target).resolve_devices(devices), settings)
    else:
        machine = Machine.of(core, devices, settings)
    machine.check_named_devices()
    return machine
