"""``ov-autoplace devices``: what this machine has, and how fast it was measured to be."""

from __future__ import annotations

from typing import Any

import openvino as ov

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import bytes_text, print_json, print_table

__all__ = ["devices"]

_MEMORY_PROPERTIES = ("GPU_DEVICE_TOTAL_MEM_SIZE", "NPU_DEVICE_TOTAL_MEM_SIZE")


def devices(target: arguments.Target = None, as_json: arguments.Json = False) -> None:
    """What is here: name, full name, precisions, memory, and calibrated rates with --target."""
    from ov_autoplace.devices import core_with_extra_devices, resolve_devices

    core = core_with_extra_devices()
    rows = [_description(core, name) for name in resolve_devices(core)]
    if as_json:
        print_json({"openvino": ov.get_version(), "devices": rows})
        return
    print_table(
        f"Devices of OpenVINO {ov.__version__}",
        ("device", "full name", "precisions", ">memory"),
        [(r["name"], r["full_name"], " ".join(r["precisions"]), bytes_text(r["memory_bytes"])) for r in rows],
    )


def _description(core: ov.Core, name: str) -> dict[str, Any]:
    capabilities = _property(core, name, "OPTIMIZATION_CAPABILITIES") or []
    sizes = (_property(core, name, key) for key in _MEMORY_PROPERTIES)
    return {
        "name": name,
        "full_name": _property(core, name, "FULL_DEVICE_NAME") or "",
        "precisions": [c for c in capabilities if c != "EXPORT_IMPORT"],
        "memory_bytes": next((int(size) for size in sizes if size), None),
    }


def _property(core: ov.Core, device: str, key: str) -> Any:
    try:
        return core.get_property(device, key)
    except RuntimeError:
        return None  # this plugin does not report it
