"""From a model and a device list to a compiled model: annotation, cached decision, or a new search."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import openvino as ov

from ov_autoplace.decision_cache import DecisionCache, cache_folder
from ov_autoplace.devices import device_properties, property_text
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.options import PlacerOptions
from ov_autoplace.placement.annotation import annotated_placement, set_affinities
from ov_autoplace.placement.bounded import open_bounded_crossings

__all__ = ["compile_placed", "single_device_config"]

_log = logging.getLogger("ov_autoplace")

# The name under which the Core knows the HETERO plugin a second time; see `device.py`.
_NATIVE_NAME = "AUTOPLACE"
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
    config = options.properties
    if len(devices) == 1:
        return compile_native(model, devices[0], single_device_config(devices[0], config))
    make_names_unique(model)
    device_of = _annotation(core, model, devices, explicit)
    if device_of is None:
        fold_static_shapes(model)
        device_of = _placed(core, model, devices, options)
    used = [d for d in dict.fromkeys([*devices, *device_of.values()]) if d in set(device_of.values())]
    if len(used) == 1:
        # Through HETERO it would be the same kernels behind one more layer.
        return compile_native(model, used[0], single_device_config(used[0], config))
    try:
        set_affinities(model, open_bounded_crossings(model, device_of))
    except PlacementError as cause:
        most = Counter(device_of.values()).most_common(1)[0][0]
        _log.warning("the whole model runs on %s: %s", most, cause)
        return compile_native(model, most, single_device_config(most, config))
    if cache_folder(core, config):
        _tell_blobs_apart(core, model, used, config)
    return compile_native(model, f"{_NATIVE_NAME}:{','.join(used)}", hetero_config(core, used, config))


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


def _placed(core: ov.Core, model: ov.Model, devices: Sequence[str], options: PlacerOptions) -> dict[str, str]:
    cache = DecisionCache.of(core, model, devices, options)
    device_of = cache.load() if cache else None
    if device_of is None:
        from ov_autoplace.placer import Placer

        placement = Placer(core, devices, options).place(model)
        device_of = placement.to_dict()
        if cache:
            cache.store(placement)
    return device_of
