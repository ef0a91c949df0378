"""The native library that gives other OpenVINO programs our placements; see docs/native.md."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import openvino as ov

from ov_autoplace.devices.names import plugin_library
from ov_autoplace.errors import DeviceError, VersionMismatchError

__all__ = ["add_extension", "extension_path", "last_run", "tell_plugins"]

_NAME = "libov_autoplace_extension.so"

# Attribute of a Core that has the library.
_ADDED = "_autoplace_extension"


def extension_path() -> str:
    """Absolute path of the library for ``core.add_extension``, ``benchmark_app -extensions`` and the like.

    A program that has loaded it runs the files that ``ov-autoplace annotate`` writes on the devices they
    name, under plain ``HETERO:...``. The library needs nothing but OpenVINO, in the version of this package.

    Raises:
        VersionMismatchError: The library is not where the package was built.
    """
    # It lies beside the compiled core, which an editable installation keeps apart from the sources.
    core = find_spec("ov_autoplace._core")
    path = Path(core.origin).with_name(_NAME) if core is not None and core.origin is not None else None
    if path is None or not path.is_file():
        raise VersionMismatchError(
            f"the package has no {_NAME}; rebuild it with `pip install --force-reinstall --no-cache-dir .` "
            "in the source folder"
        )
    return str(path)


def add_extension(core: ov.Core) -> None:
    """Load the library into a Core, once."""
    if _ADDED not in core.__dict__:
        core.add_extension(extension_path())
        setattr(core, _ADDED, True)


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
