"""Compiling, importing and profiling models whose submodels run on lanes.

The surrounding model is compiled for the CPU by OpenVINO itself and holds one op, in which the native library
runs the submodels. The library compiles them in a Core of its own, with the properties that the op carries.

With ``CACHE_DIR`` the submodels are cached, each with its weights. The surrounding model is not: its blob
would hold the weights of all of them a second time, and compiling it takes some milliseconds.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import uuid4

import openvino as ov

from ov_autoplace._base.json_fields import Record, parse_json
from ov_autoplace.devices.extension import add_extension, schedule_ops
from ov_autoplace.devices.names import device_settings, single_device_config
from ov_autoplace.errors import ModelError
from ov_autoplace.plan.scheduled import (
    OP_NAME,
    SCHEDULE_DEVICE,
    SCHEDULE_PROPERTIES,
    lanes_of,
    with_properties,
)
from ov_autoplace.plugin import native_library
from ov_autoplace.plugin.blob_lock import writing_blobs
from ov_autoplace.plugin.decision_cache import cache_folder
from ov_autoplace.plugin.native_library import last_run, tell_plugins
from ov_autoplace.plugin.placed_model import GROUPS, SUPPORTED, PlacedModel, agreed_value

__all__ = [
    "ExportNote",
    "ScheduledModel",
    "ScheduledRequest",
    "compile_scheduled",
    "import_scheduled",
    "note_behind",
]

Native: TypeAlias = Callable[[Any, str, Mapping[str, Any]], ov.CompiledModel]
"""``openvino.Core.compile_model`` or ``import_model`` without its AUTOPLACE part, bound to a Core."""

# What makes of a cached blob what the user wants; it cannot be handed to the library's Core.
_CALLBACKS = "CACHE_ENCRYPTION_CALLBACKS"
# What a compiled model tells of itself as a whole; all else it tells of how it was compiled.
_OF_THE_WHOLE = frozenset(
    {
        "EXECUTION_DEVICES",
        "LOADED_FROM_CACHE",
        "LOG_LEVEL",
        "NETWORK_NAME",
        "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
        "PERFORMANCE_HINT",
        "PERFORMANCE_HINT_NUM_REQUESTS",
    }
)
# Of the user's properties, those that the surrounding model obeys.
_OUTER = ("PERF_COUNT", "LOG_LEVEL")
# Behind an exported model: a JSON text, its length, and this. The model itself cannot be looked into, because
# the CPU plugin writes it in a form of its own.
_SIZE, _MARK = struct.Struct("<Q"), b"autoplace lanes\n"
# OpenVINO's CPU reads all that stands behind a model as more of its XML, whose characters it scrambles. None
# of these letters is a scrambled "<", at which it would fail.
_LETTERS = b"abcdefghijklmnqs"


@dataclass(frozen=True)
class ExportNote:
    """What has to be known of an exported model before it is imported.

    Attributes:
        devices: Those of its lanes.
        cache: The ``CACHE_DIR`` of its submodels; empty where there is none.
    """

    devices: tuple[str, ...]
    cache: str


class ScheduledRequest(ov.InferRequest):  # type: ignore[misc]  # the bindings' base class is untyped
    """A request whose profile lists the nodes of the submodels.

    Args:
        request: The request of the surrounding model.
        ops: Names of the ops in it that run submodels.
    """

    def __init__(self, request: ov.InferRequest, ops: frozenset[str]) -> None:
        super().__init__(request)
        self._ops = ops

    @property
    def profiling_info(self) -> list[ov.ProfilingInfo]:
        """What each node took; those of submodels are called ``CPU#1 submodel: node``, by lane.

        Their times are of the last run of any request of the compiled model.
        """
        nodes: list[ov.ProfilingInfo] = []
        for info in super().profiling_info:
            inner = _inner_nodes(info.node_name) if info.node_name in self._ops else []
            nodes += inner or [info]
        return nodes

    def get_profiling_info(self) -> list[ov.ProfilingInfo]:
        """The same."""
        return self.profiling_info


class ScheduledModel(PlacedModel):
    """A compiled model like any other, whose requests profile submodels too.

    Args:
        compiled: The surrounding model.
        note: What an export of it needs to say.
    """

    def __init__(self, compiled: ov.CompiledModel, note: ExportNote) -> None:
        super().__init__(compiled, {"EXECUTION_DEVICES": list(note.devices)})
        self._note = note
        self._ops = _op_names(compiled)

    def export_model(self, model_stream: io.BytesIO | None = None) -> io.BytesIO | None:
        """Export it for ``import_model`` on AUTOPLACE, and, with the library loaded, on CPU.

        Args:
            model_stream: Where to; ``None`` = a new stream, which is returned.
        """
        stream = io.BytesIO() if model_stream is None else model_stream
        super().export_model(stream)
        note = json.dumps(asdict(self._note)).encode()
        stream.seek(0, io.SEEK_END)
        stream.write(_in_letters(note) + _in_letters(_SIZE.pack(len(note))) + _MARK)
        if model_stream is not None:
            return None
        stream.seek(0)
        return stream

    def get_property(self, property: Any) -> Any:  # noqa: A002 - the name that OpenVINO gave it
        """See ``openvino.CompiledModel.get_property``; how it was compiled is what its lanes say.

        Raises:
            OptionError: Its lanes have different values.
            RuntimeError: It has no such property.
        """
        name = property() if callable(property) else property
        if name in self.told or name in _OF_THE_WHOLE:
            return super().get_property(property)
        lanes = self._lanes()
        if name == SUPPORTED:
            of_lanes = dict.fromkeys((GROUPS, *(key for own in lanes.values() for key in own)), "RO")
            return {**super().get_property(property), **of_lanes}
        if name == GROUPS:
            return lanes
        values = {lane: own[name] for lane, own in lanes.items() if name in own}
        return agreed_value(name, values, "lanes") if values else super().get_property(property)

    def _lanes(self) -> dict[str, dict[str, Any]]:
        """Values by lane, called ``CPU#1`` as in profiles, and property."""
        of_outer = super().get_property(SUPPORTED)
        samples = {key: super(ScheduledModel, self).get_property(key) for key in of_outer}
        return {
            f"{device}#{number}": {
                key: _of_type_of(samples.get(key), text)
                for key, text in properties.items()
                if key not in self.told and key not in (SUPPORTED, *_OF_THE_WHOLE)
            }
            for op in sorted(self._ops)
            for number, (device, properties) in enumerate(native_library.lanes_of(op))
            if properties
        }

    def create_infer_request(self) -> ScheduledRequest:
        """A request."""
        return ScheduledRequest(super().create_infer_request(), self._ops)


def compile_scheduled(
    core: ov.Core, model: ov.Model, properties: Mapping[str, Any], compile_native: Native | None = None
) -> ov.CompiledModel:
    """Compile a scheduled model.

    Args:
        core: The Core whose devices and settings the lanes have, as far as the plan does not set them itself.
        model: A model of :func:`~ov_autoplace.plan.scheduled.scheduled_model`, or one that was read from
            a file; it is not modified.
        properties: What the user asks of OpenVINO. It goes to the lanes.
        compile_native: Compiles; ``None`` takes the Core's own method.

    Raises:
        DeviceError: A lane is on a device that the library cannot use.
        RuntimeError: OpenVINO's, where a submodel cannot be compiled.
    """
    add_extension(core)
    model = model.clone()
    devices = list(dict.fromkeys(lane.device for op in schedule_ops(model) for lane in lanes_of(op)))
    tell_plugins(core, devices)
    with writing_blobs(core, dict(properties)) as native:
        settings = {device: _settings(core, device, native) for device in devices}
        for op in schedule_ops(model):
            with_properties(op, settings).set_friendly_name(f"{OP_NAME}-{uuid4().hex[:12]}")
        compile_native = compile_native or core.compile_model
        note = ExportNote(tuple(devices), cache_folder(core, native))
        return ScheduledModel(compile_native(model, SCHEDULE_DEVICE, _outer(properties)), note)


def import_scheduled(
    core: ov.Core, stream: Any, note: ExportNote, properties: Mapping[str, Any], import_native: Native
) -> ov.CompiledModel:
    """Import a scheduled model, whose lanes have the properties with which it was compiled.

    Args:
        core: Knows the devices of its lanes.
        stream: What ``export_model`` made, in any form that OpenVINO takes.
        note: What is known of it.
        properties: What the user asks of OpenVINO.
        import_native: ``openvino.Core.import_model`` without its AUTOPLACE part, bound to ``core``.

    Raises:
        DeviceError: A lane is on a device that the library cannot use, or that the Core does not know.
        RuntimeError: OpenVINO's.
    """
    add_extension(core)
    tell_plugins(core, note.devices)
    if isinstance(stream, io.BytesIO):
        stream.seek(0)
    outer = _outer(properties)
    del outer["CACHE_DIR"]  # which no import writes to, and which the CPU refuses here before OpenVINO 2026.0
    with writing_blobs(core, {"CACHE_DIR": note.cache}):
        return ScheduledModel(import_native(stream, SCHEDULE_DEVICE, outer), note)


def note_behind(stream: Any) -> tuple[ExportNote, io.BytesIO] | None:
    """What a :class:`ScheduledModel` noted behind what it exported, and the model before it.

    Returns:
        ``None`` for any other model.

    Raises:
        ModelError: The note is damaged.
    """
    content = stream.getbuffer() if isinstance(stream, io.BytesIO) else stream
    content = memoryview(content.data if isinstance(content, ov.Tensor) else content)
    end = len(content) - len(_MARK)
    if bytes(content[max(0, end) :]) != _MARK:
        return None
    begin = end - 2 * _SIZE.size
    try:
        (size,) = _SIZE.unpack(_of_letters(bytes(content[max(0, begin) : end])))
        told = parse_json(_of_letters(bytes(content[max(0, begin - 2 * size) : begin])).decode())
    except (ValueError, RecursionError, struct.error) as cause:
        raise ModelError(f"the exported model is damaged: {cause}; export it anew") from cause
    note = Record.of(told, "the exported model", ModelError)
    model = io.BytesIO(content[: begin - 2 * size])
    return ExportNote(note.texts("devices"), note.text("cache")), model


def _in_letters(content: bytes) -> bytes:
    """Each half of a byte as one letter."""
    return bytes(_LETTERS[half] for byte in content for half in (byte >> 4, byte & 15))


def _of_letters(letters: bytes) -> bytes:
    """What :func:`_in_letters` wrote.

    Raises:
        ValueError: These are others.
    """
    halves = [_LETTERS.index(letter) for letter in letters]
    return bytes(16 * high + low for high, low in zip(halves[::2], halves[1::2], strict=True))


def _settings(core: ov.Core, device: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """What the submodels on a device are compiled with."""
    own = single_device_config(device, properties)
    folder = cache_folder(core, own)
    if folder and _CALLBACKS not in own:
        own["CACHE_DIR"] = folder
    elif folder:
        # What was to be encrypted is not written at all.
        own["CACHE_DIR"] = ""
    own.pop(_CALLBACKS, None)
    return device_settings(core, [device], {device: own})[device]


def _outer(properties: Mapping[str, Any]) -> dict[str, Any]:
    """What the surrounding model is compiled with."""
    kept = {key: properties[key] for key in _OUTER if key in properties}
    return {**SCHEDULE_PROPERTIES, **kept, "CACHE_DIR": ""}


def _op_names(compiled: ov.CompiledModel) -> frozenset[str]:
    """The ops of a compiled model that run submodels."""
    names = (op.get_friendly_name() for op in compiled.get_runtime_model().get_ops())
    return frozenset(name for name in names if name.startswith(OP_NAME))


def _of_type_of(sample: Any, text: str) -> Any:
    """A property's value out of its text, as the bindings give one of the same type as ``sample``."""
    if isinstance(sample, bool):
        return text in ("YES", "TRUE", "true")
    if isinstance(sample, (int, float)):
        return type(sample)(text)
    if isinstance(sample, ov.Type):
        return getattr(ov.Type, text, text)
    if isinstance(sample, (set, list)) and not text:
        return type(sample)()
    return getattr(type(sample), "__members__", {}).get(text, text)  # enumerations


def _inner_nodes(op: str) -> list[ov.ProfilingInfo]:
    """The nodes of an op's submodels, with times of its last run."""
    told = last_run(op)
    if told is None:
        return []
    return [
        _node(f"{submodel['device']}#{submodel['lane']} {submodel['name']}: ", node)
        for submodel in json.loads(told)["submodels"]
        for node in submodel["nodes"]
    ]


def _node(prefix: str, told: Mapping[str, Any]) -> ov.ProfilingInfo:
    info = ov.ProfilingInfo()
    info.node_name = prefix + told["name"]
    info.node_type, info.exec_type = told["type"], told["exec_type"]
    info.status = getattr(ov.ProfilingInfo.Status, told["status"])
    info.real_time = timedelta(microseconds=told["real_us"])
    info.cpu_time = timedelta(microseconds=told["cpu_us"])
    return info
