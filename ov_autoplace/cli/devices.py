"""``ov-autoplace devices``: what this machine has, and how fast a target profile says its devices are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import openvino as ov

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import bytes_text, print_json, print_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.decide.machine import Machine

if TYPE_CHECKING:
    from ov_autoplace.cost.target import DeviceProfile, Target

__all__ = ["devices"]

_PRECISION = re.compile(r"(BF|FP|INT)\d+|BIN")  # plugins tell other capabilities among them


def devices(target: arguments.Target = None, as_json: arguments.Json = False) -> None:
    """What is here: name, full name, precisions, memory, and calibrated rates with --target."""
    from ov_autoplace.devices.names import resolve_devices

    version = ov.__version__.split("-")[0]
    core = ov.Core()
    names = resolve_devices(core)
    here = generic_target(core, names) if names else None
    rows = [_description(Machine(core, names), device) for device in here.devices] if here else []
    profile = load_target(target) if target is not None else None
    if as_json:
        report: dict[str, Any] = {"openvino": version, "devices": rows}
        if profile is not None:
            report["target"] = {
                "name": profile.name,
                "measured": profile.is_measured,
                "rates": _rates(profile),
            }
        print_json(report)
        return
    print_table(
        f"Devices of OpenVINO {version}",
        ("device", "~full name", "~precisions", ">memory", ">threads"),
        [
            (
                r["name"],
                r["full_name"],
                ", ".join(r["precisions"]),
                bytes_text(r["memory_bytes"]),
                ", ".join(r["widths"]) or None,
            )
            for r in rows
        ],
    )
    if profile is not None:
        how = "measured" if profile.is_measured else "from public figures, nothing was measured"
        print_table(
            f"Target {profile.name} ({how})",
            ("device", "op class", "precision", ">rate", "~source"),
            [
                (
                    r["device"],
                    r["op_class"],
                    r["precision"],
                    f"{r['per_second'] / 1e9:.1f} G{r['unit']}/s",
                    r["source"],
                )
                for r in _rates(profile)
            ],
        )


def _description(machine: Machine, device: DeviceProfile) -> dict[str, Any]:
    from ov_autoplace.devices.names import is_emulated

    try:
        capabilities = machine.core.get_property(device.name, "OPTIMIZATION_CAPABILITIES")
    except RuntimeError:
        capabilities = []  # this plugin does not report them
    return {
        "name": device.name,
        "full_name": device.full_name,
        "emulated": is_emulated(machine.core, device.name),
        "precisions": [c for c in capabilities if _PRECISION.fullmatch(c)],
        "memory_bytes": device.memory_bytes,
        "widths": [*map(str, machine.widths(device.name)), str(device.threads)] if device.threads else [],
    }


def _rates(profile: Target) -> list[dict[str, Any]]:
    """The fastest known rate of each device, op class and precision."""
    return [
        {
            "device": device.name,
            "op_class": rate.op_class,
            "precision": rate.precision,
            "per_second": float(rate.per_second.max()),
            "unit": "byte" if rate.op_class == "copy" else "flop",
            "source": rate.source,
        }
        for device in profile.devices
        for rate in device.rates
    ]
