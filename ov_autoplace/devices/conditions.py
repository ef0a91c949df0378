"""What measurements on this machine hold for, as lines of text that keys of caches are made from."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._version import __version__
from ov_autoplace.devices.names import CACHE_PROPERTIES, device_settings, fingerprint
from ov_autoplace.devices.widths import Cores

__all__ = ["cpu_information", "machine_lines", "measuring_conditions", "processor_name"]


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
        f"{processor_name()}, {len(cores.processors)} of {os.cpu_count()} processors",
    )


def machine_lines(core: ov.Core, devices: Sequence[str], cores: Cores | None = None) -> tuple[str, ...]:
    """What a plan of several models holds for: OpenVINO, devices with drivers, processors and their quota.

    Args:
        core: Knows the devices.
        devices: Device names.
        cores: Those that all models share; ``None`` = this process's.
    """
    cores = cores or Cores.of_this_process()
    _, *conditions = measuring_conditions(core, devices, {}, cores)
    return (*conditions, "no quota" if cores.quota is None else cores.quota.label)


def processor_name() -> str:
    """The processor in its maker's words, as far as the operating system tells them."""
    return cpu_information().get("model name", "") or platform.processor() or platform.machine()


def cpu_information() -> dict[str, str]:
    """Fields of the first processor in ``/proc/cpuinfo``; empty where there is none."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
