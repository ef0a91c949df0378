"""What the commands that take a model have in common: reading it, and getting a placement for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import IntArray
from ov_autoplace._base.text import counted
from ov_autoplace.cli.console import note, progress_bar
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.extension import is_scheduled
from ov_autoplace.devices.models import read_model
from ov_autoplace.devices.names import resolve_devices
from ov_autoplace.errors import DeviceError, ModelError, PlacementError
from ov_autoplace.graph.passes import NAMED, NAMES, run_passes
from ov_autoplace.plan.annotation import annotated_placement
from ov_autoplace.plan.decision import Candidate, Decision
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.placement import Placement

if TYPE_CHECKING:
    from ov_autoplace.explain.answer import Answer
    from ov_autoplace.explain.explanation import Explanation
    from ov_autoplace.plan.fitting import FittedPlacement

__all__ = [
    "Request",
    "assignment_of",
    "decision_of",
    "open_model",
]


@dataclass(frozen=True, eq=False)
class Request:
    """A model on a Core.

    Attributes:
        core: Knows the extra devices of the environment.
        model: Its friendly names are unique.
        path: Where the model was read from.
        seconds: How long reading took.
    """

    core: ov.Core
    model: ov.Model
    path: Path
    seconds: float

    @property
    def stem(self) -> str:
        """First part of the names of files made from this model; annotating twice does not prolong it."""
        return self.path.stem.removesuffix(".autoplace")

    def op_types(self, constants: bool) -> dict[str, str]:
        """Type of every op by friendly name, with or without Constants."""
        types = {op.get_friendly_name(): op.get_type_name() for op in self.model.get_ordered_ops()}
        return {name: kind for name, kind in types.items() if constants or kind != "Constant"}

    def search(self, devices: str | Sequence[str] | None, options: PlacerOptions) -> Placement:
        """Decide, with a progress bar."""
        return self.search_fitted(devices, options)[0]

    def search_fitted(
        self, devices: str | Sequence[str] | None, options: PlacerOptions
    ) -> tuple[Placement, FittedPlacement | None]:
        """:meth:`search`, with the model that the placement is of, where that is known."""
        from ov_autoplace.decide.place import machine_for, place_fitted

        with progress_bar() as progress:
            machine = machine_for(self.core, devices, replace(options, progress=progress))
            return place_fitted(machine, self.model)

    def given(self, path: Path, devices: str | Sequence[str] | None) -> Placement:
        """The placement of :meth:`given_fitted`."""
        return self.given_fitted(path, devices)[0]

    def given_fitted(
        self, path: Path, devices: str | Sequence[str] | None
    ) -> tuple[Placement, FittedPlacement]:
        """The placement in an affinity file, checked against this machine, and the model that it is of.

        Raises:
            PlacementError: The file does not cover the model's ops exactly.
            DeviceError: It names a device that is not here, or not among ``devices``.
        """
        placement = Placement.load(path)
        known = resolve_devices(self.core, devices)
        unknown = [device for device in placement.devices if device not in known]
        if unknown:
            raise DeviceError(f"{path} places ops on {unknown[0]!r}; the devices are {', '.join(known)}")
        try:
            return self._decided(placement, "given", f"{path} as it is")
        except PlacementError as cause:
            raise PlacementError(f"{path} does not fit {self.path}: {cause}") from cause

    def annotated(self, devices: str | Sequence[str] | None) -> Placement | None:
        """The placement that the model carries, or ``None`` when it carries none for these devices."""
        placement = annotated_placement(self.model)
        known = resolve_devices(self.core, devices)
        if placement is None or not set(placement.devices) <= set(known):
            return None
        return self._decided(placement, "annotated", f"the annotation of {self.path}")[0]

    def cost_table(
        self, placement: Placement, devices: str | Sequence[str] | None, options: PlacerOptions
    ) -> CostTable:
        """The costs that a placement rests on, or those of the same devices when it rests on none."""
        table = decision_of(placement).table
        if table is None and options.mode == "ZERO_SHOT":
            table = decision_of(self.search(devices, options)).table
        if table is None:
            from ov_autoplace.decide.machine import Machine
            from ov_autoplace.graph.prepare import prepare
            from ov_autoplace.measure.profiled import profile_session

            machine = Machine.of(self.core, devices, options)
            transfers = None if machine.target is None else machine.target.transfers
            with machine.open(prepare(self.model, options.shapes)) as session:
                table = profile_session(session, options.pins, transfers).table
        return table

    def explanation(
        self, placement: Placement, devices: str | Sequence[str] | None, options: PlacerOptions
    ) -> Explanation:
        """A placement taken apart: by the costs of its lanes where it has some."""
        from ov_autoplace.explain.lanes import LaneExplanation

        scheduled = decision_of(placement).scheduled
        if scheduled is None:
            return self.by_device(placement, devices, options)
        return LaneExplanation(scheduled.table, scheduled.assignment, options.pins)

    def by_device(
        self, placement: Placement, devices: str | Sequence[str] | None, options: PlacerOptions
    ) -> Explanation:
        """The same by the costs of devices, whose memory their lanes share."""
        from ov_autoplace.explain.hetero import HeteroExplanation

        table = self.cost_table(placement, devices, options)
        return HeteroExplanation(table, assignment_of(placement, table), options.pins)

    def explained(
        self,
        placement: Placement,
        devices: str | Sequence[str] | None,
        options: PlacerOptions,
        run: Sequence[Candidate] = (),
    ) -> Answer:
        """A decided placement taken apart, with what would change the prediction.

        Args:
            placement: The placement.
            devices: As the user named them.
            options: The placer's.
            run: What was run beside it, itself as the last one.
        """
        from ov_autoplace.explain.answer import Answer

        explanation = self.explanation(placement, devices, options)
        return Answer.of(str(self.path), decision_of(placement), explanation, options, self.model, run)

    def _decided(self, placement: Placement, chosen: str, how: str) -> tuple[Placement, FittedPlacement]:
        from ov_autoplace.plan.fitting import fit

        fitted = fit(self.model, placement)
        candidate = Candidate(chosen, placement.plan, subgraphs=fitted.submodels)
        finding = Finding.of(Kind.GIVEN, chosen, detail=how)
        decision = Decision(chosen, (finding,), chosen.upper(), (candidate,), {})
        placement = replace(placement, solver=chosen, decision=decision)
        return placement, replace(fitted, placement=placement)


def open_model(path: Path) -> Request:
    """Read a model and make its names unique, saying so.

    Raises:
        ModelError: The file is missing, is not a model, or is one that was divided into lanes already.
    """
    start = time.perf_counter()
    core = ov.Core()
    model = read_model(core, path)
    if is_scheduled(model):
        raise ModelError(
            f"{path} is divided into lanes already, and only runs; give the model that it was made from"
        )
    renamed = run_passes(model, NAMED).get(NAMES.name)
    if renamed:
        note(
            f"{counted(renamed, 'op')} of {path} got another name, because HETERO tells ops apart by name "
            "and others had the same"
        )
    return Request(core, model, path, time.perf_counter() - start)


def decision_of(placement: Placement) -> Decision:
    """The decision of a placement that was searched, given or annotated.

    Raises:
        PlacementError: It has none, which none of these ways leads to.
    """
    if placement.decision is None:
        raise PlacementError("this placement does not say how it was decided")
    return placement.decision


def assignment_of(placement: Placement, table: CostTable) -> IntArray:
    """Device of each group, ``int32[G]``; a group that the placement splits counts with its heaviest op."""
    try:
        return placement.groups_of(table)
    except PlacementError:
        device_of = placement.decided()
        position = {device: d for d, device in enumerate(table.devices)}
        return np.array([position[device_of[name]] for name in table.names], dtype=np.int32)
