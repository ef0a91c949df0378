"""An annotated model and its affinities as files, which replace an older set as a whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import openvino as ov
from openvino._offline_transformations import apply_fused_names_cleanup

from ov_autoplace._base.collector import collection_paused
from ov_autoplace._base.files import staged_folder
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.devices.models import make_readable
from ov_autoplace.errors import OutputError
from ov_autoplace.graph.passes import NAMED, run_passes
from ov_autoplace.measure.model_file import is_whole
from ov_autoplace.plan.annotation import summarize, write_placement
from ov_autoplace.plan.fitting import FittedPlacement, fit
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.scheduled import scheduled_model

__all__ = ["AnnotatedFiles", "save_annotated", "save_fitted"]


_RUNTIME_KEY = "OpenVINO Runtime"


class AnnotatedFiles(NamedTuple):
    """Names of the files of an annotated model, which lie in one folder.

    Attributes:
        model: The model, ``.xml``.
        affinities: The device of every op.
    """

    model: Path
    affinities: Path

    @classmethod
    def of(cls, folder: str | Path, stem: str) -> AnnotatedFiles:
        """``stem.autoplace.xml`` and ``stem.affinity.json`` in a folder."""
        return cls(Path(folder) / f"{stem}.autoplace.xml", Path(folder) / f"{stem}.affinity.json")

    @classmethod
    def named(cls, model: str | Path) -> AnnotatedFiles:
        """A model of any name that ends in ``.xml``, and ``.affinity.json`` in the place of that."""
        return cls(Path(model), Path(model).with_suffix(".affinity.json"))

    @property
    def weights(self) -> Path:
        """Where OpenVINO looks for the model's weights."""
        return self.model.with_suffix(".bin")


def save_annotated(model: ov.Model, placement: Placement, folder: str | Path, stem: str) -> AnnotatedFiles:
    """Write a placement of a model by :func:`save_fitted` under the names of :meth:`AnnotatedFiles.of`."""
    files = AnnotatedFiles.of(folder, stem)
    with collection_paused():
        save_fitted(fit(model, placement), files)
    return files


def save_fitted(fitted: FittedPlacement, files: AnnotatedFiles, *, in_place: bool = False) -> Placement:
    """Write an annotated model with its weights, and its affinities.

    A placement with a plan for lanes becomes a model with the plan in it; see
    :mod:`ov_autoplace.plan.scheduled`.

    The affinity file is for the model as it is given, as programs read it that set the affinities
    themselves. The annotated model may have its shape computations folded, and then be cut otherwise.

    All files are made in a hidden folder beside and renamed at the end, so that a failure leaves what was
    there. A kill at any moment leaves the older files, the new ones, or no ``.xml``.

    Args:
        fitted: The placement, and the form of the model that it fits.
        files: Their names; the folder exists.
        in_place: Annotate that form itself, of which nobody needs what it was before. Else a clone is
            annotated, and takes memory, too.

    Returns:
        The placement, with what the affinity file holds.

    Raises:
        OutputError: The folder cannot be written, or is full.
        PlacementError: See :func:`annotate`.
    """
    folder, placement = files.model.parent, fitted.placement
    with collection_paused():
        names = fitted.prepared.given_structure.names
        if set(placement.given or ()) != set(names):
            placement = unfolded(fitted)
        if isinstance(placement.plan, LanePlan):
            annotated = scheduled_model(fitted.prepared.given, placement.plan)
            summarize(annotated, placement)
        else:
            annotated = fitted.model if in_place else fitted.model.clone()
            run_passes(annotated, NAMED)
            write_placement(annotated, fitted)
    xml, weights, affinities = files.model.name, files.weights.name, files.affinities.name
    with staged_folder(folder) as stage:
        try:
            _save(annotated, stage / xml, stage / weights)
        except RuntimeError as cause:
            raise OutputError(
                f"cannot write {folder / xml}: {str(cause).strip().splitlines()[-1]}"
            ) from cause
        placement.save(stage / affinities)
        if not is_whole(stage / xml, stage / weights):
            raise OutputError(
                f"cannot write {folder / xml}: what was stored does not read back; is the disk full?"
            )
        _take_places(stage, folder, (weights, affinities, xml))
    return placement


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
    make_readable(xml)
