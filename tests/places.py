"""Where things are that tests need."""

from __future__ import annotations

from pathlib import Path

import openvino as ov

__all__ = ["CPU_PLUGIN", "ROOT"]

ROOT = Path(__file__).resolve().parent.parent
CPU_PLUGIN = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"
