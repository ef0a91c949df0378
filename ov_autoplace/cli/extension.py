"""``ov-autoplace extension``: where the native library for other programs is."""

from __future__ import annotations

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence
from ov_autoplace.devices.extension import extension_path

__all__ = ["extension"]


def extension(as_json: arguments.Json = False) -> None:
    """Print the path of the library that makes any OpenVINO program follow annotated models."""
    path = extension_path()
    if as_json:
        print_json({"extension": path})
    else:
        print_sentence(path)
