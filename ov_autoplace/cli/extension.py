"""``ov-autoplace extension``: where the native library for other programs is."""

from __future__ import annotations

from ov_autoplace.cli.console import print_sentence
from ov_autoplace.plugin.extension import extension_path

__all__ = ["extension"]


def extension() -> None:
    """Print the path of the library that makes any OpenVINO program follow annotated models."""
    print_sentence(extension_path())
