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

import openvino as ov

from ov_autoplace.devices.conditions import processor_name
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import DeviceError, PlacementError
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique, unique_names
from ov_autoplace.graph.tied_weights import untie_weights
from ov_autoplace.placement.bounded import open_bounded_crossings
from ov_autoplace.placement.fitting import FittedPlacement, check_complete, fit, remember_folded
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.plan import WholePlan

__all__ = [
    "AFFINITY_KEY",
    "OP_KEY",
    "annotate",
    "annotate_fitted",
    "annotated_placement",
    "completed",
    "set_affinities",
    "summarize",
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
    placement = placement if isinstance(placement, Placement) else Placement.from_dict(placement)
    make_names_unique(model)
    annotate_fitted(model, placement, fit(model, placement))


def annotate_fitted(model: ov.Model, placement: Placement, fitted: FittedPlacement) -> None:
    """:func:`annotate` where it is known already which model the placement is of.

    Args:
        model: The model that ``placement`` was fitted to, or a clone of it; its names are unique.
        placement: The placement.
        fitted: What :func:`~ov_autoplace.placement.fitting.fit` found.
    """
    if fitted.folded is not None:
        fold_static_shapes(model)
        if fitted.folded:
            remember_folded(model, fitted.folded)
    device_of: Mapping[str, str] = fitted.device_of
    if len(fitted.graph.bounded_edges):
        device_of = open_bounded_crossings(model, device_of)
    devices = set_affinities(model, device_of, keys=(AFFINITY_KEY, OP_KEY))
    untie_weights(model)
    summarize(model, placement, devices)


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
    if placement.plan.width is not None:
        summary["width"] = str(placement.plan.width)
        summary["width_for"] = _compiler()
    for key, value in summary.items():
        model.set_rt_info(value, [_SUMMARY_KEY, key])


def set_affinities(
    model: ov.Model, device_of: Mapping[str, str], keys: tuple[str, ...] = (AFFINITY_KEY,)
) -> list[str]:
    """Write each op's device under ``keys``; the model's names must be unique.

    Returns:
        The device of every op, in topological order.

    Raises:
        PlacementError: An op without a device; the model is left as it was.
    """
    ops = model.get_ordered_ops()
    names = [op.get_friendly_name() for op in ops]
    check_complete(device_of, names)
    devices = [device_of[name] for name in names]
    for op, device in zip(ops, devices, strict=True):
        rt_info = op.get_rt_info()
        for key in keys:
            rt_info[key] = device
    return devices


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
    width = _annotated_width(model, placement, is_as_written)
    if width is None:
        return placement
    return replace(placement, own_plan=WholePlan(placement.devices[0], width))


def _annotated_width(model: ov.Model, placement: Placement, is_as_written: bool) -> Width | None:
    """The width in a summary.

    One thread of its own is a setting that was seen to compile this very model, with the OpenVINO and on the
    processor that are named beside it. In any other case it becomes the one that compiles a model as OpenVINO
    does by itself.
    """
    if not model.has_rt_info([_SUMMARY_KEY, "width"]):
        return None
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
    return width if was_seen or width.threads > 1 else replace(width, in_caller=True)


def _text(model: ov.Model, key: str) -> str:
    value = model.get_rt_info([_SUMMARY_KEY, key])
    return str(getattr(value, "value", value))


def _compiler() -> str:
    """What decides how a model is compiled for a CPU."""
    return f"OpenVINO {ov.get_version()} on {processor_name()}"


def completed(model: ov.Model, known: Mapping[str, str]) -> dict[str, str]:
    """A device for every op: that of a producer, else of a consumer, else the most frequent one.

    Args:
        model: Its ops are named in ``known`` as ``make_names_unique`` would name them.
        known: Devices of at least one op.

    Returns:
        Device by op name, in topological order.
    """
    device_of = dict(known)
    ops = model.get_ordered_ops()
    names = unique_names(op.get_friendly_name() for op in ops)
    if all(name in device_of for name in names):
        return {name: device_of[name] for name in names}
    name_of = {op.get_instance_id(): name for op, name in zip(ops, names, strict=True)}
    for op, name in zip(ops, names, strict=True):
        if name not in device_of:
            sources = (name_of[v.get_node().get_instance_id()] for v in op.input_values())
            device = next((device_of[s] for s in sources if s in device_of), None)
            if device is not None:
                device_of[name] = device
    most = Counter(device_of.values()).most_common(1)[0][0]
    for op, name in zip(reversed(ops), reversed(names), strict=True):
        if name not in device_of:
            readers = (t.get_node().get_instance_id() for o in op.outputs() for t in o.get_target_inputs())
            targets = (name_of[reader] for reader in readers)
            device_of[name] = next((device_of[t] for t in targets if t in device_of), most)
    return {name: device_of[name] for name in names}
