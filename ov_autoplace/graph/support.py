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
from ov_autoplace.devices.names import CACHE_PROPERTIES
from ov_autoplace.errors import DeviceError, ModelError
from ov_autoplace.graph.op_kinds import OpKinds, op_kinds

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
    kinds: OpKinds | None = None,
) -> BoolArray:
    """Ask every device which ops of ``model`` it can run.

    In a model of more than :data:`LARGEST_WHOLE` ops, devices are asked about a few ops of each kind (see
    :func:`~ov_autoplace.graph.op_kinds.op_kinds`), and a warning says so.

    Args:
        core: Where the devices are registered.
        model: The model; its friendly names must be unique.
        names: The ops in the order of the result's rows, length N.
        devices: Device names, length D.
        properties: OpenVINO properties per device.
        kinds: The kinds of ops of a model that is so large, where they are known.

    Returns:
        ``bool[N, D]``. Constants, Parameters and Results count as supported everywhere: they follow
        their neighbours.

    Raises:
        ModelError: An op that no device can run.
        DeviceError: A device whose plugin fails on the question itself.
    """
    if kinds is None and len(names) > LARGEST_WHOLE:
        kinds = op_kinds(model)
    asked = model if kinds is None else kinds.model
    answers = []
    for device in devices:
        told = (properties or {}).get(device, {})
        # The CPU's plugin refuses a folder here before OpenVINO 2026.0, and no answer depends on one.
        told = {key: value for key, value in told.items() if key not in CACHE_PROPERTIES}
        try:
            answers.append(core.query_model(asked, device, told))
        except RuntimeError as cause:
            raise DeviceError(f"{device} does not answer for this model: {openvino_reason(cause)}") from cause
    if kinds is None:
        follows = {
            op.get_friendly_name()
            for op in model.get_ops()
            if op.get_type_name() in ("Constant", "Parameter", "Result")
        }
        columns = [np.array([name in able or name in follows for name in names]) for able in answers]
    else:
        row = {name: i for i, name in enumerate(kinds.names)}
        rows = [row.get(name, -1) for name in names]  # no device runs what the model does not have
        columns = [np.append(kinds.supported(answer), False)[rows] for answer in answers]
        _log.warning(
            "of %d ops, %s were asked whether they support %d, a few of each of %d kinds; others of a kind "
            "are taken to be supported alike",
            *(len(names), ", ".join(devices), sum(map(len, kinds.samples)), len(kinds.samples)),
        )
    mask: BoolArray = np.array(columns, dtype=np.bool_).reshape(len(devices), len(names)).T.copy()
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
