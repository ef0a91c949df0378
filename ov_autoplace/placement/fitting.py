"""Which model a placement is of: the one given, or the same with its static shape computations folded.

HETERO does not fold. In a model with folded shapes it may cut where it must not before, so a placement can
be right for one of the two and wrong for the other. Everything that writes, counts or runs a placement asks
here, so that all have the same answer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import openvino as ov

from ov_autoplace._base.arrays import IntArray
from ov_autoplace._base.text import counted, parse_json
from ov_autoplace.errors import PlacementError, VersionMismatchError
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract_structure
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.graph.prepare import PreparedModel, normalize
from ov_autoplace.placement.bounded import open_bounded_crossings
from ov_autoplace.placement.legality import broken_bonds
from ov_autoplace.placement.partition import count_graph_subgraphs, graph_subgraphs, number_devices
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.plan import Plan

__all__ = ["FittedPlacement", "check_complete", "count_subgraphs", "fit", "remember_folded"]

_log = logging.getLogger("ov_autoplace")

# Where `annotate` notes, in a model that it folded, the placed ops that are no more.
_FOLDED_KEY = ["autoplace", "folded"]


@dataclass(frozen=True, eq=False)
class FittedPlacement:
    """A placement with the model that HETERO can run it on.

    Attributes:
        model: The model itself, or a clone with unique names and folded shapes.
        graph: Its N ops, whose sizes may mean nothing.
        as_given: The ops of the given model: ``graph`` itself unless that is folded.
        device_of: Device of each op, in topological order.
        own_plan: Of the placement.
        folded: Placed ops of the given model that ``model`` lacks, because it is a folded clone; ``None``
            when ``model`` is the given one.
        cut: The ops that HETERO cuts, with a number per op that tells devices apart: those of ``graph``,
            and what is inserted where a tensor with bounded dimensions crosses.
    """

    model: ov.Model
    graph: ComputationGraph
    as_given: ComputationGraph
    device_of: dict[str, str]
    own_plan: Plan | None
    folded: tuple[str, ...] | None
    cut: tuple[ComputationGraph, IntArray]

    @property
    def plan(self) -> Plan:
        """How :attr:`model` runs."""
        return self.own_plan or Placement.from_dict(self.device_of).plan

    @property
    def submodels(self) -> int:
        """How many submodels HETERO makes."""
        return count_graph_subgraphs(*self.cut)

    def submodels_as_given(self, device_of: Mapping[str, str]) -> int:
        """How many submodels plain HETERO makes of the given model.

        Args:
            device_of: Device of its ops; a placement that runs there, as ``Placement.given`` does.
        """
        return count_graph_subgraphs(self.as_given, number_devices(self.as_given.names, device_of))

    @property
    def devices(self) -> IntArray:
        """A number per op, equal for ops on the same device, ``int32[N]``."""
        return number_devices(self.graph.names, self.device_of)


def fit(
    model: ov.Model, placement: Placement | Mapping[str, str], prepared: PreparedModel | None = None
) -> FittedPlacement:
    """Find the model that a placement is of: the given one where HETERO can run it as it is, else the folded.

    A placement that was decided on the folded model (``Placement.given``) is of that.

    Args:
        model: The model; it is not modified. Where names repeat, ops are told apart as
            ``make_names_unique`` would name them.
        placement: A device for every op of ``model``, or for every op that folding leaves.
        prepared: ``model`` as it was prepared, where that is known: it is then not read again.

    Raises:
        PlacementError: An op has no device, a placed op is not in the model, or HETERO cannot run the
            placement.
    """
    placement = placement if isinstance(placement, Placement) else Placement.from_dict(placement)
    device_of = placement.decided()
    is_read = prepared is not None and not prepared.is_folded
    graph = prepared.graph if prepared is not None and is_read else extract_structure(model)
    _check_known(device_of, {*graph.names, *_folded_before(model)})
    reasons = _reasons(graph, device_of) if placement.given is None else None
    if reasons is None or reasons:
        folded = _folded(model, prepared)
        if folded is not None:
            clone, folded_graph = folded
            still = _reasons(folded_graph, device_of)
            if still is not None and not still:
                gone = tuple(sorted(set(device_of) - set(folded_graph.names)))
                return _fitted(clone, folded_graph, graph, device_of, placement.own_plan, gone)
            graph, reasons = (folded_graph, still) if reasons is None else (graph, reasons)
        elif reasons is None:
            reasons = _reasons(graph, device_of)
    if reasons is None:
        check_complete(device_of, graph.names)
    if reasons:
        more = f" (and {len(reasons) - 1} more like it)" if len(reasons) > 1 else ""
        raise PlacementError(
            f"HETERO cannot run this placement: {reasons[0]}{more}; "
            "place them, and what lies between them, on one device"
        )
    return _fitted(model, graph, graph, device_of, placement.own_plan, None)


def _folded(model: ov.Model, prepared: PreparedModel | None) -> tuple[ov.Model, ComputationGraph] | None:
    """A clone of a model with its shape computations folded, and its ops; ``None`` where it has none."""
    if prepared is not None:
        return (prepared.model, prepared.graph) if prepared.is_folded else None
    clone = model.clone()
    return (clone, extract_structure(clone)) if normalize(clone) else None


def _fitted(
    model: ov.Model,
    graph: ComputationGraph,
    as_given: ComputationGraph,
    device_of: Mapping[str, str],
    own_plan: Plan | None,
    folded: tuple[str, ...] | None,
) -> FittedPlacement:
    device_of = {name: device_of[name] for name in graph.names}
    numbers = number_devices(graph.names, device_of)
    cut = (graph, numbers)
    if len(graph.bounded_edges):
        subgraph = graph_subgraphs(graph, numbers)
        if (subgraph[graph.bounded_edges[:, 0]] != subgraph[graph.bounded_edges[:, 1]]).any():
            clone = model.clone()
            make_names_unique(clone)
            opened = open_bounded_crossings(clone, device_of)
            opened_graph = extract_structure(clone)
            cut = (opened_graph, number_devices(opened_graph.names, opened))
    return FittedPlacement(model, graph, as_given, device_of, own_plan, folded, cut)


def _reasons(graph: ComputationGraph, device_of: Mapping[str, str]) -> list[str] | None:
    """Why HETERO cannot run a placement of a graph's ops; ``None`` where it leaves an op out."""
    if any(name not in device_of for name in graph.names):
        return None
    try:
        broken = broken_bonds(graph, number_devices(graph.names, device_of))
    except VersionMismatchError as cause:
        _log.warning("the placement is taken as it is: whether HETERO can run it was not checked; %s", cause)
        return []
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


def remember_folded(model: ov.Model, names: Iterable[str]) -> None:
    """Note in a model which placed ops were folded away, so that their placement is known as its own."""
    model.set_rt_info(json.dumps(sorted({*names, *_folded_before(model)})), _FOLDED_KEY)


def _folded_before(model: ov.Model) -> list[str]:
    if not model.has_rt_info(_FOLDED_KEY):
        return []
    noted = model.get_rt_info(_FOLDED_KEY)
    try:
        names = parse_json(getattr(noted, "value", noted))
    except (ValueError, TypeError):
        return []
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def _check_known(device_of: Mapping[str, str], known: set[str]) -> None:
    unknown = sorted(name for name in device_of if name not in known)
    if unknown:
        others = f" and lacks {counted(len(unknown) - 1, 'other placed op')}" if len(unknown) > 1 else ""
        raise PlacementError(
            f"the model has no op {unknown[0]!r}{others}; was the placement made for another model?"
        )


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
