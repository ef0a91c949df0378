"""Starting Ray on a computer so that it offers its OpenVINO devices to a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import openvino as ov

from ov_autoplace.devices.names import resolve_devices
from ov_autoplace.errors import DeviceError, FleetError
from ov_autoplace.fleet.connection import check_answer, require_ray
from ov_autoplace.fleet.members import DEVICE_RESOURCE

__all__ = ["join", "joining_command"]

_SECONDS = 120.0


def joining_command(
    address: str, devices: str | Sequence[str] | None, name: str = ""
) -> tuple[list[str], tuple[str, ...]]:
    """The command that joins a cluster with the OpenVINO devices of this computer, and these devices.

    Args:
        address: ``HOST:PORT`` of the cluster's head.
        devices: Which of them; all when ``None``.
        name: What the computer is to be called; its own name when empty.

    Raises:
        DeviceError: A device that is not here, or there is none.
    """
    names = resolve_devices(ov.Core(), devices)
    if not names:
        raise DeviceError("OpenVINO finds no device on this machine; install the driver of one")
    resources = json.dumps({f"{DEVICE_RESOURCE}{device}": 1 for device in names})
    command = ["ray", "start", "--address", address, "--resources", resources]
    return command + (["--node-name", name] if name else []), names


def join(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a joining command, after which this computer is a node until ``ray stop``.

    Args:
        command: As :func:`joining_command` makes it.
        environment: Of the node's processes; this process's own when ``None``.

    Raises:
        OptionError: Ray is not installed.
        FleetError: The cluster does not answer, or does not take this computer.
    """
    require_ray()
    check_answer(command[command.index("--address") + 1])
    # Ray's own program, of the Python that runs this one: its processes will run this package.
    program = [sys.executable, "-m", "ray.scripts.scripts", *command[1:]]
    own: dict[str, Any] = dict(os.environ if environment is None else environment)
    own.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        done = subprocess.run(program, env=own, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as cause:
        raise FleetError(
            f"`ray start` did not end within {_SECONDS:g} s; try it yourself to see why: {' '.join(command)}"
        ) from cause
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise FleetError(f"`ray start` failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
