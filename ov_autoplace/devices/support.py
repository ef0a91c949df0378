"""Which op can run on which device, as the devices' own plugins answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.errors import DeviceError, ModelError

__all__ = ["supported_ops"]


def supported_ops(
    core: ov.Core,
    model: ov.Model,
    names: Sequence[str],
    devices: Sequence[str],
    properties: Mapping[str, Mapping[str, Any]] | None = None,
) -> BoolArray:
    """Ask every device which ops of ``model`` it can run.

    Args:
        core: Where the devices are registered.
        model: The model; its friendly names must be unique.
        names: The ops in the order of the result's rows, length N.
        devices: Device names, length D.
        properties: OpenVINO properties per device.

    Returns:
        ``bool[N, D]``. Constants, Parameters and Results count as supported everywhere: they follow
        their neighbours.

    Raises:
        ModelError: An op that no device can run.
        DeviceError: A device whose plugin fails on the question itself.
    """
    follows = {
        op.get_friendly_name()
        for op in model.get_ops()
        if op.get_type_name() in ("Constant", "Parameter", "Result")
    }
    mask = np.zeros((len(names), len(devices)), dtype=bool)
    for d, device in enumerate(devices):
        try:
            answer = core.query_model(model, device, dict((properties or {}).get(device, {})))
        except RuntimeError as cause:
            raise DeviceError(f"{device} does not answer for this model: {openvino_reason(cause)}") from cause
        mask[:, d] = [name in answer or name in follows for name in names]
    unsupported = np.flatnonzero(~mask.any(axis=1))
    if len(unsupported):
        types = {op.get_friendly_name(): op.get_type_name() for op in model.get_ops()}
        first = names[int(unsupported[0])]
        raise ModelError(
            f"{len(unsupported)} ops can run on none of {', '.join(devices)}, the first is {first!r} "
            f"of type {types.get(first, 'unknown')}; add a device that supports it or replace the op"
        )
    return mask
