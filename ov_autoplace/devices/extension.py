"""The native library that gives other OpenVINO programs our placements; see docs/native.md."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import openvino as ov

from ov_autoplace.errors import VersionMismatchError

__all__ = ["add_extension", "extension_path"]

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
