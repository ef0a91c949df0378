"""Where a benchmark runs: machine, versions, commit, its pairs of devices, the virtual GPU's variables."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import date, datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import openvino as ov

from harness.process import Failure, commit, in_child
from ov_autoplace.devices.conditions import processor_name

PAIRS = {"alias": ("XCPU", "CPU"), "gpu": ("GPU", "CPU"), "cpu": ("CPU",)}
"""Devices by pair: the CPU plugin twice, on one thread and on two; the GPU plugin beside the CPU's; the CPU
alone, as OpenVINO has it."""

_CPU_PLUGIN = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"
# Where there are several, all compute in f32, so that none is faster by computing less exactly.
_F32 = {"INFERENCE_PRECISION_HINT": "f32"}
_PROPERTIES = {
    "alias": {
        "XCPU": {
            "INFERENCE_NUM_THREADS": 1,
            "EXCLUSIVE_ASYNC_REQUESTS": False,
            # On one thread, OpenVINO crashes while it tokenises some small graphs.
            "SNIPPETS_MODE": "DISABLE",
        },
        "CPU": {"INFERENCE_NUM_THREADS": 2, "EXCLUSIVE_ASYNC_REQUESTS": False},
    },
    "gpu": {"GPU": {}, "CPU": {}},
}

_PACKAGES = ("ov-autoplace", "openvino", "numpy", "scipy", "torch", "dgl", "transformers", "onnx", "pymetis")
_NO_GPU = (
    "there is no GPU here, and no virtual one: run tools/virtual_gpu/install.py with this Python, "
    "or give its file of variables with --virtual-gpu"
)
_PACED = (
    "VIRTUAL_GPU_PACED is set, so that a virtual GPU would compute nothing and take made-up times; unset it "
    "(the section paced sets it itself)"
)


def core_of(pair: str) -> ov.Core:
    """A Core that knows the devices of a pair of :data:`PAIRS`."""
    core = ov.Core()
    if pair == "alias":
        core.register_plugin(str(_CPU_PLUGIN), "XCPU")
    for device, properties in _PROPERTIES.get(pair, {}).items():
        core.set_property(device, _F32 | properties)
    return core


def executor_of(pair: str) -> str:
    """Who runs the placements of a pair: of one device, they are schedules on its lanes."""
    return "HETERO" if pair in _PROPERTIES else "OVERLAP"


def machine_line() -> str:
    """Date, processor, core count, Python and OpenVINO versions."""
    cores = len(os.sched_getaffinity(0))
    python = platform.python_version()
    return f"{date.today()} | {processor_name()}, {cores} cores | Python {python} | OpenVINO {ov.__version__}"


def head_of(command: str) -> dict[str, str]:
    """What a whole run begins with: command, date, machine, versions."""
    versions = []
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} not installed")
    return {"command": command, **provenance(), "versions": ", ".join(versions)}


def provenance() -> dict[str, str]:
    """Of one section: time, machine, commit, and how busy the machine was."""
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine_line(),
        "commit": commit() or "not a checkout",
        "load average at the start": loads,
    }


def gpu_variables(file: Path | None) -> dict[str, str] | Failure:
    """Variables with which a process sees a GPU; none are needed where OpenVINO finds one.

    Args:
        file: Written by ``tools/virtual_gpu/install.py``; the one of this environment when ``None``.
    """
    if "VIRTUAL_GPU_PACED" in os.environ:
        return Failure(_PACED)
    if file is None and has_gpu():
        return {}
    file = file or Path(sys.prefix) / "virtual_gpu" / "env"
    if not file.is_file():
        return Failure(_NO_GPU)
    variables = _read(file)
    seen = in_child(has_gpu, {"file": str(file)}, variables)
    if seen is True:
        return variables
    return Failure(f"with the variables of {file} OpenVINO finds no GPU")


def has_gpu(**_: Any) -> bool:
    """Whether this process sees a GPU."""
    return any(device.split(".")[0] == "GPU" for device in ov.Core().available_devices)


def _read(file: Path) -> dict[str, str]:
    """The variables that a shell script sets, as the shell understands them."""
    script = 'env -0; printf "\\0"; . "$1" && env -0'
    done = subprocess.run(["sh", "-c", script, "sh", str(file)], capture_output=True, text=True, check=True)
    before, after = (
        dict(entry.split("=", 1) for entry in part.split("\0") if "=" in entry)
        for part in done.stdout.split("\0\0", 1)
    )
    return {key: value for key, value in after.items() if before.get(key) != value and key != "_"}
