"""The OpenVINO to build against and to run with: the provider of metadata that ``pyproject.toml`` names."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_VERSIONS = Path(__file__).resolve().parents[2] / "ov_autoplace" / "_version.py"


def dynamic_metadata(settings: Mapping[str, Any], project: Mapping[str, Any]) -> dict[str, list[str]]:
    """What is added to ``[project]``."""
    return {"dependencies": [_requirement()]}


def get_requires_for_dynamic_metadata(settings: Mapping[str, Any]) -> list[str]:
    """What is added to ``build-system.requires``."""
    return [_requirement()]


def _requirement() -> str:
    return f"openvino=={runpy.run_path(str(_VERSIONS))['OPENVINO_VERSION']}"


if __name__ == "__main__":
    print(_requirement())
