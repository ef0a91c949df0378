"""The devices of a Core: which there are, under which names, and a profiler that sees the same ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import openvino as ov

from ov_autoplace._base.text import no_such_device
from ov_autoplace.errors import DeviceError

__all__ = [
    "CACHE_PROPERTIES",
    "EMULATED",
    "EXTRA_DEVICES",
    "VIRTUAL_DEVICES",
    "bare_core",
    "core_with",
    "device_properties",
    "device_settings",
    "emulation",
    "fingerprint",
    "full_device_name",
    "is_emulated",
    "libraries_of",
    "plugin_library",
    "property_text",
    "remember_properties",
    "resolve_devices",
    "single_device_config",
]

Libraries: TypeAlias = tuple[tuple[str, str], ...]

EXTRA_DEVICES = "_autoplace_extra_devices"
"""Attribute of a Core that has the devices of ``devices/extra_devices.py``, or shall not get them."""

EMULATED = "outputs undefined"
"""Stands in the full name of a device whose times are made up and which computes nothing, such as the virtual
GPU of ``tools/virtual_gpu`` when its kernels are paced."""

CACHE_PROPERTIES = ("CACHE_DIR", "CACHE_ENCRYPTION_CALLBACKS")
"""Say where OpenVINO keeps what it compiled, and how; what is compiled and measured depends on none."""

VIRTUAL_DEVICES = ("AUTO", "AUTOPLACE", "BATCH", "HETERO", "MULTI")

# HETERO gives CPU submodels one shared executor through this internal property, which makes thread
# settings void; see `device_properties`.
_EXCLUSIVE = "EXCLUSIVE_ASYNC_REQUESTS"

_log = logging.getLogger("ov_autoplace")

# Attribute of a Core: the properties that were set on its devices since this package was imported.
_NOTED = "_autoplace_device_properties"


def resolve_devices(core: ov.Core, devices: str | Sequence[str] | None = None) -> tuple[str, ...]:
    """The real devices that a request names, in its order.

    Args:
        core: Where to look them up.
        devices: ``"GPU,CPU"`` or a sequence of names; ``None`` or empty means all devices of the Core,
            accelerators before CPUs, as HETERO would want them listed.

    Raises:
        DeviceError: A name that the Core does not know, a virtual device, or a name given twice.
    """
    available = [d for d in core.available_devices if d.split(".")[0] not in VIRTUAL_DEVICES]
    if not devices:
        return tuple(sorted(available, key=lambda name: ("CPU" in name, name)))
    names = [d.strip() for d in devices.split(",")] if isinstance(devices, str) else list(devices)
    if not all(names):
        raise DeviceError(f"the device list {devices!r} holds an empty name; write it like GPU,CPU")
    for name in names:
        if name.split(".")[0].split(":")[0] in VIRTUAL_DEVICES:
            raise DeviceError(f"{name!r} is a virtual device; name real ones: {', '.join(available)}")
        if not _exists(core, name, available):
            raise DeviceError(no_such_device(name, available))
    # The only device of its kind is listed without a number, and is the same one with its number.
    bases = [name.split(".")[0] for name in names]
    listed = [base if base in available else name for base, name in zip(bases, names, strict=True)]
    for name, one in zip(names, listed, strict=True):
        if listed.count(one) > 1:
            raise DeviceError(f"device {name!r} is listed twice")
    return tuple(names)


def _exists(core: ov.Core, name: str, available: Sequence[str]) -> bool:
    """Whether OpenVINO takes ``name``, which ``available`` may hold in another form.

    ``GPU`` means the first of ``GPU.0``, ``GPU.1``; a single GPU is listed as ``GPU`` and is also
    ``GPU.0``.
    """
    base, _, number = name.partition(".")
    if name in available or any(device.split(".")[0] == name for device in available):
        return True
    return bool(number) and base in available and number in core.get_property(base, "AVAILABLE_DEVICES")


def bare_core() -> ov.Core:
    """A new Core that knows what OpenVINO finds by itself, whatever devices the environment adds.

    One that loads a plugin is to be kept: when it goes, OpenVINO ends the threads of all models that are gone
    and waits for them with Python's lock held. A thread that has yet to drop a request needs that lock, and
    the program would hang. Reading models and asking what is registered loads none.
    """
    core = ov.Core()
    setattr(core, EXTRA_DEVICES, True)
    return core


def libraries_of(core: ov.Core, devices: Iterable[str]) -> Libraries:
    """Plugins of a Core that OpenVINO does not find by itself: name and path, in the order of the names.

    Raises:
        DeviceError: A device that is not here.
    """
    known = {device.split(".")[0] for device in core_with().available_devices}
    others = {device.split(".")[0] for device in devices} - known
    return tuple((name, str(plugin_library(core, name))) for name in sorted(others))


@cache
def core_with(libraries: Libraries = (), *, for_trials: bool = False) -> ov.Core:
    """The Core that this process keeps with some more plugins; a new one is dear, and see :func:`bare_core`.

    Args:
        libraries: What :func:`libraries_of` found.
        for_trials: The one on which values are tried; nobody sets anything on the other.
    """
    core = bare_core()
    for name, path in libraries:
        with suppress(RuntimeError):  # a name that OpenVINO knows and does not list
            core.register_plugin(path, name)
    return core


def plugin_library(core: ov.Core, device: str) -> Path:
    """The shared library behind a device name, found through the version that its plugin reports.

    Raises:
        DeviceError: The device is not registered on this Core or its library is not where OpenVINO is.
    """
    name = device.split(".")[0]
    try:
        versions = core.get_versions(name)
    except RuntimeError as cause:
        raise DeviceError(f"there is no device {device!r} on this Core") from cause
    if not versions:
        raise DeviceError(f"there is no device {device!r} on this Core")
    description = next(iter(versions.values())).description
    library = Path(ov.__file__).parent / "libs" / f"lib{description}.so"
    if not library.exists():
        raise DeviceError(
            f"the plugin of {device!r} reports itself as {description!r}, but {library} is missing"
        )
    return library


def property_text(value: Any) -> str:
    """A property value in the text form that the C++ runtime parses."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, ov.Type):
        return str(value.to_string())
    name = getattr(value, "name", None)  # enumerations of the bindings
    return name if isinstance(name, str) else str(value)


def device_properties(
    core: ov.Core, devices: Sequence[str], config: Mapping[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """The OpenVINO properties that each device gets when a model is compiled with ``config``.

    Flat properties go to every device, ``DEVICE_PROPERTIES`` to the named one. Devices that know
    ``EXCLUSIVE_ASYNC_REQUESTS`` get it as ``False`` unless the caller says otherwise: HETERO would turn
    it on for them, and then thread and stream settings are reported but not used.
    """
    config = dict(config or {})
    own: Mapping[str, Mapping[str, Any]] = config.pop("DEVICE_PROPERTIES", {})
    result: dict[str, dict[str, Any]] = {}
    for device in devices:
        properties: dict[str, Any] = {}
        try:
            core.get_property(device, _EXCLUSIVE)
            properties[_EXCLUSIVE] = False
        except RuntimeError:
            pass  # this plugin has no such property
        base = device.split(".")[0]
        result[device] = {**properties, **config, **own.get(base, {}), **own.get(device, {})}
    return result


def single_device_config(device: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The flat configuration of one device out of one that may hold ``DEVICE_PROPERTIES``."""
    flat = {key: value for key, value in config.items() if key != "DEVICE_PROPERTIES"}
    own = config.get("DEVICE_PROPERTIES", {})
    return {**flat, **own.get(device.split(".")[0], {}), **own.get(device, {})}


def device_settings(
    core: ov.Core, devices: Sequence[str], properties: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, dict[str, str]]:
    """All properties in which each device differs from what a new Core makes of it, as text.

    Args:
        core: The Core on which properties were set.
        devices: Real devices.
        properties: More properties per device; they win.
    """
    fresh = core_with(libraries_of(core, devices))
    settings: dict[str, dict[str, str]] = {}
    for device in devices:
        base = device.split(".")[0]
        extra = {key: property_text(value) for key, value in (properties or {}).get(device, {}).items()}
        settings[device] = {**_changed_properties(core, fresh, base), **extra}
    return settings


def remember_properties(core: ov.Core, device: str, properties: Mapping[str, Any]) -> None:
    """Note properties that were set on ``core``: some of them a plugin takes but never tells again."""
    noted: dict[str, dict[str, str]] = core.__dict__.setdefault(_NOTED, {})
    noted.setdefault(device, {}).update({str(key): property_text(value) for key, value in properties.items()})


def _changed_properties(core: ov.Core, fresh: ov.Core, device: str) -> dict[str, str]:
    """Writable properties of a device that differ from those of a new Core, or were seen being set."""
    changed = {}
    names = [
        key for key, access in core.get_property(device, "SUPPORTED_PROPERTIES").items() if access == "RW"
    ]
    for key in [*names, _EXCLUSIVE]:
        try:
            value, default = core.get_property(device, key), fresh.get_property(device, key)
        except RuntimeError:
            continue  # write-only in practice, or unknown to this plugin
        if value != default:
            changed[key] = property_text(value)
    noted = core.__dict__.get(_NOTED, {}).get(device, {})
    return {**noted, **changed}


def full_device_name(core: ov.Core, device: str) -> str:
    """The hardware in its maker's words; empty where the plugin does not tell them."""
    try:
        return str(core.get_property(device, "FULL_DEVICE_NAME"))
    except RuntimeError:
        return ""


def is_emulated(core: ov.Core, device: str) -> bool:
    """Whether a device's times are made up and its outputs are not to be looked at."""
    return EMULATED in full_device_name(core, device)


def emulation(core: ov.Core, devices: Sequence[str]) -> str:
    """What stands behind the source of numbers: `` (emulated: GPU)``, or nothing if all devices are real."""
    found = [device for device in devices if is_emulated(core, device)]
    return f" (emulated: {', '.join(found)})" if found else ""


def precision_of(core: ov.Core, device: str, settings: Mapping[str, Any]) -> str:
    """With which floating-point numbers a device computes, like ``bf16``; empty where it does not say.

    Args:
        core: Knows the device.
        device: Its name.
        settings: What it compiles with.
    """
    hint = settings.get("INFERENCE_PRECISION_HINT")
    if hint is None:
        if str(settings.get("EXECUTION_MODE_HINT", "")).upper().endswith("ACCURACY"):
            return "f32"
        try:
            hint = core.get_property(device, "INFERENCE_PRECISION_HINT")
        except RuntimeError:
            return ""
    return property_text(hint)


def fingerprint(core: ov.Core, devices: Sequence[str]) -> str:
    """One line that changes when a device, its driver or OpenVINO changes."""
    parts = [ov.get_version()]
    for device in devices:
        version = next(iter(core.get_versions(device.split(".")[0]).values()))
        full_name = full_device_name(core, device)
        driver = ""
        for key in ("GPU_DRIVER_VERSION", "NPU_DRIVER_VERSION"):
            try:
                driver = str(core.get_property(device, key))
            except RuntimeError:
                continue
        parts.append(f"{device}={full_name}|{version.build_number}|{driver}")
    return "; ".join(parts)
