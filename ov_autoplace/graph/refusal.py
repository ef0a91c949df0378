"""Why a device refuses a model: the op, where devices or trials tell it, in one sentence."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.errors import AutoplaceError, ModelError
from ov_autoplace.graph.op_kinds import excerpts
from ov_autoplace.graph.prepare import prepare

__all__ = ["refusal", "refusal_reason", "refused_op"]

# Looking for an op compiles one of each kind, which takes a CPU some milliseconds.
_SECONDS = 5.0


def refusal(
    core: ov.Core,
    model: ov.Model,
    devices: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    cause: RuntimeError,
    compile_on: Callable[[str, ov.Model], object],
) -> ModelError:
    """What to raise where OpenVINO does not compile a model.

    Args:
        core: Where the devices are.
        model: Is not modified.
        devices: Those that it was compiled for.
        shapes: Shape by input name, for dynamic inputs.
        cause: What OpenVINO says.
        compile_on: Compiles for a device a model.
    """
    reason = refusal_reason(cause)
    try:
        prepared = prepare(model, shapes)
        prepared.supported(core, devices)
        for device in devices:
            if op := refused_op(prepared.model, reason, partial(compile_on, device)):
                return ModelError(
                    f"{device} refuses the op {op}: {reason}; add a device that supports it or replace the op"
                )
    except ModelError as known:
        return known
    except AutoplaceError:
        pass  # there is more that is wrong, but this is not what was asked
    return ModelError(f"{' and '.join(devices)} cannot compile the model: {reason}")


def refused_op(model: ov.Model, reason: str, compile_alone: Callable[[ov.Model], object]) -> str:
    """The op for which a device refuses a model that it claims to support, like ``'old' of type ReadValue``.

    OpenVINO's report rarely names it. It is found as the first that is refused for the same reason by itself,
    or together with those that read it.

    Args:
        model: With unique names; is not modified.
        reason: What the device says of the whole model.
        compile_alone: Compiles a part of it for the device.

    Returns:
        Its name and type; empty where there is none.
    """

    def is_refused(part: ov.Model) -> bool:
        try:
            compile_alone(part)
        except (RuntimeError, OSError, AutoplaceError) as cause:
            return refusal_reason(cause) == reason
        return False

    start = time.perf_counter()
    anything = opset.parameter([1], np.float32)
    if is_refused(ov.Model([opset.relu(anything)], [anything], "anything")):
        return ""  # it is not for an op
    for record, part in excerpts(model):
        if is_refused(part):
            return f"{record.name!r} of type {record.op_type}"
        if time.perf_counter() - start > _SECONDS:
            break
    return ""


def refusal_reason(cause: BaseException) -> str:
    """What OpenVINO says of a model, without the end of its sentence."""
    return openvino_reason(cause).rstrip(".")
