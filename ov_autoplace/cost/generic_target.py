"""A target for a machine without a profile, from what its devices and its operating system say.

Nothing here is measured. Peaks come from the devices (or, for CPUs, from threads x flop per cycle x
frequency); how much of a peak an op class reaches, what an op costs at least, and what crossing costs are
the assumptions below, in round numbers that err on the side of slow accelerators: a zero-shot answer should
rather miss a gain than make a model slower.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace._base.text import no_such_device
from ov_autoplace.cost.target import DeviceProfile, Rate, Target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.devices.conditions import cpu_information, generation, instructions
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import DeviceError

__all__ = ["SYNCHRONISATION_SECONDS", "default_precision", "generic_target", "memory_of"]

SYNCHRONISATION_SECONDS = 2.6e-6
"""Waking the threads of a CPU and waiting for the last one, per op and doubling of the threads: the median of
85 networks on two cores, of which single ones took 0.85 to 4.6 us. Small models are slower on two threads
than on one for it."""

# What of it an estimated op is charged. Calibrations of five kinds of processor found 0.4 to 1.9 us in chains
# of ops, and whole models wait longer than those.
_CHARGED_SYNCHRONISATION_SECONDS = 1.6e-6

# Share of the arithmetic peak that an op class reaches. That of a CPU is found from the frequency that
# /proc/cpuinfo tells, which virtual machines run above.
_EFFICIENCY = {"matmul": 0.6, "convolution": 0.5, "depthwise": 0.1, "elementwise": 0.1}
_CPU_EFFICIENCY = {"matmul": 0.9, "convolution": 0.9, "depthwise": 0.3, "elementwise": 0.1}

# Per kind of device: bytes/s of its memory, seconds of an op, seconds of a subgraph.
_CPU_BANDWIDTH_PER_THREAD, _CPU_BANDWIDTH = 16e9, 60e9  # two channels of DDR5-4800, 80 % reached
_BANDWIDTH = {"integrated GPU": 40e9, "discrete GPU": 300e9, "NPU": 40e9}
_OP_SECONDS = {"CPU": 0.3e-6, "integrated GPU": 5e-6, "discrete GPU": 5e-6, "NPU": 10e-6}
_LAUNCH_SECONDS = {"CPU": 6e-6, "integrated GPU": 30e-6, "discrete GPU": 40e-6, "NPU": 100e-6}

# Transfers go through host memory. A CPU writes where the next one reads; an integrated device copies
# within one memory; a discrete one crosses PCI Express 3.0 x16.
_TRANSFER_SECONDS = {"CPU": 0.5e-6, "integrated GPU": 5e-6, "discrete GPU": 8e-6, "NPU": 10e-6}
_SECONDS_PER_BYTE = {"CPU": 1 / 40e9, "integrated GPU": 1 / 20e9, "discrete GPU": 1 / 10e9, "NPU": 1 / 10e9}

# Speed of matrix products and convolutions relative to f32, by instruction set flag of /proc/cpuinfo. Other
# ops are as fast in every precision. OpenVINO converts f16 where only vectors have instructions for it.
_CPU_SPEEDUP = {"bf16": {"amx_bf16": 4.0, "avx512_bf16": 2.0}, "f16": {"amx_fp16": 4.0, "avx512_fp16": 0.5}}
_SPED_UP = ("matmul", "convolution")
_EMULATED_BF16 = 1 / 40  # where vectors of AVX-512 have no instructions for bf16
_ZEN_5 = 26  # AMD's number of that family of processors
_GUESSED_PEAK = 50e9  # flop/s of a device that says nothing: one core of an old laptop


def generic_target(
    core: ov.Core, devices: Sequence[str], properties: Mapping[str, str] | None = None
) -> Target:
    """A target from what the devices say of themselves, for a machine without a profile.

    Args:
        core: Where the devices are.
        devices: Their names.
        properties: On how many threads, and in which precision, models will be compiled for all of them,
            where that is not what is set on the Core.

    Raises:
        DeviceError: A device that the Core does not know.
    """
    kinds = [_kind(core, device) for device in devices]
    profiles = tuple(
        _profile(core, device, kind, properties or {}) for device, kind in zip(devices, kinds, strict=True)
    )
    fixed = np.array([_TRANSFER_SECONDS[kind] for kind in kinds])
    per_byte = np.array([_SECONDS_PER_BYTE[kind] for kind in kinds])
    return Target(
        name="generic",
        openvino=ov.get_version(),
        created=datetime.date.today().isoformat(),
        fingerprint="",
        devices=profiles,
        transfers=TransferFit(
            devices=tuple(devices),
            # A transfer costs what its slower end costs.
            latency=frozen_array(np.maximum.outer(fixed, fixed), np.float64),
            seconds_per_byte=frozen_array(np.maximum.outer(per_byte, per_byte), np.float64),
            launch_seconds=frozen_array([_LAUNCH_SECONDS[kind] for kind in kinds], np.float64),
        ),
        transfers_source="assumed by kind of device",
    )


def _profile(core: ov.Core, device: str, kind: str, properties: Mapping[str, str]) -> DeviceProfile:
    precision = properties.get("INFERENCE_PRECISION_HINT") or default_precision(core, device)
    overhead, overhead_source = _OP_SECONDS[kind], f"assumed for any {kind}"
    threads = int(properties.get("INFERENCE_NUM_THREADS", 0)) or _threads(core, device)
    threads = threads if kind == "CPU" else 0
    sources = {}
    efficiency = _CPU_EFFICIENCY if threads else _EFFICIENCY
    speedup = 1.0
    if threads:
        overhead += _CHARGED_SYNCHRONISATION_SECONDS * math.log2(threads)
        sources["synchronisation_seconds"] = "assumed for any CPU"
        overhead_source += f" with {threads} threads"
        bandwidth = min(_CPU_BANDWIDTH, threads * _CPU_BANDWIDTH_PER_THREAD)
        peak, source = _cpu_peak(threads)
        speedup = _cpu_speedup(precision)
    else:
        bandwidth = _BANDWIDTH[kind]
        peak, source = _reported_peak(core, device, precision)
    memory, memory_source = memory_of(core, device)
    rates = []
    for op_class, share in efficiency.items():
        per_second = share * peak * (speedup if op_class in _SPED_UP else 1.0)
        assumed = f"assumed {share:.0%} of {source}"
        rates.append(Rate(op_class, precision, np.ones(1), np.array([per_second]), assumed))
    rates.append(Rate("copy", precision, np.ones(1), np.array([bandwidth]), f"assumed for any {kind}"))
    return DeviceProfile(
        name=device,
        full_name=str(_property(core, device, "FULL_DEVICE_NAME") or device),
        precision=precision,
        rates=tuple(rates),
        op_overhead_seconds=overhead,
        memory_bytes=memory,
        sources={"op_overhead_seconds": overhead_source, "memory_bytes": memory_source, **sources},
        threads=threads,
        synchronisation_seconds=_CHARGED_SYNCHRONISATION_SECONDS if threads else 0.0,
        generation=generation() if threads else "",
    )


def _kind(core: ov.Core, device: str) -> str:
    """Key of the tables above."""
    try:
        plugin = next(iter(core.get_versions(device.split(".")[0]).values())).description
    except RuntimeError as cause:
        raise DeviceError(no_such_device(device, core.available_devices)) from cause
    if "gpu" in plugin:
        discrete = str(_property(core, device, "DEVICE_TYPE") or "").upper().endswith("DISCRETE")
        return "discrete GPU" if discrete else "integrated GPU"
    return "NPU" if "npu" in plugin else "CPU"


def _property(core: ov.Core, device: str, key: str) -> Any:
    try:
        return core.get_property(device, key)
    except RuntimeError:
        return None  # this plugin does not report it


def default_precision(core: ov.Core, device: str) -> str:
    """Element type name that the device computes floating-point models in unless told otherwise."""
    precision = _property(core, device, "INFERENCE_PRECISION_HINT")
    if isinstance(precision, ov.Type) and precision != ov.Type.dynamic:
        return str(precision.to_string())
    return "f32"


def _threads(core: ov.Core, device: str) -> int:
    asked = int(_property(core, device, "INFERENCE_NUM_THREADS") or 0)
    return asked or Cores.of_this_process().all


def _cpu_peak(threads: int) -> tuple[float, str]:
    """Peak flop/s in f32: threads x flop per cycle x frequency."""
    information, flags = cpu_information(), instructions()
    # The highest frequency of the clock governor where it is known, else the present one.
    try:
        hertz = float(Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").read_text()) * 1e3
    except (OSError, ValueError):
        hertz = float(re.sub(r"[^0-9.]", "", information.get("cpu MHz", "")) or 2000.0) * 1e6
    peak = threads * _flop_per_cycle(information, flags) * hertz
    return peak, "threads x flop per cycle x frequency of /proc/cpuinfo"


def _cpu_speedup(precision: str) -> float:
    flags = instructions()
    without = _EMULATED_BF16 if precision == "bf16" and "avx512f" in flags else 1.0
    return next((s for flag, s in _CPU_SPEEDUP.get(precision, {}).items() if flag in flags), without)


def _flop_per_cycle(information: Mapping[str, str], flags: Set[str]) -> int:
    """What a core computes in f32: lanes x 2 units x 2 (multiply and add)."""
    lanes = 16 if "avx512f" in flags else 8 if "avx2" in flags else 4
    is_amd = information.get("vendor_id") == "AuthenticAMD"
    if lanes == 16 and is_amd and int(information.get("cpu family", 0)) < _ZEN_5:
        lanes = 8  # these cores compute vectors of AVX-512 in halves
    return lanes * 2 * 2


def _reported_peak(core: ov.Core, device: str, precision: str) -> tuple[float, str]:
    reported = _property(core, device, "DEVICE_GOPS") or {}
    gops = {
        key.to_string() if isinstance(key, ov.Type) else str(key): float(v) for key, v in reported.items()
    }
    for key in (precision, "f16", "f32"):
        if gops.get(key, 0.0) > 0:
            return gops[key] * 1e9, f"DEVICE_GOPS ({key})"
    return _GUESSED_PEAK, "a guess, since the device reports no DEVICE_GOPS"


def memory_of(core: ov.Core, device: str) -> tuple[float, str]:
    """Bytes of memory that models may fill on a device, and who says so."""
    if _kind(core, device) == "CPU":
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return float(physical), "physical memory, from the operating system"
    for key in ("GPU_DEVICE_TOTAL_MEM_SIZE", "NPU_DEVICE_TOTAL_MEM_SIZE"):
        size = _property(core, device, key)
        if size:
            return float(size), key
    return math.inf, "not reported by the device, taken as not limited"
