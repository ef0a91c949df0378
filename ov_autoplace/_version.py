"""The package's version, and that of the OpenVINO it is built against: each stands here and nowhere else.

The build reads this file: ``pyproject.toml`` for what is required, CMake for what it accepts.
"""

from __future__ import annotations

__all__ = ["OPENVINO_VERSION", "__version__"]

__version__ = "0.1.0"

# One release, because OpenVINO's library changes its name with every patch release.
OPENVINO_VERSION = "2026.4.1"
