"""The native library that gives other OpenVINO programs our placements; see docs/native.md."""

from __future__ import annotations

import os
from typing import Any

import openvino as ov

from ov_autoplace._base.native import NATIVE_NAME, native_library
from ov_autoplace.devices.names import bare_core

__all__ = [
    "SCHEDULE",
    "add_extension",
    "extension_path",
    "extensions_of",
    "is_scheduled",
    "remember_extension",
    "schedule_ops",
    "type_of",
]

SCHEDULE = "Schedule", "autoplace"
"""Type and version of the library's op, which runs submodels."""

# Attribute of a Core that has the library.
_ADDED = "_autoplace_extension"
# Attribute of a Core: paths of other libraries that it has, in their order, as the keys of a mapping.
_OTHERS = "_autoplace_other_extensions"


def extension_path() -> str:
    """Absolute path of the library for ``core.add_extension``, ``benchmark_app -extensions`` and the like.

    A program that has loaded it runs the files that ``ov-autoplace annotate`` writes on the devices they
    name, under plain ``HETERO:...``. The library needs nothing but OpenVINO, in the release that is
    installed here.

    Raises:
        VersionMismatchError: There is none for that release.
    """
    return native_library()


def add_extension(core: ov.Core) -> None:
    """Load the library into a Core, once.

    Raises:
        VersionMismatchError: See :func:`extension_path`.
    """
    if _ADDED not in core.__dict__:
        core.add_extension(extension_path())
        setattr(core, _ADDED, True)


def remember_extension(core: ov.Core, extension: Any) -> None:
    """Note what was given to ``core.add_extension``: a process that measures has to load it, too.

    Args:
        core: The Core that has it now.
        extension: A path; what has none, such as a class of Python, is nothing that another process can load.
    """
    if isinstance(extension, (str, bytes, os.PathLike)):
        path = os.fsdecode(extension)
        noted = os.path.realpath(path) if os.path.exists(path) else path  # a bare name is searched for
        if os.path.basename(noted) != NATIVE_NAME:
            core.__dict__.setdefault(_OTHERS, {})[noted] = None


def extensions_of(core: ov.Core) -> tuple[str, ...]:
    """Paths of the libraries whose ops a Core knows, but for this package's own.

    Those that it was given since the package was imported, and those that every new Core is given, such as
    that of openvino_tokenizers: it has them, too, whenever it was made.
    """
    new = bare_core()
    return tuple({**new.__dict__.get(_OTHERS, {}), **core.__dict__.get(_OTHERS, {})})


def is_scheduled(model: ov.Model) -> bool:
    """Whether a model holds submodels for lanes."""
    return bool(schedule_ops(model))


def schedule_ops(model: ov.Model) -> list[ov.Node]:
    """The ops of a model that hold submodels."""
    # Of an op, the name of its type is read four times as fast as all of it; and the model keeps its ops in
    # order, but makes a list of them without order anew.
    ops = model.get_ordered_ops()
    return [op for op in ops if op.get_type_name() == SCHEDULE[0] and type_of(op) == SCHEDULE]


def type_of(op: ov.Node) -> tuple[str, str]:
    """Name and version of the type of an op."""
    kind = op.get_type_info()
    return kind.name, kind.version_id
