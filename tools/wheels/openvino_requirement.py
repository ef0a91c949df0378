"""The OpenVINO to run with and to build against: the provider of metadata that ``pyproject.toml`` names."""

from __future__ import annotations

import re
import runpy
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_VERSIONS = Path(__file__).resolve().parents[2] / "ov_autoplace" / "_version.py"


def releases() -> tuple[str, ...]:
    """Those that the package is for, oldest first."""
    return tuple(runpy.run_path(str(_VERSIONS))["OPENVINO_RELEASES"])


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, list[str]]:
    """What is added to ``[project]``."""
    return {"dependencies": [f"openvino>={releases()[0]}"]}


def get_requires_for_dynamic_metadata(settings: Mapping[str, Any]) -> list[str]:
    """What is added to ``build-system.requires``."""
    return [build_requirement()]


def build_requirement() -> str:
    """The release that is installed where the package is to be, else the newest that it is for.

    OpenVINO's library changes its name with every patch release: what is built for one runs with no other.
    """
    # pip builds in an environment of its own, with the interpreter of the one that it installs into.
    installed = Path(sysconfig.get_path("purelib")).glob("openvino-*.dist-info")
    found = [match[1] for path in installed if (match := re.match(r"openvino-(\d+\.\d+\.\d+)", path.name))]
    return f"openvino=={(found or releases())[-1]}"


if __name__ == "__main__":
    print(build_requirement())
