"""Types of what compiles and runs models to time them, wherever that happens: here or in a child process."""

from __future__ import annotations

from typing import TypeAlias

from ov_autoplace import _core
from ov_autoplace.measure.isolation import profiler as isolated

__all__ = ["Executable", "NodeTime", "Profiler", "RaceResult"]

Executable: TypeAlias = _core.Executable | isolated.IsolatedExecutable
NodeTime: TypeAlias = _core.NodeTime | isolated.IsolatedNodeTime
Profiler: TypeAlias = _core.Profiler | isolated.IsolatedProfiler
RaceResult: TypeAlias = _core.RaceResult  # the child's has the same attributes
