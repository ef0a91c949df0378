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
    core: ov.Core, devices: Sequence[str], properties: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    """Versions, devices with plugin builds and drivers, their properties, and the processors, a line each.

    Args:
        core: Knows the devices.
        devices: Device names.
        properties: OpenVINO properties per device; where blobs are cached is none that matters.
    """
    settings = device_settings(core, devices, properties)
    return (
        f"ov-autoplace {__version__}",
        *fingerprint(core, devices).split("; "),
        *(
            f"{device}: {json.dumps({k: own[k] for k in sorted(own.keys() - set(CACHE_PROPERTIES))})}"
            for device, own in settings.items()
        ),
        f"{processor_name()}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} processors",
    )


def machine_lines(core: ov.Core, devices: Sequence[str]) -> tuple[str, ...]:
    """What a plan of several models holds for: OpenVINO, devices with drivers, processors and their quota."""
    quota = Cores.of_this_process().quota
    _, *conditions = measuring_conditions(core, devices, {})
    return (*conditions, "no quota" if quota is None else quota.label)


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
