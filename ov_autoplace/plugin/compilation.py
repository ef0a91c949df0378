"""From a model and a device list to a compiled model: annotation, cached decision, or a new search."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import openvino as ov

from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import device_properties, single_device_config
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import AutoplaceError, PlacementError
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.graph.support import supported_ops
from ov_autoplace.graph.tied_weights import untie_weights
from ov_autoplace.placement.annotation import annotated_placement, set_affinities
from ov_autoplace.placement.bounded import open_bounded_crossings
from ov_autoplace.placement.lane_plan import LanePlan
from ov_autoplace.placement.placement import Placement
from ov_autoplace.plugin.blob_lock import cache_lock, tell_blobs_apart, writing_blobs
from ov_autoplace.plugin.decision_cache import DecisionCache, StoredDecision
from ov_autoplace.plugin.placed_model import PlacedModel
from ov_autoplace.plugin.rate import compile_for_rate

__all__ = ["compile_placed"]

_log = logging.getLogger("ov_autoplace")


Native = Callable[[ov.Model, str, Mapping[str, Any]], ov.CompiledModel]
"""``openvino.Core.compile_model`` without its AUTOPLACE part, bound to a Core."""


def _search(machine: Machine, model: ov.Model) -> Placement:
    from ov_autoplace.decide.placer import Placer

    return Placer(machine).place(model)


def _confirm(machine: Machine, model: ov.Model, stored: StoredDecision) -> bool | None:
    from ov_autoplace.decide.confirmation import confirm

    return confirm(machine, model, stored.device_of, stored.width, stored.plan).holds


def compile_placed(
    machine: Machine,
    model: ov.Model,
    compile_native: Native,
    explicit: bool = True,
    search: Callable[[Machine, ov.Model], Placement] = _search,
    confirm: Callable[[Machine, ov.Model, StoredDecision], bool | None] = _confirm,
) -> ov.CompiledModel:
    """Place ``model`` on the devices of a machine and compile it.

    Args:
        machine: The caller's Core, real devices, and the options, whose ``properties`` go to OpenVINO.
        model: Belongs to this function: it gets affinities.
        compile_native: Compiles.
        explicit: The caller named the devices; an annotation that uses others is then not applied.
        search: Finds a placement where none is known.
        confirm: Checks one that was found on a busy machine; ``None`` where that is not possible.
    """
    core, devices, options = machine.core, machine.devices, machine.options
    if len(devices) == 1:
        if devices[0] in options.memory_limits and not _holders(machine, model, devices):
            limit = options.memory_limits[devices[0]]
            raise PlacementError(
                f"the model does not fit into the {limit:.0f} bytes that {devices[0]} may hold; "
                "raise the limit or add a device"
            )
        if not machine.widths(devices[0]) and not machine.wants_rate:
            return _compile_on(machine, model, devices[0], compile_native)
    make_names_unique(model)
    annotated = _annotation(model, devices, explicit)
    if annotated is not None:
        return _compile_for(machine, model, annotated.to_dict(), compile_native, annotated.width)
    fold_static_shapes(model)
    if machine.wants_rate:
        return compile_for_rate(machine, model, compile_native)
    cache = DecisionCache.of(core, model, devices, options)
    if cache is None:
        # What is compiled here has its shapes folded, so it takes the decision as it was made.
        return _compile_answer(machine, model, _found(machine, model, search), compile_native)
    with cache_lock(cache.lock):
        # Who waited for another process to decide finds its decision here.
        stored = _stored(cache, machine, model, confirm)
        if stored is not None:
            try:
                compiled = _compile_for(
                    machine, model, stored.device_of, compile_native, stored.width, stored.plan
                )
                compiled.create_infer_request()  # where HETERO finds out that submodels do not fit
                return compiled
            except RuntimeError as cause:
                # What OpenVINO said; a sentence for the caller follows if the device refuses the model again.
                cache.drop(f"its placement cannot be run: {openvino_reason(cause.__cause__ or cause)}")
        placement = _found(machine, model, search)
        cache.store(placement)
        return _compile_answer(machine, model, placement, compile_native)


def _may_gain(machine: Machine, model: ov.Model) -> bool:
    """Whether the only device of a request may be faster on fewer threads than it has, or in lanes.

    That is seen without compiling anything, so that a model that is too large to gain by it compiles as fast
    as on the device itself.
    """
    from ov_autoplace.decide.divisions import is_worth_dividing
    from ov_autoplace.decide.widths import is_worth_measuring

    if machine.options.time_budget_ms == 0:
        return False
    device = machine.devices[0]
    return is_worth_measuring(machine, device, model) or is_worth_dividing(machine, device, model)


def _found(machine: Machine, model: ov.Model, search: Callable[[Machine, ov.Model], Placement]) -> Placement:
    """The answer of a search; the device itself where it is the only one and there is nothing to gain."""
    if len(machine.devices) > 1:
        return search(machine, model)
    try:
        if _may_gain(machine, model):
            return search(machine, model)
    except AutoplaceError as cause:
        _log.warning("%s is not tried on fewer threads or in lanes: %s", machine.devices[0], cause)
    names = (op.get_friendly_name() for op in model.get_ordered_ops())
    return Placement.from_dict(dict.fromkeys(names, machine.devices[0]))


def _compile_answer(
    machine: Machine, model: ov.Model, placement: Placement, compile_native: Native
) -> ov.CompiledModel:
    """Compile for what was decided about this very model."""
    return _compile_for(machine, model, placement.decided(), compile_native, placement.width, placement.plan)


def _compile_for(
    machine: Machine,
    model: ov.Model,
    device_of: Mapping[str, str],
    compile_native: Native,
    width: Width | None = None,
    plan: LanePlan | None = None,
) -> ov.CompiledModel:
    """Compile with the device of every op, and the width of the only one; or by a plan of lanes."""
    core, config = machine.core, machine.options.properties
    if plan is not None:
        from ov_autoplace.placement.scheduled import scheduled_model
        from ov_autoplace.plugin.scheduled import compile_scheduled

        return compile_scheduled(core, scheduled_model(model, plan), config, compile_native)
    used = [d for d in dict.fromkeys([*machine.devices, *device_of.values()]) if d in set(device_of.values())]
    if len(used) == 1:
        # Through HETERO it would be the same kernels behind one more layer.
        return _compile_on(machine, model, used[0], compile_native, width)
    try:
        set_affinities(model, open_bounded_crossings(model, device_of))
        untie_weights(model)
    except PlacementError as cause:
        device = _able_device(machine, model, device_of)
        if device is None:
            raise PlacementError(f"{cause}; no device of it can run and hold the whole model") from cause
        _log.warning("the whole model runs on %s: %s", device, cause)
        return _compile_on(machine, model, device, compile_native)
    tell_blobs_apart(core, model, used, config)
    with writing_blobs(core, hetero_config(core, used, config)) as native:
        return compile_native(model, f"HETERO:{','.join(used)}", native)


def _able_device(machine: Machine, model: ov.Model, device_of: Mapping[str, str]) -> str | None:
    """Of the devices that support every op and hold them all, the one that has most of them, if any."""
    devices = [device for device, _ in Counter(device_of.values()).most_common()]
    properties = {device: single_device_config(device, machine.options.properties) for device in devices}
    supported = supported_ops(machine.core, model, list(device_of), devices, properties)
    able = [device for d, device in enumerate(devices) if supported[:, d].all()]
    return next(iter(_holders(machine, model, able)), None)


def _holders(machine: Machine, model: ov.Model, devices: Sequence[str]) -> list[str]:
    """Those of ``devices`` that can hold the whole model, in the same order."""
    from ov_autoplace.measure.room import room_of

    options = machine.options
    room = room_of(machine.core, model, devices, options.shapes, options.memory_limits)
    return [device for device in devices if room.holds_all(device)]


def _compile_on(
    machine: Machine, model: ov.Model, device: str, compile_native: Native, width: Width | None = None
) -> ov.CompiledModel:
    """Compile for one device, on as many threads as OpenVINO takes or as a width says."""
    untie_weights(model)
    config = single_device_config(device, machine.options.properties)
    threads = _thread_properties(machine, model, device, width)
    with writing_blobs(machine.core, config) as native:
        compiled = compile_native(model, device, {**native, **threads})
    if threads.get("NUM_STREAMS") != "0":
        return compiled
    # In the calling thread, a CPU says of itself that it has none.
    return PlacedModel(compiled, {"INFERENCE_NUM_THREADS": int(threads["INFERENCE_NUM_THREADS"])})


def _thread_properties(machine: Machine, model: ov.Model, device: str, width: Width | None) -> dict[str, str]:
    """The properties of a width, such that no exception is lost; none where the user chose the threads."""
    if width is None:
        width = machine.confining_width(device)
        return {} if width is None else width.properties
    from ov_autoplace.graph.failing import can_fail

    if replace(width, in_caller=False) not in machine.widths(device, here=True):
        _log.info("%s runs on all threads that it is given: %s cannot be chosen", device, width.label)
        return {}
    if width.threads == 1 and not width.in_caller and can_fail(model):
        width = replace(width, in_caller=True)
    return width.properties


def hetero_config(core: ov.Core, devices: Sequence[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` for HETERO, with what each device needs to be run as it was measured."""
    flat = {key: value for key, value in config.items() if key != "DEVICE_PROPERTIES"}
    own = {
        device: {key: value for key, value in properties.items() if key not in flat or value != flat[key]}
        for device, properties in device_properties(core, devices, config).items()
    }
    own = {device: properties for device, properties in own.items() if properties}
    return {**flat, "DEVICE_PROPERTIES": own} if own else flat


def _annotation(model: ov.Model, devices: Sequence[str], explicit: bool) -> Placement | None:
    """The placement that the model carries, when its devices are among those asked for."""
    placement = annotated_placement(model)
    if placement is None:
        return None
    foreign = [d for d in placement.devices if d not in devices]
    if foreign:
        _log.warning(
            "the model is annotated for %s, which is not among %s: the annotation is left aside",
            ", ".join(foreign),
            ", ".join(devices) if explicit else "the devices of this machine (" + ", ".join(devices) + ")",
        )
        return None
    return placement


def _stored(
    cache: DecisionCache,
    machine: Machine,
    model: ov.Model,
    confirm: Callable[[Machine, ov.Model, StoredDecision], bool | None],
) -> StoredDecision | None:
    """The decision in the cache; one that was found on a busy machine has to win a short race first."""
    stored = cache.load([op.get_friendly_name() for op in model.get_ops()])
    if stored is None:
        return None
    return cache.checked(
        stored,
        stored.disturbed,
        lambda answer: confirm(machine, model, answer),
        lambda reason: cache.write(replace(stored, disturbed=False), None, reason),
    )
