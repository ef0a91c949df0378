"""Opening a session for a prepared model, with what its devices support and can hold of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import openvino as ov

from ov_autoplace.cost.target import Target
from ov_autoplace.devices.names import device_properties
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.graph.shapes import Call
from ov_autoplace.measure.feasibility import Feasibility, memory_capacity
from ov_autoplace.measure.session import ProfilingSession

__all__ = ["open_session"]


def open_session(
    core: ov.Core,
    prepared: PreparedModel,
    devices: Sequence[str],
    *,
    properties: Mapping[str, Any] | None = None,
    memory_limits: Mapping[str, float] | None = None,
    target: Target | None = None,
    seed: int = 0,
    isolation: bool = True,
    beside: ProfilingSession | None = None,
    calls: Sequence[Call] = (),
) -> ProfilingSession:
    """A session of a prepared model that knows what the devices support and can hold of it.

    Args:
        core: Where the devices are.
        prepared: The model.
        devices: Device names.
        properties: OpenVINO properties, as for ``compile_model``.
        memory_limits: Bytes by device, where that is less than it has.
        target: A profile that says how much memory the devices have; else they are asked.
        seed: Of the input data.
        isolation: Compile and run in a child process.
        beside: Compile in the process of this session.
        calls: Several shapes, all of which an inference consists of.
    """
    own = device_properties(core, devices, properties)
    supported = prepared.supported(core, devices, own)
    memory = memory_capacity(core, devices, memory_limits or {}, target)
    feasibility = Feasibility(tuple(devices), prepared.graph, supported, memory)
    return ProfilingSession(
        core,
        prepared.model,
        devices,
        own,
        prepared.shapes,
        seed,
        isolation=isolation,
        feasibility=feasibility,
        beside=beside,
        calls=calls,
    )
