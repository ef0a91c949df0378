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

__all__ = [
    "cpu_information",
    "generation",
    "has_tiles",
    "instructions",
    "machine_lines",
    "measuring_conditions",
    "processor",
    "processor_name",
]

_CAP, _NO_CAP = "ONEDNN_MAX_CPU_ISA", ("", "ALL", "DEFAULT")
# oneDNN, which computes for OpenVINO's CPU, uses no instructions beyond those of the set that the environment
# names. Its sets in their order, and the flags of /proc/cpuinfo that each adds, of those that tell how fast a
# processor is.
_INSTRUCTION_SETS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("SSE41", "AVX"), ()),
    "AVX2": ("avx2",),
    "AVX2_VNNI": ("avx_vnni",),
    "AVX2_VNNI_2": (),
    "AVX512_CORE": ("avx512f",),
    "AVX512_CORE_VNNI": (),
    "AVX512_CORE_BF16": ("avx512_bf16",),
    "AVX512_CORE_FP16": ("avx512_fp16",),
    "AVX512_CORE_AMX": ("amx_tile", "amx_bf16"),
    "AVX512_CORE_AMX_FP16": ("amx_fp16",),
}


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
    return f"{processor()}, {len(cores.processors)} of {os.cpu_count()} processors"


def processor() -> str:
    """What tells a processor from others, for which models are compiled differently.

    The name alone does not: many a virtual machine calls all processors of one maker the same.
    """
    return " ".join([processor_name(), *_numbers("cpu family", "model", "stepping"), *_capped()])


def _numbers(*fields: str) -> list[str]:
    """Fields of the processor with their names, those that the operating system tells."""
    information = cpu_information()
    return [f"{field} {information[field]}" for field in fields if field in information]


def _capped() -> list[str]:
    """To which instructions the environment keeps the processor, if to any."""
    return [] if _cap() in _NO_CAP else [f"{_CAP}={_cap()}"]


def generation() -> str:
    """Maker, family and instructions of the processor: equal for processors that are alike.

    Processors of several generations may share all else that they tell of themselves: AMD's Zen 5 has the
    name and the frequency of a Zen 4 in some virtual machines, and takes half its time. AMD counts families
    by generation; Intel has one family for many generations, and counts models.
    """
    flags, maker = _flags(), cpu_information().get("vendor_id", "unknown maker")
    numbers = _numbers("cpu family", "model") if maker == "GenuineIntel" else _numbers("cpu family")
    known = [flag for added in _INSTRUCTION_SETS.values() for flag in added if flag in flags]
    return " ".join([maker, *numbers, *known, *_capped()])


def processor_name() -> str:
    """The processor in its maker's words, as far as the operating system tells them."""
    return cpu_information().get("model name", "") or platform.processor() or platform.machine()


@cache
def has_tiles() -> bool:
    """Whether the processor multiplies matrices in tiles (AMX)."""
    return "amx_tile" in instructions()


def instructions() -> frozenset[str]:
    """Flags of ``/proc/cpuinfo`` for what models are computed with, as far as the environment allows it."""
    sets, cap = list(_INSTRUCTION_SETS), _cap()
    beyond = sets[sets.index(cap) + 1 :] if cap in sets else []
    return _flags().difference(*(_INSTRUCTION_SETS[one] for one in beyond))


def _cap() -> str:
    return os.environ.get(_CAP, "").upper()


def _flags() -> frozenset[str]:
    information = cpu_information()
    return frozenset(information.get("flags", information.get("Features", "")).split())


@cache
def cpu_information() -> Mapping[str, str]:
    """Fields of the first processor in ``/proc/cpuinfo``; empty where there is none."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
