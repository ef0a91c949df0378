"""Which model a placement is of: the one given, or the same with its static shape computations folded.

HETERO does not fold. In a model with folded shapes it may cut where it must not before, so a placement can
be right for one of the two and wrong for the other. Everything that writes, counts or runs a placement asks
here, so that all have the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import openvino as ov

from ov_autoplace._base.arrays import IntArray
from ov_autoplace._base.json_fields import parse_json
from ov_autoplace._base.text import counted
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.passes import FOLDED, MEND, NAMES, Pass
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.graph.tied_weights import has_tied_weights
from ov_autoplace.plan.bounded import opened_crossings
from ov_autoplace.plan.legality import broken_bonds
from ov_autoplace.plan.partition import (
    completed,
    count_graph_subgraphs,
    number_devices,
)
from ov_autoplace.plan.placement import Placement

__all__ = [
    "FittedPlacement",
    "check_complete",
    "count_subgraphs",
    "fit",
    "fit_prepared",
    "placing",
    "refusal",
    "remember_changes",
]


# Where `annotate` notes, in a model that it changed, the ops that are no more, and those that are new.
_CHANGED_KEY = ["autoplace", "changed"]


@dataclass(frozen=True, eq=False)
class FittedPlacement:
    """A placement with the form of its model that HETERO can run it on.

    Attributes:
        prepared: The model as it is given, or with its shapes folded.
        placement: The placement.
        device_of: Device of each of the form's N ops, in topological order.
        cut: The ops that HETERO cuts, those of the form after :func:`placing`, with a number per op that
            tells devices apart.
    """

    prepared: PreparedModel
    placement: Placement
    device_of: dict[str, str]
    cut: tuple[ComputationGraph, IntArray]

    @property
    def model(self) -> ov.Model:
        """The model in that form."""
        return self.prepared.model

    @property
    def submodels(self) -> int:
        """How many submodels HETERO makes."""
        return count_graph_subgraphs(*self.cut)

    def submodels_as_given(self, device_of: Mapping[str, str]) -> int:
        """How many submodels plain HETERO makes of the model as it is given.

        Args:
            device_of: Device of its ops; a placement that runs there, as ``Placement.given`` does.
        """
        graph = self.prepared.given_structure
        return count_graph_subgraphs(graph, number_devices(graph.names, device_of))


def fit(model: ov.Model, placement: Placement | Mapping[str, str]) -> FittedPlacement:
    """Find the form that a placement is of: the model as given where HETERO can run that, else the folded.

    A placement with :attr:`~ov_autoplace.plan.placement.Placement.given` is of the folded one.

    Args:
        model: The model; it is not modified. Where names repeat, ops are told apart as
            ``make_names_unique`` would name them.
        placement: A device for every op of ``model``, or for every op that folding leaves.

    Raises:
        PlacementError: An op has no device, a placed op is not in the model, or HETERO cannot run the
            placement.
    """
    placement = placement if isinstance(placement, Placement) else Placement.from_dict(placement)
    given = PreparedModel.of(model)
    device_of = _of_annotated(model, placement.decided(), given.structure.names)
    reasons = _reasons(given.structure, device_of) if placement.given is None else None
    if reasons == []:
        return _fitted(given, placement, device_of)
    folded = given.then(FOLDED)
    still = _reasons(folded.structure, device_of)
    if still == []:
        return _fitted(folded, placement, device_of)
    check_complete(device_of, folded.structure.names)
    raise _not_runnable(reasons or still or [])


def fit_prepared(prepared: PreparedModel, placement: Placement) -> FittedPlacement:
    """:func:`fit` where it is known that the placement was decided on that form of its model."""
    device_of = placement.decided()
    reasons = _reasons(prepared.structure, device_of)
    if reasons:
        raise _not_runnable(reasons)
    return _fitted(prepared, placement, device_of)


def refusal(model: ov.Model, device_of: Mapping[str, str]) -> PlacementError | None:
    """Why HETERO does not run a placement of a model as it is, where that is known."""
    structure = PreparedModel.of(model).structure
    reasons = _reasons(structure, completed(model, device_of))
    return _not_runnable(reasons) if reasons else None


def _not_runnable(reasons: Sequence[str]) -> PlacementError:
    more = f" (and {len(reasons) - 1} more like it)" if len(reasons) > 1 else ""
    return PlacementError(
        f"HETERO cannot run this placement: {reasons[0]}{more}; "
        "place them, and what lies between them, on one device"
    )


def _fitted(prepared: PreparedModel, placement: Placement, device_of: Mapping[str, str]) -> FittedPlacement:
    graph = prepared.structure
    device_of = {name: device_of[name] for name in graph.names}
    cut = graph, number_devices(graph.names, device_of)
    if len(set(device_of.values())) > 1 and (len(graph.bounded_edges) or has_tied_weights(prepared.model)):
        placed = prepared.then((NAMES, *placing(device_of)))
        names = placed.structure.names
        cut = placed.structure, number_devices(names, completed(placed.model, device_of))
    return FittedPlacement(prepared, placement, device_of, cut)


def placing(device_of: Mapping[str, str]) -> tuple[Pass, ...]:
    """What is done to a model that is to run on these devices, by op."""
    return opened_crossings(device_of), MEND


def _reasons(graph: ComputationGraph, device_of: Mapping[str, str]) -> list[str] | None:
    """Why HETERO cannot run a placement of a graph's ops; ``None`` where it leaves an op out."""
    if any(name not in device_of for name in graph.names):
        return None
    broken = broken_bonds(graph, number_devices(graph.names, device_of))
    # First what the placement says itself, then what HETERO parts on one device because of it.
    broken.sort(key=lambda bond: device_of[bond.first] == device_of[bond.second])
    return [bond.reason for bond in broken]


def check_complete(device_of: Mapping[str, str], names: Iterable[str]) -> None:
    """Refuse a placement that leaves an op out.

    Raises:
        PlacementError: It does.
    """
    names = list(names)
    missing = [name for name in names if name not in device_of]
    if missing:
        raise PlacementError(
            f"there is no device for {len(missing)} of {counted(len(names), 'op')}, "
            f"the first is {missing[0]!r}; every op needs one, Constants, Parameters and Results too"
        )


def remember_changes(model: ov.Model, names: Iterable[str]) -> None:
    """Note in a model which ops passes took away or added, so that its placement is known as its own."""
    noted = {*names, *_changed_before(model)}
    if noted:
        model.set_rt_info(json.dumps(sorted(noted)), _CHANGED_KEY)


def _changed_before(model: ov.Model) -> set[str]:
    if not model.has_rt_info(_CHANGED_KEY):
        return set()
    noted = model.get_rt_info(_CHANGED_KEY)
    try:
        names = parse_json(getattr(noted, "value", noted))
    except (ValueError, TypeError):
        return set()
    return set(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else set()


def _of_annotated(model: ov.Model, device_of: dict[str, str], names: Sequence[str]) -> dict[str, str]:
    """The devices of a placement, and of what :func:`annotate` added to the model when it wrote it.

    Raises:
        PlacementError: A placed op is not in the model, and was not when that was annotated.
    """
    noted, known = _changed_before(model), set(names)
    unknown = sorted(device_of.keys() - known - noted)
    if unknown:
        others = f" and lacks {counted(len(unknown) - 1, 'other placed op')}" if len(unknown) > 1 else ""
        raise PlacementError(
            f"the model has no op {unknown[0]!r}{others}; was the placement made for another model?"
        )
    added = known.difference(device_of) & noted
    placed = completed(model, device_of) if added else {}
    return device_of | {name: placed[name] for name in added}


def count_subgraphs(model: ov.Model, placement: Placement | Mapping[str, str]) -> int:
    """How many submodels HETERO makes of a placed model (its ``HETERO_NUMBER_OF_SUBMODELS``).

    The same before and after :func:`ov_autoplace.annotate` writes the placement into the model.

    Args:
        model: The model; it is not modified.
        placement: Device of every op, by friendly name. Where names repeat, ops are told apart as
            ``make_names_unique`` would name them.

    Raises:
        PlacementError: An op has no device, a placed op is not in the model, or HETERO cannot run the
            placement.
    """
    return fit(model, placement).submodels
