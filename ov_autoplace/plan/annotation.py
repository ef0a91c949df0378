"""A placement's way into a model and into files, and back.

Two marks per op: ``affinity``, which HETERO reads when the model is compiled in this process, and
``user_data:autoplace``, the only kind of per-op note that OpenVINO writes into an IR. A summary is
at model level under ``autoplace``; where the one device is a CPU that shall not use all of its threads, it
says how many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import openvino as ov

from ov_autoplace.devices.conditions import has_tiles, processor
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import DeviceError, PlacementError
from ov_autoplace.graph.failing import can_crash_on_one_thread, halves_threads
from ov_autoplace.graph.passes import FOLDED, NAMED, run_passes
from ov_autoplace.plan.partition import completed
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import Plan, WholePlan

if TYPE_CHECKING:  # compiling with a decision that is kept, which shall be quick, writes nothing into a model
    from ov_autoplace.plan.fitting import FittedPlacement

__all__ = [
    "AFFINITY_KEY",
    "OP_KEY",
    "annotate",
    "annotated_placement",
    "set_affinities",
    "summarize",
    "write_placement",
]

AFFINITY_KEY = "affinity"
OP_KEY = "user_data:autoplace"
_SUMMARY_KEY = "autoplace"


def annotate(model: ov.Model, placement: Placement | Mapping[str, str]) -> None:
    """Write a placement into ``model``, which is modified.

    Every top-level op gets its device as ``affinity`` (read by HETERO) and as ``user_data:autoplace``
    (survives ``save_model``); the model gets a summary under ``autoplace``. Ops that share a friendly
    name are renamed, because HETERO tells ops apart by name. Where the placement is of the model with folded
    shapes, or can only be run there, the model's static shape computations become Constants.

    Raises:
        PlacementError: An op without a device, a device for an op that the model does not have, or a
            placement that HETERO cannot run.
    """
    from ov_autoplace.plan.fitting import fit

    fitted = fit(model, placement)
    run_passes(model, FOLDED if fitted.prepared.is_folded else NAMED)
    write_placement(model, fitted)


def write_placement(model: ov.Model, fitted: FittedPlacement) -> None:
    """:func:`annotate` a model that is in the form which its placement fits.

    Args:
        model: The form's model, or a clone of it, with unique names.
        fitted: The placement.
    """
    from ov_autoplace.plan.fitting import remember_changes

    device_of = set_affinities(model, fitted.device_of, keys=(AFFINITY_KEY, OP_KEY))
    remember_changes(model, fitted.placement.decided().keys() ^ device_of.keys())
    summarize(model, fitted.placement, list(device_of.values()))


def summarize(model: ov.Model, placement: Placement, devices: Sequence[str] | None = None) -> None:
    """Say at model level what was decided.

    Args:
        model: Gets the texts.
        placement: What was decided.
        devices: Device of every op; those of ``placement`` when ``None``.
    """
    from ov_autoplace._version import __version__

    count = Counter(placement.decided().values() if devices is None else devices)
    summary = {
        "version": __version__,
        "devices": ",".join(d for d in placement.devices if count[d]),
        "ops_per_device": ", ".join(f"{device}: {n}" for device, n in count.most_common()),
    }
    if placement.decision is not None:
        summary["chosen"] = placement.decision.chosen
        summary["decision"] = placement.decision.reason
    if placement.plan.threads:
        summary["width"] = str(placement.plan.width)
        summary["width_for"] = _compiler()
    for key, value in summary.items():
        model.set_rt_info(value, [_SUMMARY_KEY, key])


def set_affinities(
    model: ov.Model, device_of: Mapping[str, str], keys: tuple[str, ...] = (AFFINITY_KEY,)
) -> dict[str, str]:
    """Write each op's device under ``keys``, once tensors can cross between devices and the model is mended.

    Args:
        model: Its names are unique. It is of no use after an error but that of an op without a device.
        device_of: Device of every op.
        keys: Where to write.

    Returns:
        The device of every op, in topological order.

    Raises:
        PlacementError: An op without a device, or tensors that cannot cross.
    """
    from ov_autoplace.plan.fitting import check_complete, placing

    check_complete(device_of, [op.get_friendly_name() for op in model.get_ordered_ops()])
    run_passes(model, placing(device_of))
    placed = completed(model, device_of)
    for op in model.get_ordered_ops():
        for key in keys:
            op.get_rt_info()[key] = placed[op.get_friendly_name()]
    return placed


def annotated_placement(model: ov.Model) -> Placement | None:
    """The placement that :func:`annotate` wrote, or ``None`` when the model carries none.

    Ops that were added since (by preprocessing, for example) take the device of a neighbour.

    Raises:
        PlacementError: The annotation is damaged: a device that is not a text.
    """
    ops = model.get_ordered_ops()
    device_of: dict[str, str] = {}
    for op in ops:
        rt_info = op.get_rt_info()
        if OP_KEY in rt_info:
            device = rt_info[OP_KEY]
            device = getattr(device, "value", device)
            if not isinstance(device, str) or not device:
                raise PlacementError(
                    f"op {op.get_friendly_name()!r} is annotated with {device!r}, not a device name"
                )
            device_of[op.get_friendly_name()] = device
    if not device_of:
        return None
    placement = Placement.from_dict(completed(model, device_of))
    is_as_written = all(op.get_friendly_name() in device_of for op in ops)
    return replace(placement, plan=_annotated_plan(model, placement, is_as_written))


def _annotated_plan(model: ov.Model, placement: Placement, is_as_written: bool) -> Plan:
    """How a model runs: on the width in its summary, where it has one.

    One thread of its own was seen to compile this very model, with the OpenVINO and on the processor that are
    named beside it. In any other case a model of which that is not certain runs in the calling thread.
    """
    if not model.has_rt_info([_SUMMARY_KEY, "width"]):
        return placement.plan
    try:
        width = Width.parse(_text(model, "width"))
    except DeviceError as cause:
        raise PlacementError(f"the model's annotation is damaged: {cause}") from cause
    if len(placement.devices) != 1:
        raise PlacementError(
            f"the model's annotation is damaged: it gives the width {width} to several devices, "
            f"{', '.join(placement.devices)}"
        )
    was_seen = (
        is_as_written
        and model.has_rt_info([_SUMMARY_KEY, "width_for"])
        and _text(model, "width_for") == _compiler()
    )
    if width.threads == 1 and has_tiles() and halves_threads(model):
        return placement.plan  # in which precision it will be compiled is not known here
    if width.threads == 1 and not was_seen and can_crash_on_one_thread(model):
        width = replace(width, in_caller=True)
    return WholePlan(placement.devices[0], width)


def _text(model: ov.Model, key: str) -> str:
    value = model.get_rt_info([_SUMMARY_KEY, key])
    return str(getattr(value, "value", value))


def _compiler() -> str:
    """What decides how a model is compiled for a CPU."""
    return f"OpenVINO {ov.get_version()} on {processor()}"
