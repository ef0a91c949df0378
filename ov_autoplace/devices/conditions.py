"""What measurements on this machine hold for, as lines of text that keys of caches are made from."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._version import __version__
from ov_autoplace.devices.names import CACHE_PROPERTIES, device_settings, fingerprint
from ov_autoplace.devices.widths import Cores

__all__ = ["cpu_information", "has_tiles", "machine_lines", "measuring_conditions", "processor_name"]


def measuring_conditions(
    core: ov.Core,
    devices: Sequence[str],
    properties: Mapping[str, Mapping[str, Any]],
    cores: Cores | None = None,
) -> tuple[str, ...]:
    """Versions, devices with plugin builds and drivers, their properties, and the processors, a line each.

    Args:
        core: Knows the devices.
        devices: Device names.
        properties: OpenVINO properties per device; where blobs are cached is none that matters.
        cores: Those that are used; ``None`` = this process's.
    """
    cores = cores or Cores.of_this_process()
    settings = device_settings(core, devices, properties)
    return (
        f"ov-autoplace {__version__}",
        *fingerprint(core, devices).split("; "),
        *(
            f"{device}: {json.dumps({k: own[k] for k in sorted(own.keys() - set(CACHE_PROPERTIES))})}"
            for device, own in settings.items()
        ),
        _processors(cores),
    )


def machine_lines(core: ov.Core, devices: Sequence[str], cores: Cores | None = None) -> tuple[str, ...]:
    """What a plan of several models holds for: OpenVINO, devices with drivers, processors and their quota.

    What somebody sets on a Core is another question, and a device that this one lacks is no error.

    Args:
        core: Knows the devices.
        devices: Device names.
        cores: Those that all models share; ``None`` = this process's.
    """
    cores = cores or Cores.of_this_process()
    here = [device for device in devices if _is_here(core, device)]
    return (
        *fingerprint(core, here).split("; "),
        *(f"no {device}" for device in devices if device not in here),
        _processors(cores),
        "no quota" if cores.quota is None else cores.quota.label,
    )


def _is_here(core: ov.Core, device: str) -> bool:
    try:
        return bool(core.get_versions(device.split(".")[0]))
    except RuntimeError:
        return False


def _processors(cores: Cores) -> str:
    return f"{processor_name()}, {len(cores.processors)} of {os.cpu_count()} processors"


def processor_name() -> str:
    """The processor in its maker's words, as far as the operating system tells them."""
    return cpu_information().get("model name", "") or platform.processor() or platform.machine()


@cache
def has_tiles() -> bool:
    """Whether the processor multiplies matrices in tiles (AMX)."""
    return "amx_tile" in cpu_information().get("flags", "").split()


def cpu_information() -> dict[str, str]:
    """Fields of the first processor in ``/proc/cpuinfo``; empty where there is none."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
