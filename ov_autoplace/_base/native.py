"""The C++ core, loaded at its first use: it needs one release of OpenVINO, all else works with others too."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import openvino as ov

from ov_autoplace._version import OPENVINO_VERSION, __version__
from ov_autoplace.errors import VersionMismatchError

__all__ = ["Core", "check_core"]

_NAME = "ov_autoplace._core"


class Core(ModuleType):
    """Stands for the module ``ov_autoplace._core``, and loads it when it is asked for something.

    Raises:
        VersionMismatchError: See :func:`check_core`.
    """

    def __init__(self) -> None:
        super().__init__(_NAME)

    def __getattr__(self, name: str) -> Any:
        check_core()
        value = getattr(import_module(_NAME), name)
        setattr(self, name, value)
        return value


def check_core() -> None:
    """Refuse an OpenVINO that the core was not built against, before the dynamic linker does.

    Raises:
        VersionMismatchError: Another release is installed, or the core was never built.
    """
    installed = ov.__version__.split("-")[0]
    if installed != OPENVINO_VERSION:
        raise VersionMismatchError(
            f"this needs the C++ core of ov-autoplace {__version__}, which runs with openvino "
            f"{OPENVINO_VERSION} alone, and {installed} is installed; run `pip install "
            f"openvino=={OPENVINO_VERSION}`, or install an ov-autoplace for openvino {installed}"
        )
    if find_spec(_NAME) is None:
        raise VersionMismatchError(
            "the C++ core of ov-autoplace is not built; run `pip install .` in the source folder "
            "and start Python from another folder"
        )
