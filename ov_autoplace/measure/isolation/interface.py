"""What compiles and runs models to time them, wherever that happens: here or in a child process."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import openvino as ov

from ov_autoplace import _core
from ov_autoplace._base.native import native_libraries
from ov_autoplace.devices.extra_devices import own_core
from ov_autoplace.devices.names import CACHE_PROPERTIES, device_settings, libraries_of
from ov_autoplace.measure.isolation.child import Child
from ov_autoplace.measure.isolation.executable import IsolatedExecutable, IsolatedNodeTime
from ov_autoplace.measure.isolation.process import NoProcessError, ProcessEndedError
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler

__all__ = [
    "Compiled",
    "Executable",
    "NodeTime",
    "Pool",
    "Profiler",
    "RaceResult",
    "measured_settings",
    "members_of",
    "profiler_for",
]

Executable: TypeAlias = "_core.Executable | IsolatedExecutable"
NodeTime: TypeAlias = "_core.NodeTime | IsolatedNodeTime"
Profiler: TypeAlias = "_core.Profiler | IsolatedProfiler"
RaceResult: TypeAlias = "_core.RaceResult"  # the child's has the same attributes


@dataclass(frozen=True, eq=False)
class Pool:
    """Several compiled models whose requests take turns.

    Attributes:
        members: The models.
        turns: Whose turn it is with each request, as indices into ``members``.
        requests: How many are in flight.
    """

    members: tuple[Executable, ...]
    turns: tuple[int, ...]
    requests: int
    subgraphs: int = 1

    @property
    def compile_seconds(self) -> float:
        """What compiling all of them took."""
        return sum(member.compile_seconds for member in self.members)


Compiled: TypeAlias = "_core.Executable | IsolatedExecutable | Pool"


def members_of(compiled: Compiled) -> tuple[Executable, ...]:
    """The models of a pool; a single model is its own."""
    return compiled.members if isinstance(compiled, Pool) else (compiled,)


_log = logging.getLogger("ov_autoplace")


def profiler_for(
    core: ov.Core | None,
    devices: Sequence[str],
    properties: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    isolation: bool = True,
) -> Profiler:
    """A profiler whose own ``ov::Core`` knows ``devices`` as ``core`` does.

    Aliases are registered again and properties that were set on ``core`` are copied, but for those of
    OpenVINO's model cache: what is compiled to be measured belongs into no cache.

    Args:
        core: The caller's Core; ``None`` means one that this process keeps.
        devices: Real devices.
        properties: More properties per device; they win over those of ``core``.
        isolation: Work in a child process, which may crash or hang without harm.
    """
    core = core or own_core()
    plugins = list(libraries_of(core, devices))
    settings = measured_settings(core, devices, properties)
    if isolation and (profiler := _isolated_profiler(plugins, settings)) is not None:
        return profiler
    return _core.Profiler(native_libraries(), plugins, settings)


def measured_settings(
    core: ov.Core, devices: Sequence[str], properties: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, dict[str, str]]:
    """What is set of each device when it is measured: what the Core and the caller say, but for caches."""
    return {
        device: {key: value for key, value in own.items() if key not in CACHE_PROPERTIES}
        for device, own in device_settings(core, devices, properties).items()
    }


def _isolated_profiler(
    plugins: Sequence[tuple[str, str]], settings: Mapping[str, Mapping[str, str]]
) -> Profiler | None:
    """A profiler with a child process; ``None``, with one warning per process, where none can be started."""
    try:
        return IsolatedProfiler(Child(plugins, settings))
    except (NoProcessError, ProcessEndedError) as cause:
        _warn_once(
            f"models are measured inside this process, where a plugin that crashes ends it: no other process "
            f"can be started to measure in ({cause})"
        )
        return None


@functools.cache
def _warn_once(sentence: str) -> None:
    _log.warning("%s", sentence)
