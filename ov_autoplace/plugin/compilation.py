"""From a model and a device list to a compiled model: annotation, cached decision, or a new search."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._base.locks import locked
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import device_properties, property_text
from ov_autoplace.devices.support import supported_ops
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.placement.annotation import annotated_placement, set_affinities
from ov_autoplace.placement.bounded import open_bounded_crossings
from ov_autoplace.plugin.decision_cache import DecisionCache, cache_folder

__all__ = ["compile_placed", "single_device_config"]

_log = logging.getLogger("ov_autoplace")

# The name under which the Core knows the HETERO plugin a second time; see `device.py`.
_NATIVE_NAME = "AUTOPLACE"
# In ``CACHE_DIR``: the lock of whoever compiles there, and how long to wait for it and for a decision.
_BLOB_LOCK, _PATIENCE = "autoplace.lock", 300.0
_CHECKED = {True: "it holds", False: "it does not hold", None: "the machine is still busy"}
_PRECISION = ("INFERENCE_PRECISION_HINT", "EXECUTION_MODE_HINT")


def compile_placed(
    core: ov.Core,
    model: ov.Model,
    devices: Sequence[str],
    options: PlacerOptions,
    compile_native: Callable[..., ov.CompiledModel],
    explicit: bool = True,
) -> ov.CompiledModel:
    """Place ``model`` on ``devices`` and compile it.

    Args:
        core: The caller's Core.
        model: Belongs to this function: it gets affinities.
        devices: Real devices.
        options: The placer's options; ``options.properties`` go to OpenVINO.
        compile_native: ``openvino.Core.compile_model`` without its AUTOPLACE part, bound to ``core``.
        explicit: The caller named the devices; an annotation that uses others is then not applied.
    """
    if len(devices) == 1:
        if devices[0] in options.memory_limits and not _holders(core, model, devices, options):
            limit = options.memory_limits[devices[0]]
            raise PlacementError(
                f"the model does not fit into the {limit:.0f} bytes that {devices[0]} may hold; "
                "raise the limit or add a device"
            )
        return _compile_on(core, model, devices[0], options, compile_native)
    make_names_unique(model)
    device_of = _annotation(core, model, devices, explicit)
    if device_of is not None:
        return _compile_for(core, model, device_of, devices, options, compile_native)
    fold_static_shapes(model)
    cache = DecisionCache.of(core, model, devices, options)
    if cache is None:
        return _compile_for(
            core, model, _search(core, model, devices, options), devices, options, compile_native
        )
    with _lock(cache.lock):
        # Who waited for another process to decide finds its decision here.
        device_of = _stored(cache, core, model, devices, options)
        if device_of is not None:
            try:
                compiled = _compile_for(core, model, device_of, devices, options, compile_native)
                compiled.create_infer_request()  # where HETERO finds out that submodels do not fit
                return compiled
            except RuntimeError as cause:
                cache.drop(f"its placement cannot be run: {openvino_reason(cause)}")
        device_of = _search(core, model, devices, options, cache)
        return _compile_for(core, model, device_of, devices, options, compile_native)


def _compile_for(
    core: ov.Core,
    model: ov.Model,
    device_of: Mapping[str, str],
    devices: Sequence[str],
    options: PlacerOptions,
    compile_native: Callable[..., ov.CompiledModel],
) -> ov.CompiledModel:
    """Compile with the device of every op."""
    used = [d for d in dict.fromkeys([*devices, *device_of.values()]) if d in set(device_of.values())]
    if len(used) == 1:
        # Through HETERO it would be the same kernels behind one more layer.
        return _compile_on(core, model, used[0], options, compile_native)
    config = options.properties
    try:
        set_affinities(model, open_bounded_crossings(model, device_of))
    except PlacementError as cause:
        device = _able_device(core, model, device_of, options)
        if device is None:
            raise PlacementError(f"{cause}; no device of it can run and hold the whole model") from cause
        _log.warning("the whole model runs on %s: %s", device, cause)
        return _compile_on(core, model, device, options, compile_native)
    if cache_folder(core, config):
        _tell_blobs_apart(core, model, used, config)
    with _writing_blobs(core, hetero_config(core, used, config)) as native:
        return compile_native(model, f"{_NATIVE_NAME}:{','.join(used)}", native)


def _able_device(
    core: ov.Core, model: ov.Model, device_of: Mapping[str, str], options: PlacerOptions
) -> str | None:
    """Of the devices that support every op and hold them all, the one that has most of them, if any."""
    devices = [device for device, _ in Counter(device_of.values()).most_common()]
    properties = {device: single_device_config(device, options.properties) for device in devices}
    supported = supported_ops(core, model, list(device_of), devices, properties)
    able = [device for d, device in enumerate(devices) if supported[:, d].all()]
    return next(iter(_holders(core, model, able, options)), None)


def _holders(core: ov.Core, model: ov.Model, devices: Sequence[str], options: PlacerOptions) -> list[str]:
    """Those of ``devices`` that can hold the whole model, in the same order."""
    from ov_autoplace.measure.room import room_of

    room = room_of(core, model, devices, options.shapes, options.memory_limits)
    return [device for device in devices if room.holds_all(device)]


def _compile_on(
    core: ov.Core,
    model: ov.Model,
    device: str,
    options: PlacerOptions,
    compile_native: Callable[..., ov.CompiledModel],
) -> ov.CompiledModel:
    """Compile for one device."""
    with _writing_blobs(core, single_device_config(device, options.properties)) as native:
        return compile_native(model, device, native)


@contextmanager
def _writing_blobs(core: ov.Core, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Lets one process at a time compile with a ``CACHE_DIR``; yields the configuration to compile with.

    Processes of OpenVINO 2026.4.1 that write and read the same blob at once can die of it.
    """
    folder = cache_folder(core, config)
    if not folder:
        yield config
        return
    with _lock(Path(folder) / _BLOB_LOCK) as is_locked:
        if not is_locked:
            _log.debug("compiled without the cache in %s, because other processes are using it", folder)
        yield config if is_locked else {**config, "CACHE_DIR": ""}


@contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """A lock in ``CACHE_DIR``, which is made where it is missing; yields whether it was got in time."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, _PATIENCE) as is_locked:
        yield is_locked


def _tell_blobs_apart(
    core: ov.Core, model: ov.Model, devices: Sequence[str], config: Mapping[str, Any]
) -> None:
    """Write the devices' properties into the model, which is part of the key of OpenVINO's cache.

    HETERO's key holds no property of its devices, and a GPU's blob holds kernels of one precision: what was
    compiled for f16 would be taken for f32.
    """
    properties = {}
    for device in devices:
        own = single_device_config(device, config)
        for key in _PRECISION:
            with suppress(RuntimeError):  # this plugin does not know it
                own.setdefault(key, core.get_property(device, key))
        properties[device] = {k: property_text(v) for k, v in sorted(own.items()) if k != "CACHE_DIR"}
    text = json.dumps(properties, sort_keys=True)
    model.set_rt_info(hashlib.sha256(text.encode()).hexdigest(), ["ov_autoplace", "device_properties"])


def single_device_config(device: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The flat configuration of one device out of one that may hold ``DEVICE_PROPERTIES``."""
    flat = {key: value for key, value in config.items() if key != "DEVICE_PROPERTIES"}
    own = config.get("DEVICE_PROPERTIES", {})
    return {**flat, **own.get(device.split(".")[0], {}), **own.get(device, {})}


def hetero_config(core: ov.Core, devices: Sequence[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` for HETERO, with what each device needs to be run as it was measured."""
    flat = {key: value for key, value in config.items() if key != "DEVICE_PROPERTIES"}
    own = {
        device: {key: value for key, value in properties.items() if key not in flat or value != flat[key]}
        for device, properties in device_properties(core, devices, config).items()
    }
    own = {device: properties for device, properties in own.items() if properties}
    return {**flat, "DEVICE_PROPERTIES": own} if own else flat


def _annotation(
    core: ov.Core, model: ov.Model, devices: Sequence[str], explicit: bool
) -> dict[str, str] | None:
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
    return placement.to_dict()


def _stored(
    cache: DecisionCache, core: ov.Core, model: ov.Model, devices: Sequence[str], options: PlacerOptions
) -> dict[str, str] | None:
    """The decision in the cache; one that was found on a busy machine has to win a short race first."""
    stored = cache.load([op.get_friendly_name() for op in model.get_ops()])
    if stored is None or not stored.disturbed:
        return stored.device_of if stored else None
    from ov_autoplace.decide.confirmation import confirm
    from ov_autoplace.decide.machine import Machine

    answer = confirm(Machine(core, tuple(devices), options), model, stored.device_of)
    _log.info("a decision that was found on a busy machine was checked: %s", _CHECKED[answer])
    if answer is False:
        return None
    if answer:
        reason = "found while other work disturbed the measurements, and confirmed by a race"
        cache.write(replace(stored, disturbed=False), None, reason)
    return stored.device_of


def _search(
    core: ov.Core,
    model: ov.Model,
    devices: Sequence[str],
    options: PlacerOptions,
    cache: DecisionCache | None = None,
) -> dict[str, str]:
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.decide.placer import Placer

    placement = Placer(Machine(core, tuple(devices), options)).place(model)
    if cache is not None:
        cache.store(placement)
    return placement.decided()  # what is compiled here has its shapes folded
