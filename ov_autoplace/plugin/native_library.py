"""Talking to the native library in this process, which compiles submodels on a Core of its own."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable
from functools import cache

import openvino as ov

from ov_autoplace.devices.extension import extension_path
from ov_autoplace.devices.names import libraries_of
from ov_autoplace.errors import DeviceError

__all__ = ["lanes_of", "last_run", "tell_plugins"]


def tell_plugins(core: ov.Core, devices: Iterable[str]) -> None:
    """Make plugins that were registered with a Core known to the Core in which the library compiles.

    Args:
        core: Knows all of the devices.
        devices: Real devices.

    Raises:
        DeviceError: The library refuses one.
    """
    for name, library in libraries_of(core, devices):
        if _library().ov_autoplace_register_plugin(name.encode(), library.encode()):
            reason = _library().ov_autoplace_last_error().decode(errors="replace")
            raise DeviceError(f"lanes cannot use the device {name!r}: {reason}")


def last_run(op: str) -> str | None:
    """What the library knows of the last run of an op, as JSON; ``None`` where no such op is compiled.

    Args:
        op: Friendly name of an ``autoplace::Schedule``.
    """
    return _told_of(op, _library().ov_autoplace_profile)


def lanes_of(op: str) -> list[tuple[str, dict[str, str]]]:
    """Device of each lane of an op, with what the lane's first submodel tells of how it was compiled.

    Args:
        op: Friendly name of an ``autoplace::Schedule``; there are none where no such op is compiled.
    """
    told = _told_of(op, _library().ov_autoplace_lanes)
    return [(lane["device"], lane["properties"]) for lane in json.loads(told or "[]")]


def _told_of(op: str, call: Callable[..., int]) -> str | None:
    """The text that a function of the library has of an op; ``None`` where no such op is compiled."""
    size = call(op.encode(), None, 0)
    while size:
        # Another run may need more room than the one that was asked about.
        buffer = ctypes.create_string_buffer(size)
        size = call(op.encode(), buffer, len(buffer))
        if size <= len(buffer):
            return buffer.value.decode(errors="replace") if size else None
    return None


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(extension_path())
    library.ov_autoplace_register_plugin.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    for function in (library.ov_autoplace_profile, library.ov_autoplace_lanes):
        function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        function.restype = ctypes.c_size_t
    library.ov_autoplace_last_error.restype = ctypes.c_char_p
    return library
