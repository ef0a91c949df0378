"""The form in which the package works on a model: unique names, folded shape computations, and its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import openvino as ov

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace._base.collector import collection_paused
from ov_autoplace.errors import ModelError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique, unique_names
from ov_autoplace.graph.op_kinds import OpKinds, op_kinds
from ov_autoplace.graph.records import ModelReader, OpRecord
from ov_autoplace.graph.support import LARGEST_WHOLE, supported_ops

__all__ = ["PreparedModel", "normalize", "prepare"]

# The op of the package's native library: its type and its version.
_OWN_OP = ("Schedule", "autoplace")


@dataclass(frozen=True, eq=False)
class PreparedModel:
    """A model to place.

    Attributes:
        given: The model as the caller gave it.
        model: A clone with unique names, whose shape computations are Constants.
        is_folded: Whether that made Constants of anything.
        graph: The N ops of ``model``.
        shapes: Shape by input name, for dynamic inputs.
        kinds: The kinds of ops of a model so large that devices are asked about a few of each only.
    """

    given: ov.Model
    model: ov.Model
    is_folded: bool
    graph: ComputationGraph
    shapes: Mapping[str, Sequence[int]]
    kinds: OpKinds | None = None
    _groups: dict[tuple[tuple[str, str], ...], CoarseGraph] = field(
        default_factory=dict, init=False, repr=False
    )

    def groups(self, pins: Mapping[str, str]) -> CoarseGraph:
        """The co-location groups of :attr:`graph`, made once.

        Args:
            pins: Device by pattern of friendly names.

        Raises:
            PlacementError: Ops that cannot be separated are pinned to different devices.
        """
        key = tuple(pins.items())
        if key not in self._groups:
            self._groups[key] = coarsen(self.graph, pins=pins)
        return self._groups[key]

    def supported(
        self,
        core: ov.Core,
        devices: Sequence[str],
        properties: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> BoolArray:
        """Which op can run on which device, ``bool[N, D]``.

        The arguments and errors are those of :func:`~ov_autoplace.graph.support.supported_ops`.
        """
        return supported_ops(core, self.model, self.graph.names, devices, properties, self.kinds)


@collection_paused()
def prepare(model: ov.Model, shapes: Mapping[str, Sequence[int]] | None = None) -> PreparedModel:
    """Prepare a model, which is not modified.

    Args:
        model: Any model.
        shapes: Shape by input name, for dynamic inputs; the prepared model stays as dynamic as it is.

    Raises:
        OptionError: A shape does not fit.
        ModelError: A dynamic input needs a shape, or the model holds the parts of another for lanes.
    """
    clone = model.clone()
    records = _named_apart(clone)
    if any(record.op_type == _OWN_OP[0] and _version(record.node) == _OWN_OP[1] for record in records):
        raise ModelError(
            "the model has been cut for lanes and holds their plan; compile it as it is, "
            "or take the model that it was made from"
        )
    is_folded = fold_static_shapes(clone, records) > 0
    if is_folded:
        records = ModelReader().read(clone.get_ordered_ops())
    return PreparedModel(
        given=model,
        model=clone,
        is_folded=is_folded,
        graph=extract(clone, shapes, records),
        shapes=dict(shapes or {}),
        kinds=op_kinds(clone, records) if len(records) > LARGEST_WHOLE else None,
    )


def _named_apart(model: ov.Model) -> list[OpRecord]:
    """The ops of a model once those of the same name were told apart, in place."""
    records = ModelReader().read(model.get_ordered_ops())
    for record, name in zip(records, unique_names(record.name for record in records), strict=True):
        if record.name != name:
            record.node.set_friendly_name(name)
            record.name = name
    return records


def _version(op: ov.Node) -> str:
    return str(op.get_type_info().version_id)


def normalize(model: ov.Model) -> bool:
    """Tell ops of the same name apart and fold shape computations, in place; whether anything was folded."""
    make_names_unique(model)
    return fold_static_shapes(model) > 0
