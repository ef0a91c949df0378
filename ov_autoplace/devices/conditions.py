"""What measurements on this machine hold for, as lines of text that keys of caches are made from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import openvino as ov

from ov_autoplace._version import __version__
from ov_autoplace.cost.generic_target import processor_name
from ov_autoplace.devices.names import device_settings, fingerprint

__all__ = ["measuring_conditions"]


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
            f"{device}: {json.dumps({k: v for k, v in own.items() if k != 'CACHE_DIR'}, sort_keys=True)}"
            for device, own in settings.items()
        ),
        f"{processor_name()}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} processors",
    )
