"""Talking to the native library in this process, which compiles submodels on a Core of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache

import openvino as ov

from ov_autoplace.devices.extension import extension_path
from ov_autoplace.devices.names import plugin_library
from ov_autoplace.errors import DeviceError

__all__ = ["last_run", "tell_plugins"]


def tell_plugins(core: ov.Core, devices: Iterable[str]) -> None:
    """Make plugins that were registered with a Core known to the Core in which the library compiles.

    Args:
        core: Knows all of the devices.
        devices: Real devices.

    Raises:
        DeviceError: The library refuses one.
    """
    unknown = {device.split(".")[0] for device in devices} - _known_to_every_core()
    for name in sorted(unknown):
        library = plugin_library(core, name)
        if _library().ov_autoplace_register_plugin(name.encode(), str(library).encode()):
            reason = _library().ov_autoplace_last_error().decode(errors="replace")
            raise DeviceError(f"lanes cannot use the device {name!r}: {reason}")


def last_run(op: str) -> str | None:
    """What the library knows of the last run of an op, as JSON; ``None`` where no such op is compiled.

    Args:
        op: Friendly name of an ``autoplace::Schedule``.
    """
    call = _library().ov_autoplace_profile
    size = call(op.encode(), None, 0)
    while size:
        # Another run may need more room than the one that was asked about.
        buffer = ctypes.create_string_buffer(size)
        size = call(op.encode(), buffer, len(buffer))
        if size <= len(buffer):
            return buffer.value.decode(errors="replace") if size else None
    return None


@cache
def _known_to_every_core() -> frozenset[str]:
    return frozenset(device.split(".")[0] for device in ov.Core().available_devices)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(extension_path())
    library.ov_autoplace_register_plugin.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.ov_autoplace_profile.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    library.ov_autoplace_profile.restype = ctypes.c_size_t
    library.ov_autoplace_last_error.restype = ctypes.c_char_p
    return library
