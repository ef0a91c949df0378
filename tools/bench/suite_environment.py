"""Where a benchmark ran: machine, versions, commit, and the variables of the virtual GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import openvino as ov
from common import machine_line
from suite_process import Failure, commit, in_child

__all__ = ["gpu_variables", "has_gpu", "head_of", "provenance"]

_PACKAGES = ("ov-autoplace", "openvino", "numpy", "scipy", "torch", "dgl", "transformers", "onnx", "pymetis")
_NO_GPU = (
    "there is no GPU here, and no virtual one: run tools/virtual_gpu/install.py with this Python, "
    "or give its file of variables with --virtual-gpu"
)


def head_of(command: str) -> dict[str, str]:
    """What stands above everything: command, date, machine, versions."""
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
    if file is None and has_gpu():
        return {}
    file = file or Path(sys.prefix) / "virtual_gpu" / "env"
    if not file.is_file():
        return Failure(_NO_GPU)
    variables = _read(file)
    seen = in_child("suite_environment:has_gpu", {"file": str(file)}, variables)
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
