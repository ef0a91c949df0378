"""The properties of the device AUTOPLACE on a Core: its options, and what it hands on to its devices.

Nothing of it is told to OpenVINO's HETERO, which does the running: HETERO knows few properties, keeps what it
is told before it is loaded without looking at it, and then fails to load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import openvino as ov

from ov_autoplace.decide.options import PREFIX, PROPERTY_NAMES, PlacerOptions, option_of, split_config
from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.decide.machine import Machine

__all__ = ["DEVICE_NAME", "HINT", "CoreState", "Request", "get_property", "request_of", "set_properties"]

DEVICE_NAME = "AUTOPLACE"
HINT = "PERFORMANCE_HINT"
_HINTS = ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")
_DEVICES, _CACHE = "MULTI_DEVICE_PRIORITIES", "CACHE_DIR"
# One device's number: here, the list of devices says which ones are meant.
_OF_ONE_DEVICE = "DEVICE_ID"

# Attribute of a Core.
_STATE = "_autoplace_state"


@dataclass
class CoreState:
    """What one Core knows of AUTOPLACE.

    Attributes:
        options: The placer's arguments that were set.
        properties: OpenVINO's properties that were set, as they were given.
        hetero: The name under which the Core knows HETERO a second time; empty where it knows none that can
            be used.
        names: How many such names it has had.
    """

    options: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    hetero: str = ""
    names: int = 0

    @classmethod
    def of(cls, core: ov.Core) -> CoreState:
        """That of a Core, made where it has none."""
        # setdefault is atomic: threads that come at the same time get the same one.
        state: CoreState = core.__dict__.setdefault(_STATE, cls())
        return state

    @classmethod
    def known_of(cls, core: ov.Core) -> CoreState | None:
        """That of a Core, if it has one."""
        state: CoreState | None = core.__dict__.get(_STATE)
        return state


class Request(NamedTuple):
    """What a call asks for.

    Attributes:
        machine: The devices and options; its properties are for all of the devices, and of those alone.
        explicit: Somebody named the devices.
    """

    machine: Machine
    explicit: bool


def request_of(core: ov.Core, listed: str, config: Mapping[str, Any] | None) -> Request:
    """What a method of a Core was called with, over what was set before.

    Args:
        core: The Core.
        listed: The devices behind ``AUTOPLACE:``; empty = those of ``MULTI_DEVICE_PRIORITIES``, else all.
        config: Options and properties of the call.

    Raises:
        DeviceError: A device that is not here.
        OptionError: An option or property that is unknown, or has a bad value.
    """
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.devices.device_config import config_for
    from ov_autoplace.devices.names import resolve_devices

    state = CoreState.of(core)
    own, given = split_config(config)
    properties = {**state.properties, **_with_checked_hint(given)}
    named = listed or str(properties.get(_DEVICES, ""))
    properties.pop(_DEVICES, None)
    devices = resolve_devices(core, named)
    if (hint := _agreed_hint(core, devices)) is not None:
        properties.setdefault(HINT, hint)
    properties = config_for(core, devices, properties)
    options = PlacerOptions.from_arguments({**state.options, **own, "properties": properties})
    return Request(Machine(core, devices, options), explicit=bool(named))


def set_properties(core: ov.Core, listed: str, given: Mapping[str, Any]) -> None:
    """``core.set_property("AUTOPLACE", given)``: for every later call, all of it or nothing.

    Raises:
        DeviceError: A device that is not here.
        OptionError: What is given is unknown, has a bad value, or cannot be set here.
    """
    from ov_autoplace.devices.device_config import DEVICE_PROPERTIES, config_for
    from ov_autoplace.devices.names import resolve_devices

    state = CoreState.of(core)
    own, properties = split_config(given)
    properties = _with_checked_hint(properties)
    if DEVICE_PROPERTIES in properties:
        raise OptionError(
            f"{DEVICE_PROPERTIES} cannot be set of {DEVICE_NAME}; set the properties of a device "
            "on the device itself, like core.set_property('CPU', ...), or give them to compile_model"
        )
    if fixed := sorted(_FIXED.keys() & properties.keys()):
        raise OptionError(f"{fixed[0]} of {DEVICE_NAME} can be read, not set")
    devices = resolve_devices(core, str(properties.get(_DEVICES, "")) or listed)
    config_for(core, devices, {key: value for key, value in properties.items() if key != _DEVICES})
    PlacerOptions.from_arguments({**state.options, **own})
    state.options.update(own)
    state.properties.update(properties)


def get_property(core: ov.Core, listed: str, name: str) -> Any:
    """``core.get_property("AUTOPLACE", name)``.

    Of a property that was not set on AUTOPLACE, it is the value of the first of its devices that knows it.

    Raises:
        DeviceError: A device that is not here.
        OptionError: There is no such property.
    """
    from ov_autoplace.devices.device_config import typed_value, writable_properties
    from ov_autoplace.devices.names import resolve_devices

    state = CoreState.of(core)
    devices = resolve_devices(core, listed or str(state.properties.get(_DEVICES, "")))
    if name in _FIXED:
        return _FIXED[name](core, devices)
    if name.startswith(PREFIX) and (option := option_of(name)) is not None:
        return getattr(PlacerOptions.from_arguments(state.options), option)
    if name == _DEVICES:
        return ",".join(devices)
    if name == _CACHE:
        return state.properties.get(_CACHE, core.get_property(_CACHE))
    knowing = [device for device in devices if name in writable_properties(core, device)]
    if name in state.properties:
        value = state.properties[name]
        return typed_value(core, knowing[0], name, value) if knowing else value
    if not knowing or name == _OF_ONE_DEVICE:
        from ov_autoplace._base.text import nearest

        near = nearest(name, sorted(_supported(core, devices)))
        raise OptionError(
            f"{DEVICE_NAME} has no property {name!r}{f'; did you mean {near}?' if near else ''}"
        )
    return core.get_property(knowing[0], name)


def _with_checked_hint(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with the performance hint, by which AUTOPLACE itself decides, as OpenVINO writes it.

    Raises:
        OptionError: It is none.
    """
    if HINT not in properties:
        return dict(properties)
    value = properties[HINT]
    text = str(getattr(value, "name", value)).upper()
    if text not in _HINTS:
        raise OptionError(f"{HINT} of {DEVICE_NAME} is {value!r}; it can be {', '.join(_HINTS)}")
    return {**properties, HINT: text}


def _agreed_hint(core: ov.Core, devices: tuple[str, ...]) -> str | None:
    """The hint that was set on every one of the devices, where it is not the one that they start with."""
    told = set()
    for device in devices:
        try:
            told.add(core.get_property(device, HINT))
        except RuntimeError:  # this plugin has no such property
            return None
    text = str(getattr(told.pop(), "name", "")) if len(told) == 1 else ""
    return text if text in _HINTS[1:] else None


def _capabilities(core: ov.Core, devices: tuple[str, ...]) -> list[str]:
    told: set[str] = {"EXPORT_IMPORT"}
    for device in devices:
        told.update(core.get_property(device, "OPTIMIZATION_CAPABILITIES"))
    return sorted(told)


def _supported(core: ov.Core, devices: tuple[str, ...]) -> dict[str, str]:
    """Names of all properties, with ``RO``, ``RW`` or ``WO``."""
    from ov_autoplace.devices.device_config import writable_properties

    found: dict[str, str] = {}
    for device in reversed(devices):
        found.update(writable_properties(core, device))
    found.pop(_OF_ONE_DEVICE, None)
    own = dict.fromkeys((_DEVICES, _CACHE, HINT, *PROPERTY_NAMES), "RW")
    return {**dict.fromkeys(_FIXED, "RO"), **found, **own}


_FIXED: dict[str, Callable[[ov.Core, tuple[str, ...]], Any]] = {
    "SUPPORTED_PROPERTIES": _supported,
    "AVAILABLE_DEVICES": lambda _, devices: list(devices),
    "FULL_DEVICE_NAME": lambda _, devices: f"{DEVICE_NAME}:{','.join(devices)}",
    "OPTIMIZATION_CAPABILITIES": _capabilities,
}
