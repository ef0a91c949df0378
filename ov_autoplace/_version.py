"""The package's version, and OpenVINO's releases that it was tried with: each stands here and nowhere else.

The build reads this file, where OpenVINO may not be installed yet: ``pyproject.toml`` for what is required,
and ``tools/wheels``, whose wheels have a native part for each of the releases.
"""

from __future__ import annotations

__all__ = ["OPENVINO_RELEASES", "__version__"]

__version__ = "0.1.0"

OPENVINO_RELEASES = (
    *("2025.4.0", "2025.4.1", "2026.0.0", "2026.1.0", "2026.2.0", "2026.2.1"),
    *("2026.3.0", "2026.3.1", "2026.4.0", "2026.4.1"),
)
"""Oldest first. What is older is refused, what is newer is built for by whoever has it."""
