"""What a machine of the fleet does: the work of the commands for one machine, with JSON in and out."""

from __future__ import annotations

import base64
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace._base.files import temporary_folder
from ov_autoplace.cost.target_json import target_text
from ov_autoplace.decide.confirmation import Confirmation, confirm
from ov_autoplace.decide.costs import CostSource
from ov_autoplace.decide.machine import KnownCosts, Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.place import machine_for
from ov_autoplace.decide.placer import Placer
from ov_autoplace.devices.models import read_model
from ov_autoplace.devices.names import resolve_devices
from ov_autoplace.errors import OptionError, ProfilingError
from ov_autoplace.fleet.answers import placement_values
from ov_autoplace.fleet.measurement import Measurement, names_digest
from ov_autoplace.fleet.models import local_model
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.calibrate import calibrate as measured_target
from ov_autoplace.measure.collect import NamedModel
from ov_autoplace.measure.collect import collect as collect_costs
from ov_autoplace.measure.counting import count_devices
from ov_autoplace.plan.fitting import fit
from ov_autoplace.plan.placement import Placement

__all__ = ["calibrate", "collect", "count", "place"]

_log = logging.getLogger("ov_autoplace")
_SECONDS = 10.0  # to race the answer, where the user says nothing


def count(request: Mapping[str, Any], data: Sequence[Any]) -> dict[str, Any]:
    """Count what the nodes of a model take on this machine, and what crossings cost here.

    Args:
        request: ``model`` (its digest), ``devices``, ``options``.
        data: The model.

    Raises:
        ProfilingError: No device can run the model, or the time budget is too short.
    """
    machine, model = _opened(request, data)
    options = machine.options
    prepared = prepare(model, options.shapes)
    left_out: dict[str, str] = {}
    while True:
        budget = Budget(math.inf if options.time_budget_ms is None else options.budget_seconds)
        try:
            with machine.open(prepared) as session:
                counted = count_devices(session, budget)
                if counted is None:
                    raise ProfilingError(
                        f"the time budget of {options.time_budget_ms:g} ms ended before every device had run "
                        "the model; give more with --time-budget-ms"
                    )
                transfers, _ = CostSource(machine, budget).transfers(session)
                costs = KnownCosts(machine.devices, counted, transfers.for_devices(machine.devices))
                return Measurement(costs, names_digest(prepared.graph.names), left_out).to_dict()
        except ProfilingError as cause:
            if cause.device is None or len(machine.devices) == 1:
                raise
            left_out[cause.device] = str(cause)
            machine = machine.without({cause.device: cause})


def place(request: Mapping[str, Any], data: Sequence[Any]) -> dict[str, Any]:
    """Place a model by what machines of this kind measured, and race the answer here.

    Args:
        request: As for :func:`count`; ``measurement`` has what is known, if anything.
        data: The model.
    """
    machine, model = _opened(request, data)
    left_out: Mapping[str, str] = {}
    if request["measurement"] is not None:
        known = Measurement.from_dict(request["measurement"], "this kind of machine")
        machine = replace(machine.only(known.costs.devices), known=known.costs)
        left_out = known.left_out
    # Nobody waits for this machine alone: there is time to prove more than where a program compiles a model.
    seconds = max(machine.options.budget_seconds, _SECONDS)
    budget = Budget(seconds) if machine.options.time_budget_ms is None else None
    placement = Placer(machine, left_out, budget).place(model)
    found = _confirmed(machine, model, placement)
    elsewhere = found.holds is False and machine.known is not None
    if elsewhere:
        _log.warning(
            "the answer to the medians of this kind does not hold here, so this machine's own is taken"
        )
        placement = Placer(replace(machine, known=None), left_out).place(model)
        found = _confirmed(machine, model, placement)
    return placement_values(placement) | {
        "confirmation": {
            "holds": found.holds,
            "ms": None if found.seconds is None else found.seconds * 1e3,
            "best_device": found.best_device,
            "best_device_ms": None if found.best_seconds is None else found.best_seconds * 1e3,
            "ratio": None if found.ratio is None else list(found.ratio),
            "of_medians": machine.known is not None and not elsewhere,
        }
    }


def _confirmed(machine: Machine, model: ov.Model, placement: Placement) -> Confirmation:
    """The answer beside the devices alone, in a race of its own; in ``ZERO_SHOT`` nothing is run."""
    if machine.options.mode == "ZERO_SHOT":
        return Confirmation(None)
    fitted = fit(model, placement)
    return confirm(machine, fitted.model, placement.plan.one_model)


def calibrate(request: Mapping[str, Any], data: Sequence[Any]) -> dict[str, Any]:
    """Measure this machine apart from any model.

    Args:
        request: ``devices``, ``options``, ``quick``.
        data: Nothing.
    """
    core = ov.Core()
    options = PlacerOptions.from_arguments(request["options"])
    target = measured_target(
        core,
        resolve_devices(core, request["devices"]),
        properties=options.properties,
        quick=request["quick"],
        isolation=options.isolation,
    )
    return {"target": target_text(target)}


def collect(request: Mapping[str, Any], data: Sequence[Any]) -> dict[str, Any]:
    """Measure what the operations of models cost on this machine.

    Args:
        request: ``devices``; ``models``, each with ``name``, ``family`` and ``model`` (its digest);
            ``seconds``, after which no further one is begun.
        data: XML and weights of each model in turn.
    """
    core = ov.Core()
    parts = zip(request["models"], data[::2], data[1::2], strict=True)
    models = (
        NamedModel(one["name"], one["family"], read_model(core, local_model(one["model"], files)))
        for one, *files in parts
    )
    with temporary_folder() as folder:
        path = folder / "costs.npz"
        devices = resolve_devices(core, request["devices"])
        collect_costs(models, path, core, devices, seconds=request["seconds"])
        return {"costs": base64.b64encode(path.read_bytes()).decode("ascii")}


def _opened(request: Mapping[str, Any], data: Sequence[Any]) -> tuple[Machine, ov.Model]:
    """The model of a request on the devices that this machine offers."""
    core = ov.Core()
    model = read_model(core, local_model(request["model"], data))
    machine = machine_for(core, request["devices"], PlacerOptions.from_arguments(request["options"]))
    if machine.wants_rate:
        raise OptionError(
            "a fleet places models for one request at a time; leave PERFORMANCE_HINT THROUGHPUT away"
        )
    return machine, model
