"""Which op can run on which device, as the devices' own plugins answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace._base.text import counted
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.op_kinds import op_kinds
from ov_autoplace.errors import DeviceError, ModelError

__all__ = ["LARGEST_WHOLE", "supported_ops"]

_log = logging.getLogger("ov_autoplace")

LARGEST_WHOLE = 10_000
"""Ops of the largest model about all of which devices are asked."""


def supported_ops(
    core: ov.Core,
    model: ov.Model,
    names: Sequence[str],
    devices: Sequence[str],
    properties: Mapping[str, Mapping[str, Any]] | None = None,
) -> BoolArray:
    """Ask every device which ops of ``model`` it can run.

    In a model of more than :data:`LARGEST_WHOLE` ops, devices are asked about a few ops of each kind (see
    :func:`~ov_autoplace.devices.op_kinds.op_kinds`), and a warning says so.

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
    kinds = op_kinds(model) if len(names) > LARGEST_WHOLE else None
    asked = model if kinds is None else kinds.model
    mask = np.zeros((len(names), len(devices)), dtype=bool)
    for d, device in enumerate(devices):
        try:
            answer = core.query_model(asked, device, dict((properties or {}).get(device, {})))
        except RuntimeError as cause:
            raise DeviceError(f"{device} does not answer for this model: {openvino_reason(cause)}") from cause
        able = answer if kinds is None else kinds.supported(answer)
        mask[:, d] = [name in able or name in follows for name in names]
    if kinds is not None:
        _log.warning(
            "of %d ops, %s were asked whether they support %d, a few of each of %d kinds; others of a kind "
            "are taken to be supported alike",
            *(len(names), ", ".join(devices), sum(map(len, kinds.samples)), len(kinds.samples)),
        )
    unsupported = np.flatnonzero(~mask.any(axis=1))
    if len(unsupported):
        types = {op.get_friendly_name(): op.get_type_name() for op in model.get_ops()}
        first = names[int(unsupported[0])]
        raise ModelError(
            f"{counted(len(unsupported), 'op')} can run on none of {', '.join(devices)}, "
            f"the first is {first!r} of type {types.get(first, 'unknown')}; "
            "add a device that supports it or replace the op"
        )
    return mask
