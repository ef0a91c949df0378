"""The form in which the package works on a model: unique names, folded shape computations, and its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import openvino as ov

from ov_autoplace.errors import ModelError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique

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
    """

    given: ov.Model
    model: ov.Model
    is_folded: bool
    graph: ComputationGraph
    shapes: Mapping[str, Sequence[int]]
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


def prepare(model: ov.Model, shapes: Mapping[str, Sequence[int]] | None = None) -> PreparedModel:
    """Prepare a model, which is not modified.

    Args:
        model: Any model.
        shapes: Shape by input name, for dynamic inputs; the prepared model stays as dynamic as it is.

    Raises:
        OptionError: A shape does not fit.
        ModelError: A dynamic input needs a shape, or the model holds the parts of another for lanes.
    """
    if any(op.get_type_name() == _OWN_OP[0] and _version(op) == _OWN_OP[1] for op in model.get_ops()):
        raise ModelError(
            "the model has been cut for lanes and holds their plan; compile it as it is, "
            "or take the model that it was made from"
        )
    clone = model.clone()
    is_folded = normalize(clone)
    return PreparedModel(model, clone, is_folded, extract(clone, shapes), dict(shapes or {}))


def _version(op: ov.Node) -> str:
    return str(op.get_type_info().version_id)


def normalize(model: ov.Model) -> bool:
    """Tell ops of the same name apart and fold shape computations, in place; whether anything was folded."""
    make_names_unique(model)
    return fold_static_shapes(model) > 0
