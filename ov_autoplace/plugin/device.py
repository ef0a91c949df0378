"""The device name AUTOPLACE: what ``import ov_autoplace`` adds to ``openvino.Core``.

The methods of the class ``openvino.Core`` are wrapped, so that a model gets its affinities before it is
compiled; OpenVINO's HETERO plugin does the running. Cores made before the import are served too, because the
class is changed in place. So are the devices that the environment adds, which each Core gets at the first
call that is about them.
"""

from __future__ import annotations

import functools
import inspect
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openvino as ov

import ov_autoplace.devices.widths  # noqa: F401 (remembers the process's affinity mask)
from ov_autoplace.devices.extension import remember_extension
from ov_autoplace.devices.extra_devices import are_wanted, register_extra_devices
from ov_autoplace.devices.names import core_with, remember_properties
from ov_autoplace.errors import DeviceError, ModelError
from ov_autoplace.plugin.core_properties import (
    DEVICE_NAME,
    HINT,
    CoreState,
    get_property,
    request_of,
    set_properties,
)

if TYPE_CHECKING:
    from ov_autoplace.plan.joint import Part

__all__ = ["DEVICE_NAME", "compile_part", "register", "unregister"]

_HETERO = "HETERO"
_originals: dict[str, Any] = {}


def register() -> None:
    """Make the device name AUTOPLACE known to every ``openvino.Core``; done by the import."""
    if _originals:
        return
    for name, wrapper in _WRAPPERS.items():
        original = getattr(ov.Core, name)
        _originals[name] = original
        is_method = callable(original)
        wrapped = functools.wraps(original)(wrapper) if is_method else property(wrapper, doc=original.__doc__)
        setattr(ov.Core, name, wrapped)


def unregister() -> None:
    """Undo :func:`register`: ``openvino.Core`` is as it was before the import.

    Compiled models stay valid. A Core on which AUTOPLACE was already used keeps HETERO registered
    under that name, and the devices of the environment that it has.
    """
    for name, original in _originals.items():
        if name in _INHERITED:
            delattr(ov.Core, name)
        else:
            setattr(ov.Core, name, original)
    _originals.clear()


class _Devices(list[str]):
    """The devices of a Core; AUTOPLACE is in the list when a program asks, and not when it goes through it.

    OpenVINO's backend of ``torch.compile`` asks before it compiles, and goes without OpenVINO where it finds
    nothing. A program that lists devices wants each of them once.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or _device_list(name) is not None


def _device_list(device_name: Any) -> str | None:
    """The list behind ``AUTOPLACE:``, empty when there is none; ``None`` for any other device."""
    if not isinstance(device_name, str):
        return None
    name, _, devices = device_name.partition(":")
    return devices if name == DEVICE_NAME else None


def _asked(core: ov.Core, device_name: Any) -> str | None:
    """:func:`_device_list`, on a Core that has the devices of the environment if the call is about them."""
    if are_wanted(device_name if isinstance(device_name, str) else None):
        register_extra_devices(core)
    return _device_list(device_name)


def _for_autoplace(method: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a Core that is ``own`` for AUTOPLACE, and OpenVINO's for any other device.

    Args:
        method: Its name.
        own: Gets the list of devices behind ``AUTOPLACE:`` as ``device_name``.
    """
    signature = inspect.signature(own)

    def call(self: ov.Core, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        devices = _asked(self, given.arguments.get("device_name"))
        if devices is None:
            return _originals[method](self, *args, **kwargs)
        given.arguments["device_name"] = devices
        return own(*given.args, **given.kwargs)

    return call


def _compiling(core: ov.Core, shapes: Mapping[str, Sequence[int]]) -> Callable[..., ov.CompiledModel]:
    """OpenVINO's ``compile_model``; a model that is refused gets one sentence instead of a nested report."""
    native = _native(core, "compile_model")

    def call(model: ov.Model, device: str, config: Mapping[str, Any]) -> ov.CompiledModel:
        try:
            return native(model, device, config)
        except RuntimeError as cause:
            from ov_autoplace.devices.extension import is_scheduled
            from ov_autoplace.devices.models import openvino_reason
            from ov_autoplace.devices.names import single_device_config
            from ov_autoplace.graph.refusal import refusal

            if is_scheduled(model):  # the reason is a sentence of the library
                raise ModelError(openvino_reason(cause)) from cause

            def compile_on(name: str, part: ov.Model) -> ov.CompiledModel:
                return native(part, name, {**single_device_config(name, config), "CACHE_DIR": ""})

            devices = device.rpartition(":")[2].split(",")
            raise refusal(core, model, devices, shapes, cause, compile_on) from cause

    return call


def _native(core: ov.Core, method: str) -> Callable[..., ov.CompiledModel]:
    """A method of OpenVINO's Core; HETERO is the one that AUTOPLACE registered.

    That one cannot be spoilt by properties that were set on HETERO, or on all devices.
    """

    def call(model: Any, device: str, config: Mapping[str, Any]) -> ov.CompiledModel:
        name, _, devices = device.partition(":")
        if name == _HETERO:
            device = f"{_hetero_of(core)}:{devices}"
        return _originals[method](core, model, device, config)

    return call


def _hetero_of(core: ov.Core) -> str:
    """The name under which a Core knows HETERO a second time; registers it where there is none."""
    state = CoreState.of(core)
    library = Path(ov.__file__).parent / "libs" / "libopenvino_hetero_plugin.so"
    while not state.hetero:
        name = DEVICE_NAME + (f"_{state.names}" if state.names else "")
        state.names += 1
        try:
            core.register_plugin(str(library), name)
        except RuntimeError as cause:
            # Someone's plugins.xml may name it already; any other failure is an error.
            if "already registered" not in str(cause):
                raise DeviceError(f"cannot register {DEVICE_NAME}: {cause}") from cause
        state.hetero = name
    return state.hetero


def _compile_model(
    self: ov.Core,
    model: Any,
    device_name: str = "",
    config: Mapping[str, Any] | None = None,
    *,
    weights: bytes | None = None,
) -> ov.CompiledModel:
    from ov_autoplace.devices.extension import is_scheduled
    from ov_autoplace.plugin.compilation import compile_placed

    machine, explicit = request_of(self, device_name, config)
    read, native = _model_of(self, model, weights), _compiling(self, machine.options.shapes)
    compiled: ov.CompiledModel
    if is_scheduled(read):
        from ov_autoplace.plugin.scheduled import compile_scheduled

        compiled = compile_scheduled(self, read, machine.options.properties, native)
    else:
        compiled = compile_placed(machine, read, native, explicit=explicit)
    compiled = _told(compiled, machine.options.properties)
    if weights is not None:
        compiled._autoplace_weights = weights  # the constants point into the caller's buffer
    return _kept(self, compiled)


def compile_part(core: ov.Core, model: ov.Model, part: Part) -> ov.CompiledModel:
    """A model as its part of a plan of several says."""
    from ov_autoplace.plugin import compilation

    machine, _ = request_of(core, ",".join(part.plan.devices), {})
    return _kept(core, compilation.compile_part(machine, model, _compiling(core, {}), part))


def _told(compiled: ov.CompiledModel, properties: Mapping[str, Any]) -> ov.CompiledModel:
    """A compiled model that says for what it was asked."""
    from ov_autoplace.plugin.placed_model import placed_model

    return placed_model(compiled, {HINT: properties[HINT]} if HINT in properties else {})


def _kept(core: ov.Core, compiled: ov.CompiledModel) -> ov.CompiledModel:
    """A compiled model that keeps its Core.

    OpenVINO crashes when one that was compiled for HETERO is exported after its Core is gone.
    """
    compiled._autoplace_core = core
    return compiled


def _model_of(core: ov.Core, model: Any, weights: bytes | None) -> ov.Model:
    """A model, read from a file or from memory, or the caller's own.

    Raises:
        ModelError: It cannot be read.
    """
    if isinstance(model, ov.Model):
        return model
    if hasattr(model, "get_ordered_ops"):  # the bindings' class, passed by openvino.compile_model
        return ov.Model(model)
    from ov_autoplace.devices.models import read_model

    return read_model(core, model, weights)


def _query_model(
    self: ov.Core, model: ov.Model, device_name: str, config: Mapping[str, Any] | None = None
) -> dict[str, str]:
    from ov_autoplace.decide.place import machine_for, place_fitted

    machine, _ = request_of(self, device_name, config)
    return place_fitted(machine_for(self, machine.devices, machine.options), model)[0].to_dict()


def _import_model(
    self: ov.Core, model_stream: Any, device_name: str, config: Mapping[str, Any] | None = None
) -> ov.CompiledModel:
    machine, _ = request_of(self, device_name, config)
    compiled = _imported(self, model_stream, machine.devices, machine.options.properties)
    return _kept(self, _told(compiled, {}))


def _imported(
    core: ov.Core, stream: Any, devices: tuple[str, ...], properties: Mapping[str, Any]
) -> ov.CompiledModel:
    from ov_autoplace.devices.models import lacks_library
    from ov_autoplace.devices.names import single_device_config
    from ov_autoplace.plugin.placed_model import check_mixes_are_imported
    from ov_autoplace.plugin.scheduled import ExportNote, import_scheduled, note_behind

    native = _native(core, "import_model")
    # No import writes there, and the CPU refuses it before OpenVINO 2026.0.
    properties = {key: value for key, value in properties.items() if key != "CACHE_DIR"}
    if b"<hetero " in _head(stream):
        check_mixes_are_imported()
        return native(stream, f"{_HETERO}:{','.join(devices)}", properties)
    noted = note_behind(stream)
    if noted is not None:
        note, model = noted
        return import_scheduled(core, model, note, properties, native)
    # A model that AUTOPLACE put on one device was exported by that device's own plugin.
    failures = []
    for device in devices:
        try:
            if isinstance(stream, io.BytesIO):
                stream.seek(0)
            return native(stream, device, single_device_config(device, properties))
        except RuntimeError as cause:
            if lacks_library(cause):  # it was exported by another program
                foreign = ExportNote(tuple(core.available_devices), cache="")
                return import_scheduled(core, stream, foreign, properties, native)
            failures.append(f"{device}: {str(cause).strip().splitlines()[-1]}")
    raise ModelError(f"none of {', '.join(devices)} can import this model ({'; '.join(failures)})")


def _head(stream: Any) -> bytes:
    if isinstance(stream, io.BytesIO):
        return bytes(stream.getbuffer()[:64])
    return bytes(stream.data[:64]) if isinstance(stream, ov.Tensor) else bytes(stream[:64])


def _get_property(self: ov.Core, *args: Any, **kwargs: Any) -> Any:
    device, name = _device_and(("property", "name"), args, kwargs)
    devices = None if device is None else _asked(self, device)
    if devices is None or not (isinstance(name, str) or callable(name)):
        return _originals["get_property"](self, *args, **kwargs)
    return get_property(self, devices, name() if callable(name) else name)


def _set_property(self: ov.Core, *args: Any, **kwargs: Any) -> None:
    device, given = _device_and(("properties", "property"), args, kwargs)
    devices = None if device is None else _asked(self, device)
    properties = dict([given]) if isinstance(given, tuple) and len(given) == 2 else given
    if devices is not None and isinstance(properties, Mapping):
        set_properties(self, devices, properties)
        return
    if device is None:
        _set_of_all(self, properties, *args, **kwargs)
        return
    _originals["set_property"](self, *args, **kwargs)
    remember_properties(self, device, properties)


def _set_of_all(core: ov.Core, properties: Any, *args: Any, **kwargs: Any) -> None:
    """``core.set_property(properties)``, also when it comes after AUTOPLACE was used."""
    register_extra_devices(core)  # what is set of all devices is set of these
    state = CoreState.known_of(core)
    try:
        _originals["set_property"](core, *args, **kwargs)
    except RuntimeError:
        # Looking for devices loads OpenVINO's virtual ones, too, which refuse what is for real devices.
        if state is None or not isinstance(properties, Mapping):
            raise
        for device in core.available_devices:
            _originals["set_property"](core, device, properties)
    if state is not None:
        # HETERO was told, too, and cannot be loaded any more where it does not know one of them.
        state.hetero = ""


def _device_and(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[str | None, Any]:
    """The device of a call that can do without one, and its next argument, which has one of ``names``."""
    by_name = next((kwargs[name] for name in names if name in kwargs), None)
    if "device_name" in kwargs:
        return kwargs["device_name"], args[0] if args else by_name
    if len(args) > 1 or (args and by_name is not None):
        return args[0], args[1] if len(args) > 1 else by_name
    return None, args[0] if args else by_name


def _get_versions(self: ov.Core, device_name: str) -> dict[str, ov.Version]:
    from ov_autoplace.devices.names import resolve_devices

    # What runs a mix is HETERO; OpenVINO would tell the version of AUTO, by the first letters of the name.
    # A version points into its plugin, and the HETERO of this Core may be one that cannot be loaded.
    found = {DEVICE_NAME: _originals["get_versions"](core_with(), _HETERO)[_HETERO]}
    for device in resolve_devices(self, device_name):
        found.update(_originals["get_versions"](self, device))
    return found


def _available_devices(self: ov.Core) -> list[str]:
    register_extra_devices(self)
    return _Devices(_originals["available_devices"].__get__(self))


def _add_extension(self: ov.Core, *args: Any, **kwargs: Any) -> None:
    _originals["add_extension"](self, *args, **kwargs)
    remember_extension(self, *args, *kwargs.values())


def _refused_context(self: ov.Core, device_name: str, *args: Any, **kwargs: Any) -> None:
    raise DeviceError(f"{DEVICE_NAME} has no remote context; ask one of its devices for its own")


def _unload_plugin(self: ov.Core, device_name: str) -> None:
    state = CoreState.known_of(self)
    if state is not None and state.hetero:
        with suppress(RuntimeError):  # it was registered, and not used
            _originals["unload_plugin"](self, state.hetero)


_OF_AUTOPLACE: dict[str, Callable[..., Any]] = {
    "compile_model": _compile_model,
    "create_context": _refused_context,
    "get_default_context": _refused_context,
    "get_versions": _get_versions,
    "import_model": _import_model,
    "query_model": _query_model,
    "unload_plugin": _unload_plugin,
}
_WRAPPERS: dict[str, Callable[..., Any]] = {
    "add_extension": _add_extension,
    "available_devices": _available_devices,
    "get_property": _get_property,
    "set_property": _set_property,
    **{method: _for_autoplace(method, own) for method, own in _OF_AUTOPLACE.items()},
}
_INHERITED = tuple(name for name in _WRAPPERS if name not in vars(ov.Core))
