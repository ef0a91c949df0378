"""The device name AUTOPLACE: what ``import ov_autoplace`` adds to ``openvino.Core``.

OpenVINO's HETERO plugin does the running. It is registered a second time under the name AUTOPLACE, on
each Core at its first use, so that compiling, importing, caching and properties work natively; the
methods of the class ``openvino.Core`` are wrapped, so that a model gets its affinities before it is
compiled. Cores made before the import are served too, because the class is changed in place.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace.decide.options import PREFIX, PROPERTY_NAMES, PlacerOptions, option_of, split_config
from ov_autoplace.devices.names import remember_properties
from ov_autoplace.errors import DeviceError, ModelError, OptionError

__all__ = ["DEVICE_NAME", "register", "unregister"]

DEVICE_NAME = "AUTOPLACE"

# What ``core.set_property("AUTOPLACE", ...)`` takes of OpenVINO's own: HETERO would refuse it, and AUTOPLACE
# decides by it.
_HINT, _HINTS = "PERFORMANCE_HINT", ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")

# Attribute of a Core: the options set with core.set_property("AUTOPLACE", ...). Its presence also says
# that the plugin is registered there.
_STATE = "_autoplace_options"
_originals: dict[str, Callable[..., Any]] = {}


def register() -> None:
    """Make the device name AUTOPLACE known to every ``openvino.Core``; done by the import."""
    if _originals:
        return
    for name, wrapper in _WRAPPERS.items():
        original = getattr(ov.Core, name)
        _originals[name] = original
        setattr(ov.Core, name, functools.wraps(original)(wrapper))


def unregister() -> None:
    """Undo :func:`register`: ``openvino.Core`` is as it was before the import.

    Compiled models stay valid. A Core on which AUTOPLACE was already used keeps HETERO registered
    under that name.
    """
    for name, original in _originals.items():
        if name in _INHERITED:
            delattr(ov.Core, name)
        else:
            setattr(ov.Core, name, original)
    _originals.clear()


def _device_list(device_name: Any) -> str | None:
    """The list behind ``AUTOPLACE:``, empty when there is none; ``None`` for any other device."""
    if not isinstance(device_name, str):
        return None
    name, _, devices = device_name.partition(":")
    return devices if name == DEVICE_NAME else None


def _state(core: ov.Core) -> dict[str, Any]:
    """Options set on this Core; registers the HETERO plugin as AUTOPLACE at the first call."""
    state: dict[str, Any] | None = core.__dict__.get(_STATE)
    if state is None:
        library = Path(ov.__file__).parent / "libs" / "libopenvino_hetero_plugin.so"
        try:
            core.register_plugin(str(library), DEVICE_NAME)
        except RuntimeError as cause:
            # Someone's plugins.xml may name it already; any other failure is an error.
            if "already registered" not in str(cause):
                raise DeviceError(f"cannot register {DEVICE_NAME}: {cause}") from cause
        state = {}
        setattr(core, _STATE, state)
    return state


def _compile_model(
    self: ov.Core,
    model: Any,
    device_name: str | None = None,
    config: Mapping[str, Any] | None = None,
    *,
    weights: bytes | None = None,
) -> ov.CompiledModel:
    original = _originals["compile_model"]
    devices = _device_list(device_name)
    if devices is None:
        return original(self, model, device_name, config, weights=weights)
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.devices.names import resolve_devices
    from ov_autoplace.placement.schedulable import is_scheduled
    from ov_autoplace.plugin.compilation import compile_placed

    own, properties = split_config(config)
    options = PlacerOptions.from_arguments(_arguments(self, own, properties))
    machine = Machine(self, resolve_devices(self, devices), options)
    own_model, native = _own_model(self, model, weights), functools.partial(original, self)
    compiled: ov.CompiledModel
    if is_scheduled(own_model):
        from ov_autoplace.plugin.scheduled import compile_scheduled

        compiled = compile_scheduled(self, own_model, properties, native)
    else:
        compiled = compile_placed(machine, own_model, native, explicit=bool(devices))
    if weights is not None:
        compiled._autoplace_weights = weights  # the constants point into the caller's buffer
    return _kept(self, compiled)


def _kept(core: ov.Core, compiled: ov.CompiledModel) -> ov.CompiledModel:
    """A compiled model that keeps its Core.

    OpenVINO 2026.4.1 crashes when one that was compiled for HETERO is exported after its Core is gone.
    """
    compiled._autoplace_core = core
    return compiled


def _own_model(core: ov.Core, model: Any, weights: bytes | None) -> ov.Model:
    """A model that belongs to us: read from a file or from memory, else a clone of the caller's.

    Raises:
        ModelError: It cannot be read.
    """
    if isinstance(model, ov.Model):
        return model.clone()
    if hasattr(model, "get_ordered_ops"):  # the bindings' class, passed by openvino.compile_model
        return ov.Model(model).clone()
    from ov_autoplace.devices.models import read_model

    return read_model(core, model, weights)


def _query_model(
    self: ov.Core, model: ov.Model, device_name: str, config: Mapping[str, Any] | None = None
) -> dict[str, str]:
    devices = _device_list(device_name)
    if devices is None:
        answer: dict[str, str] = _originals["query_model"](self, model, device_name, config)
        return answer
    from ov_autoplace.decide.place import place

    own, properties = split_config(config)
    return place(model, devices or None, core=self, **_arguments(self, own, properties)).to_dict()


def _arguments(core: ov.Core, own: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """The placer's arguments of a call: its own, over those that were set on the Core."""
    state = _state(core)
    return {**state, **own, "properties": {**state.get("properties", {}), **properties}}


def _hint_of(value: Any) -> str:
    """A performance hint as text.

    Raises:
        OptionError: It is none.
    """
    text = str(getattr(value, "name", value)).upper()
    if text not in _HINTS:
        raise OptionError(f"{_HINT} of {DEVICE_NAME} is {value!r}; it can be {', '.join(_HINTS)}")
    return text


def _import_model(
    self: ov.Core, model_stream: Any, device_name: str, config: Mapping[str, Any] | None = None
) -> ov.CompiledModel:
    original = _originals["import_model"]
    devices = _device_list(device_name)
    if devices is None:
        return original(self, model_stream, device_name, config)
    from ov_autoplace.devices.names import resolve_devices

    _state(self)
    _, properties = split_config(config)
    resolved = resolve_devices(self, devices)
    if b"<hetero " in _head(model_stream):
        return _kept(self, original(self, model_stream, f"{DEVICE_NAME}:{','.join(resolved)}", properties))
    from ov_autoplace.devices.models import lacks_library
    from ov_autoplace.plugin.scheduled import ExportNote, import_scheduled, note_behind

    note, native = note_behind(model_stream), functools.partial(original, self)
    if note is not None:
        return _kept(self, import_scheduled(self, model_stream, note, properties, native))
    # A model that AUTOPLACE put on one device was exported by that device's own plugin.
    from ov_autoplace.devices.names import single_device_config

    failures = []
    for device in resolved:
        try:
            if isinstance(model_stream, io.BytesIO):
                model_stream.seek(0)
            return original(self, model_stream, device, single_device_config(device, properties))
        except RuntimeError as cause:
            if lacks_library(cause):  # it was exported by another program
                foreign = ExportNote(tuple(self.available_devices), cache="")
                return _kept(self, import_scheduled(self, model_stream, foreign, properties, native))
            failures.append(f"{device}: {str(cause).strip().splitlines()[-1]}")
    raise ModelError(f"none of {', '.join(resolved)} can import this model ({'; '.join(failures)})")


def _head(stream: Any) -> bytes:
    if isinstance(stream, io.BytesIO):
        return bytes(stream.getbuffer()[:64])
    return bytes(stream.data[:64]) if isinstance(stream, ov.Tensor) else bytes(stream[:64])


def _get_property(self: ov.Core, *args: Any, **kwargs: Any) -> Any:
    original = _originals["get_property"]
    device = kwargs.get("device_name", args[0] if args else None)
    devices = _device_list(device)
    if devices is None:
        return original(self, *args, **kwargs)
    from ov_autoplace.devices.names import resolve_devices

    state = _state(self)
    name = kwargs.get("property") or kwargs.get("name") or (args[1] if len(args) > 1 else "")
    name = name() if callable(name) else name
    resolved = resolve_devices(self, devices)
    if name == _HINT:
        return state.get("properties", {}).get(_HINT, _HINTS[0])
    if isinstance(name, str) and name.startswith(PREFIX) and (option := option_of(name)) is not None:
        return getattr(PlacerOptions.from_arguments(state), option)
    if name == "MULTI_DEVICE_PRIORITIES":
        return ",".join(resolved)
    if name == "FULL_DEVICE_NAME":
        return f"{DEVICE_NAME}:{','.join(resolved)}"
    value = original(self, f"{DEVICE_NAME}:{','.join(resolved)}", name)
    if name == "SUPPORTED_PROPERTIES":
        value = {**value, **dict.fromkeys((_HINT, *PROPERTY_NAMES), "RW")}
    return value


def _set_property(self: ov.Core, *args: Any, **kwargs: Any) -> None:
    original = _originals["set_property"]
    device = kwargs.get("device_name", args[0] if args else None)
    properties = kwargs.get("properties", args[1] if len(args) > 1 else {})
    if not isinstance(properties, Mapping):
        properties = dict([properties])
    if _device_list(device) is None:
        original(self, *args, **kwargs)
        if isinstance(device, str):
            remember_properties(self, device, properties)
        return
    own, rest = split_config(properties)
    state = _state(self)
    if _HINT in rest:
        own["properties"] = {**state.get("properties", {}), _HINT: _hint_of(rest.pop(_HINT))}
    PlacerOptions.from_arguments({**state, **own})  # refuse bad values now, not at the next compile
    if rest:
        original(self, DEVICE_NAME, rest)
    state.update(own)


_WRAPPERS: dict[str, Callable[..., Any]] = {
    "compile_model": _compile_model,
    "query_model": _query_model,
    "import_model": _import_model,
    "get_property": _get_property,
    "set_property": _set_property,
}
_INHERITED = tuple(name for name in _WRAPPERS if name not in vars(ov.Core))
