"""An annotated model and its affinities as files, which replace an older set as a whole."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import openvino as ov
from openvino._offline_transformations import apply_fused_names_cleanup

from ov_autoplace._base.collector import collection_paused
from ov_autoplace._base.files import staged_folder
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.errors import OutputError
from ov_autoplace.graph.names import unique_names
from ov_autoplace.placement.annotation import annotate, summarize
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.scheduled import scheduled_model

__all__ = ["AnnotatedFiles", "save_annotated"]


_RUNTIME_KEY = "OpenVINO Runtime"


_STORED_BYTES = re.compile(rb' shape="[^"]*" offset="(\d+)" size="(\d+)"')


class AnnotatedFiles(NamedTuple):
    """Where :func:`save_annotated` put its files."""

    model: Path
    affinities: Path


def save_annotated(model: ov.Model, placement: Placement, folder: str | Path, stem: str) -> AnnotatedFiles:
    """Write ``stem.autoplace.xml`` with its ``.bin``, and ``stem.affinity.json``.

    A placement with a plan for lanes becomes a model with the plan in it; see
    :mod:`ov_autoplace.placement.scheduled`.

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
    folder = Path(folder)
    with collection_paused():
        names = unique_names(op.get_friendly_name() for op in model.get_ordered_ops())
        if placement.given is None or set(placement.given) != set(names):
            placement = unfolded(model, placement)
        if placement.plan is not None:
            clone = scheduled_model(model, placement.plan)
            summarize(clone, placement)
        else:
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
