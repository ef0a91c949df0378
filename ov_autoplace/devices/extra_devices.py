"""Devices that the environment adds to every Core: plugins a second time, under another name."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import openvino as ov

from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import EXTRA_DEVICES, VIRTUAL_DEVICES, plugin_library
from ov_autoplace.errors import AutoplaceError, DeviceError

__all__ = ["EXTRA_DEVICES_VARIABLE", "are_wanted", "own_core", "register_extra_devices"]

EXTRA_DEVICES_VARIABLE = "AUTOPLACE_EXTRA_DEVICES"

# Registering asks the Core, whose methods register; held by the thread whose turn it is.
_lock = threading.RLock()
_registering: list[ov.Core] = []


@dataclass(frozen=True)
class _Alias:
    """One entry: ``XCPU=CPU,INFERENCE_NUM_THREADS=1``."""

    name: str
    plugin: str
    properties: Mapping[str, str]
    entry: str


def own_core() -> ov.Core:
    """The Core of callers who give none; kept, because dropping one is dangerous (``names.bare_core``)."""
    return _own_core(tuple(_entries()))


@cache
def _own_core(entries: tuple[str, ...]) -> ov.Core:
    return ov.Core()


def are_wanted(device_name: str | None) -> bool:
    """Whether a request is about devices that the environment adds: it names one of them, or none at all.

    Args:
        device_name: As the methods of a Core take it; ``None`` and ``AUTO`` are about all devices.
    """
    entries = _entries()
    if not entries:
        return False
    parts = {part.split(".")[0] for part in re.split(r"[:,()]", device_name or "") if part[:1] != "-"}
    named = parts - {"", *VIRTUAL_DEVICES}
    return not named or bool(named & {re.split("[=,]", entry)[0].strip() for entry in entries})


def register_extra_devices(core: ov.Core) -> None:
    """Register the devices that the environment asks for, once per Core; meant for demos and tests.

    ``AUTOPLACE_EXTRA_DEVICES="XCPU=CPU"`` makes the CPU plugin available a second time as ``XCPU``.
    Entries are separated by ``;`` and may carry properties: ``XCPU=CPU,INFERENCE_NUM_THREADS=1``.

    Raises:
        DeviceError: An entry that does not parse, or a plugin that cannot be registered.
    """
    if EXTRA_DEVICES in core.__dict__ or not _entries():
        return
    with _lock:
        if EXTRA_DEVICES in core.__dict__ or core in _registering:
            return
        _registering.append(core)
        try:
            for alias in [_parsed(entry) for entry in _entries()]:
                _register(core, alias)
            setattr(core, EXTRA_DEVICES, True)
        finally:
            _registering.remove(core)


def _entries() -> list[str]:
    stripped = (entry.strip() for entry in os.environ.get(EXTRA_DEVICES_VARIABLE, "").split(";"))
    return [entry for entry in stripped if entry]


def _parsed(entry: str) -> _Alias:
    if not entry.isprintable():
        raise DeviceError(f"{EXTRA_DEVICES_VARIABLE}: {entry!r} holds characters that no name has")
    first, *rest = entry.split(",")
    name, _, plugin = (part.strip() for part in first.partition("="))
    pairs = [item.partition("=") for item in rest]
    if not name or not plugin or not all(key and value for key, _, value in pairs):
        raise DeviceError(
            f"{EXTRA_DEVICES_VARIABLE}: {entry!r} does not read like ALIAS=DEVICE[,PROPERTY=VALUE...]"
        )
    return _Alias(name, plugin, {key.strip(): value.strip() for key, _, value in pairs}, entry)


def _register(core: ov.Core, alias: _Alias) -> None:
    try:
        library = plugin_library(core, alias.plugin)
    except DeviceError as cause:
        raise DeviceError(f"{EXTRA_DEVICES_VARIABLE}: {alias.entry!r}: {cause}") from cause
    try:
        with suppress(RuntimeError):  # whoever made the Core may have registered it
            core.register_plugin(str(library), alias.name)
        core.get_versions(alias.name)
    except RuntimeError as cause:
        raise DeviceError(
            f"{EXTRA_DEVICES_VARIABLE}: {alias.plugin} cannot be registered as {alias.name!r}; "
            f"OpenVINO wants an alias that contains the plugin's own name, like X{alias.plugin}"
        ) from cause
    if alias.properties:
        try:
            core.set_property(alias.name, dict(alias.properties))
        except (RuntimeError, AutoplaceError) as cause:
            raise DeviceError(
                f"{EXTRA_DEVICES_VARIABLE}: {alias.name!r} takes none of these properties: {alias.entry!r} "
                f"({openvino_reason(cause)})"
            ) from cause
