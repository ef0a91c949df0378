"""Which of a request's OpenVINO properties go to which device, and which no device takes.

``compile_model`` of one device refuses a property that the device does not know, HETERO drops it without a
word. A list of devices asks for something in between: a flat property goes to all devices that know it, and
one that none of them takes is refused, like a value that a device does not take.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import openvino as ov

from ov_autoplace._base.text import nearest, no_such_device
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import core_with, libraries_of
from ov_autoplace.errors import OptionError

__all__ = ["DEVICE_PROPERTIES", "config_for", "typed_value", "writable_properties"]

DEVICE_PROPERTIES = "DEVICE_PROPERTIES"
"""The property that holds those of single devices."""

# What the Core itself takes wherever a device's properties stand. It tells of a few of them, and of none
# whether it takes a value.
_OF_THE_CORE = ("CACHE_DIR", "ENABLE_MMAP", "FORCE_TBB_TERMINATE")
_WRITABLE = ("RW", "WO")
_PER_DEVICE = re.compile(r"\{\s*([\w.]+:[^:{},]+(?:,\s*[\w.]+:[^:{},]+)*)\s*\}")
_OWN_GROUP = re.compile(r"\s*([\w.]+)\s*:\s*\{([^{}]*)\}\s*")


def config_for(core: ov.Core, devices: Sequence[str], properties: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration in which every device finds what it knows, and nothing that it refuses.

    Args:
        core: Knows the devices.
        devices: Real devices.
        properties: OpenVINO's properties. A value may be one per device, ``{GPU:1,CPU:2}``, as benchmark_app
            writes them. ``DEVICE_PROPERTIES`` may be a mapping or OpenVINO's text of one; what it says of
            other devices that OpenVINO has a plugin for is left out.

    Returns:
        The properties that all devices know, and ``DEVICE_PROPERTIES`` where one knows more. Making it
        again changes nothing.

    Raises:
        OptionError: A property that no device knows, a value that one refuses, or ``DEVICE_PROPERTIES`` of
            what is no device.
    """
    flat = dict(properties)
    given = _own_properties(flat.pop(DEVICE_PROPERTIES, {}))
    _check_names(core, given, devices)
    trial = _Trial(core, devices)
    result: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    for key, value in flat.items():
        values = _values_per_device(value, devices)
        takers = devices if key in _OF_THE_CORE else trial.takers(devices, key, values)
        if len(takers) == len(devices) and len(set(map(str, values.values()))) == 1:
            result[key] = values[devices[0]]
        else:
            for device in takers:
                own.setdefault(device, {})[key] = values[device]
    for device in devices:
        told = {**given.get(device.split(".")[0], {}), **given.get(device, {})}
        for key, value in told.items():
            if key not in _OF_THE_CORE:
                trial.takers([device], key, {device: value})
        if told:
            own.setdefault(device, {}).update(told)
    return {**result, DEVICE_PROPERTIES: own} if own else result


def writable_properties(core: ov.Core, device: str) -> dict[str, str]:
    """What can be set of a device: ``RW``, or ``WO`` where it cannot be read, by name."""
    supported: Mapping[str, str] = core.get_property(device, "SUPPORTED_PROPERTIES")
    return {str(key): str(access) for key, access in supported.items() if access in _WRITABLE}


def typed_value(core: ov.Core, device: str, key: str, value: Any) -> Any:
    """A property's value as the device tells it after it was set, ``2`` for ``"2"``.

    Raises:
        RuntimeError: The device does not take it, or does not tell.
    """
    trial = _Trial(core, [device])
    with _TRYING:
        trial.set(device, key, value)
        return trial.core.get_property(device, key)


_TRYING = threading.RLock()  # the Core for it is shared


class _Trial:
    """A Core that is for trying values, so that nothing is set, or set half, where it counts.

    Args:
        core: Whose devices it knows.
        devices: Those that are asked.
    """

    def __init__(self, core: ov.Core, devices: Sequence[str]) -> None:
        self._given = core
        self.core = core_with(libraries_of(core, devices), for_trials=True)
        self._writable: dict[str, dict[str, str]] = {}

    def takers(self, devices: Sequence[str], key: str, values: Mapping[str, Any]) -> list[str]:
        """The devices that know a property.

        Raises:
            OptionError: None does, or one that does refuses its value.
        """
        told = [device for device in devices if key in self._writable_of(device)]
        refusals = {device: self._refusal(device, key, values[device]) for device in told or devices}
        takers = [device for device, reason in refusals.items() if not reason]
        if told and len(takers) < len(told):
            device = next(device for device in told if refusals[device])
            raise OptionError(f"{key} is {values[device]!r}, which {device} refuses: {refusals[device]}")
        if not takers:
            known = sorted(set().union(*(self._writable_of(device) for device in devices)))
            near = nearest(key, known)
            raise OptionError(
                f"{' and '.join(devices)} {'has' if len(devices) == 1 else 'have'} no property {key!r} that "
                f"can be set{f'; did you mean {near}?' if near else ''}"
            )
        return takers

    def set(self, device: str, key: str, value: Any) -> None:
        """Set it here; the device refuses what is wrong at once."""
        self._writable_of(device)  # loads the plugin, without which anything is accepted
        with _TRYING:
            self.core.set_property(device, {key: value})

    def _writable_of(self, device: str) -> dict[str, str]:
        if device not in self._writable:
            self._writable[device] = writable_properties(self.core, device)
        return self._writable[device]

    def _refusal(self, device: str, key: str, value: Any) -> str:
        """Why a device does not take a value; empty where it does."""
        try:
            self.set(device, key, value)
        except RuntimeError:
            # Some are taken with a model only. What is asked here takes long, and tells the truth.
            try:
                self._given.query_model(_smallest_model(), device, {key: value})
            except RuntimeError as cause:
                return openvino_reason(cause)
        return ""


def _check_names(core: ov.Core, given: Iterable[str], devices: Sequence[str]) -> None:
    """Refuse a name that is that of no plugin: its properties would be left out unsaid.

    Raises:
        OptionError: There is one.
    """
    here = {*devices, *(device.split(".")[0] for device in devices)}
    for name in given:
        known = name in here
        try:
            known = known or bool(core.get_versions(name.split(".")[0]))
        except RuntimeError:
            known = True  # a plugin that cannot be loaded, as a GPU's without its driver
        if not known:
            raise OptionError(f"{DEVICE_PROPERTIES}: {no_such_device(name, devices)}")


def _smallest_model() -> ov.Model:
    from openvino import opset13 as ops

    parameter = ops.parameter([1], ov.Type.f32)
    return ov.Model([ops.result(parameter)], [parameter])


def _values_per_device(value: Any, devices: Sequence[str]) -> dict[str, Any]:
    found = _PER_DEVICE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None:
        pairs = [pair.partition(":") for pair in found[1].split(",")]
        told = {name.strip(): text.strip() for name, _, text in pairs}
        if set(told) == set(devices):
            return told
    return dict.fromkeys(devices, value)


def _own_properties(value: Any) -> dict[str, dict[str, Any]]:
    """``DEVICE_PROPERTIES`` as a mapping.

    Raises:
        OptionError: It is none.
    """
    if isinstance(value, str):
        return _parsed_groups(value)
    if not isinstance(value, Mapping) or not all(isinstance(own, Mapping) for own in value.values()):
        raise _no_groups(value)
    result = {}
    for device, own in value.items():
        result[str(device)] = {str(k): v.value if isinstance(v, ov.OVAny) else v for k, v in own.items()}
    return result


def _parsed_groups(text: str) -> dict[str, dict[str, Any]]:
    """OpenVINO's text of them: ``{CPU:{NUM_STREAMS:2,PERF_COUNT:YES},GPU:{...}}``."""
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        raise _no_groups(text)
    groups: dict[str, dict[str, Any]] = {}
    position, inner = 0, inner[1:-1]
    while position < len(inner):
        found = _OWN_GROUP.match(inner, position)
        if found is None:
            raise _no_groups(text)
        pairs = [pair.partition(":") for pair in found[2].split(",") if pair.strip()]
        if not all(key.strip() and value.strip() for key, _, value in pairs):
            raise _no_groups(text)
        groups[found[1]] = {key.strip(): value.strip() for key, _, value in pairs}
        position = found.end()
        if inner[position : position + 1] == ",":
            position += 1
    return groups


def _no_groups(value: Any) -> OptionError:
    return OptionError(
        f"{DEVICE_PROPERTIES} is {value!r}; it maps a device to its properties, like "
        "{'CPU': {'NUM_STREAMS': 2}}"
    )
