"""``ov-autoplace extension``: where the native library is; ``build-native``: it for another OpenVINO."""

from __future__ import annotations

from ov_autoplace._base.native import build_native
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence
from ov_autoplace.devices.extension import extension_path

__all__ = ["build", "extension"]


def extension(as_json: arguments.Json = False) -> None:
    """Print the path of the library that makes any OpenVINO program follow annotated models."""
    _print(extension_path(), as_json)


def build(as_json: arguments.Json = False) -> None:
    """Build the library for the OpenVINO that is installed, and print its path.

    For a release that is newer than this package. It needs CMake and a C++ compiler; the
    library is kept in the user's cache folder.
    """
    _print(str(build_native()), as_json)


def _print(path: str, as_json: bool) -> None:
    if as_json:
        print_json({"extension": path})
    else:
        print_sentence(path)
