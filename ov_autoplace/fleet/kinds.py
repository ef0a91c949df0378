"""Kinds of machines: those whose measurements may be put together, under a name that people can read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Kind", "describe_machine", "kind_of"]

# What makers put around the name of a processor.
_NOISE = re.compile(
    r"\((r|tm|c)\)|\b(cpu|processor|intel|amd|genuine|authentic\w*|\d+-core|with .*)\b|@.*", re.IGNORECASE
)
_NO_NAME = re.compile(r"[^a-z0-9.]+")
_MOST_LETTERS = 24


@dataclass(frozen=True)
class Kind:
    """What measurements hold for.

    Attributes:
        name: Short, of letters that file names may have; the same for the same facts, on every day.
        devices: OpenVINO's names, accelerators first.
        facts: Everything in which two machines of one kind are equal, a line each: releases, devices with
            full names, plugin builds, drivers and properties, the processor with its cores.
    """

    name: str
    devices: tuple[str, ...]
    facts: tuple[str, ...]


def kind_of(processor: str, cores: int, devices: Sequence[str], facts: Sequence[str]) -> Kind:
    """The kind of a machine.

    Args:
        processor: Its maker's name of it.
        cores: Of the processor, as many as a program may use.
        devices: OpenVINO's names.
        facts: See :class:`Kind`.
    """
    plain = _NO_NAME.sub("-", _NOISE.sub(" ", processor).lower()).strip("-")
    if len(plain) > _MOST_LETTERS:
        plain = plain[:_MOST_LETTERS].rpartition("-")[0] or plain[:_MOST_LETTERS]
    others = [_NO_NAME.sub("-", device.lower()).strip("-") for device in devices if device != "CPU"]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:6]
    return Kind("-".join([plain or "cpu", f"{cores}c", *others, digest]), tuple(devices), tuple(facts))


def describe_machine(offered: Sequence[str]) -> dict[str, Any]:
    """What the machine on which this runs is, as JSON values.

    Args:
        offered: Names of the devices that it offers to the cluster.
    """
    import openvino as ov

    from ov_autoplace.devices.conditions import measuring_conditions, processor_name
    from ov_autoplace.devices.names import full_device_name, resolve_devices

    core = ov.Core()
    found = resolve_devices(core)
    devices = tuple(device for device in found if device in offered)
    return {
        "found": list(found),
        "devices": list(devices),
        "full_names": {device: full_device_name(core, device) for device in devices},
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)),
        "facts": list(measuring_conditions(core, devices, {})),
    }
