"""A placement's way into a model and into files, and back.

Two marks per op: ``affinity``, which HETERO reads when the model is compiled in this process, and
``user_data:autoplace``, the only kind of per-op note that OpenVINO writes into an IR. A summary stands
at model level under ``autoplace``.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import openvino as ov
from openvino._offline_transformations import apply_fused_names_cleanup

from ov_autoplace._base.collector import collection_paused
from ov_autoplace._base.files import staged_folder
from ov_autoplace.errors import OutputError, PlacementError
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique, unique_names
from ov_autoplace.placement.bounded import open_bounded_crossings
from ov_autoplace.placement.fitting import check_complete, fit, remember_folded
from ov_autoplace.placement.placement import Placement

__all__ = [
    "AFFINITY_KEY",
    "OP_KEY",
    "AnnotatedFiles",
    "annotate",
    "annotated_placement",
    "completed",
    "save_annotated",
    "set_affinities",
]

AFFINITY_KEY = "affinity"
OP_KEY = "user_data:autoplace"
_SUMMARY_KEY = "autoplace"
_RUNTIME_KEY = "OpenVINO Runtime"
_STORED_BYTES = re.compile(rb' shape="[^"]*" offset="(\d+)" size="(\d+)"')


class AnnotatedFiles(NamedTuple):
    """Where :func:`save_annotated` put its files."""

    model: Path
    affinities: Path


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
    from ov_autoplace._version import __version__

    placement = placement if isinstance(placement, Placement) else Placement.from_dict(placement)
    make_names_unique(model)
    fitted = fit(model, placement)
    if fitted.folded is not None:
        fold_static_shapes(model)
        if fitted.folded:
            remember_folded(model, fitted.folded)
    device_of = open_bounded_crossings(model, fitted.device_of)
    devices = set_affinities(model, device_of, keys=(AFFINITY_KEY, OP_KEY))
    count = Counter(devices)
    summary = {
        "version": __version__,
        "devices": ",".join(d for d in placement.devices if count[d]),
        "ops_per_device": ", ".join(f"{device}: {n}" for device, n in count.most_common()),
    }
    if placement.decision is not None:
        summary["chosen"] = placement.decision.chosen
        summary["decision"] = placement.decision.reason
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
    return Placement.from_dict(completed(model, device_of))


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


def save_annotated(model: ov.Model, placement: Placement, folder: str | Path, stem: str) -> AnnotatedFiles:
    """Write ``stem.autoplace.xml`` with its ``.bin``, and ``stem.affinity.json``.

    The affinity file is for ``model`` as it is given, as programs read it that set the affinities
    themselves. The annotated model may have its shape computations folded, and then be cut otherwise.

    All files are made in a hidden folder beside and renamed at the end, so that a failure leaves what was
    there. A kill at any moment leaves the older files, the new ones, or no ``.xml``.

    Args:
        model: The model; a clone is annotated.
        placement: Covers every op of the model, or every op that folding leaves.
        folder: Existing folder.
        stem: First part of the file names.

    Raises:
        OutputError: The folder cannot be written, or is full.
        PlacementError: See :func:`annotate`.
    """
    from ov_autoplace.decide.unfolding import unfolded  # asks solvers, which know of placements

    folder = Path(folder)
    with collection_paused():
        names = unique_names(op.get_friendly_name() for op in model.get_ordered_ops())
        if placement.given is None or set(placement.given) != set(names):
            placement = unfolded(model, placement)
        clone = model.clone()
        annotate(clone, placement)
    xml, weights, affinities = (f"{stem}.autoplace.xml", f"{stem}.autoplace.bin", f"{stem}.affinity.json")
    with staged_folder(folder) as stage:
        try:
            _save(clone, stage / xml, stage / weights)
        except RuntimeError as cause:
            raise OutputError(
                f"cannot write {folder / xml}: {str(cause).strip().splitlines()[-1]}"
            ) from cause
        placement.save(stage / affinities)
        _check_complete_files(stage / xml, stage / weights)
        _take_places(stage, folder, (weights, affinities, xml))
    return AnnotatedFiles(folder / xml, folder / affinities)


def _take_places(stage: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Put a set of files in place of an older one, of which the last file leads to the others.

    The leading file goes first and comes last: whoever sees it finds what belongs to it. A kill in between
    leaves a set without it, which nobody takes for a model, and the next run puts all of them. A failure in
    between puts the older set back.
    """
    *_, leader = names
    aside = stage / "aside"
    aside.mkdir()
    moved: list[str] = []
    try:
        for name in (leader, *names[:-1]):
            if os.path.lexists(folder / name):
                os.replace(folder / name, aside / name)
                moved.append(name)
        for name in names:
            os.replace(stage / name, folder / name)
    except BaseException:
        if leader in moved and os.path.lexists(folder / leader):
            (folder / leader).unlink()
        for name in reversed(moved):
            os.replace(aside / name, folder / name)
        raise


def _save(model: ov.Model, xml: Path, weights: Path) -> None:
    """The files of ``ov.save_model(model, xml, compress_to_fp16=False)``, from a model that may be changed.

    ``save_model`` clones the model first, which takes as long as the writing.
    """
    apply_fused_names_cleanup(model)
    model.set_rt_info(ov.get_version(), _RUNTIME_KEY)
    ov.serialize(model, xml, weights)


def _check_complete_files(xml: Path, weights: Path) -> None:
    """Refuse an IR that was cut short: the serializer does not report a full disk.

    The serializer writes both files from front to back. The text is whole when it ends with its root
    element (an attribute's ``<`` and ``"`` are escaped, so nothing else looks like these), the weights when
    they hold the bytes of every Constant that the text speaks of.

    Raises:
        OutputError: A file is missing or cut short.
    """
    try:
        text = xml.read_bytes()
        stored = weights.stat().st_size
    except OSError as cause:
        raise _not_stored(xml) from cause
    needed = max((int(start) + int(size) for start, size in _STORED_BYTES.findall(text)), default=0)
    if not text.rstrip().endswith(b"</net>") or stored < needed:
        raise _not_stored(xml)


def _not_stored(xml: Path) -> OutputError:
    return OutputError(f"cannot write {xml.name}: what was stored does not read back; is the disk full?")
