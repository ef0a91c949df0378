"""A model in one of the forms in which the package works on it, with its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import openvino as ov

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace._base.collector import collection_paused
from ov_autoplace.devices.extension import is_scheduled
from ov_autoplace.errors import ModelError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract, extract_structure
from ov_autoplace.graph.op_kinds import OpKinds, op_kinds
from ov_autoplace.graph.passes import FOLD, FOLDED, NAMES, Pass, run_passes
from ov_autoplace.graph.records import ReadModel
from ov_autoplace.graph.support import LARGEST_WHOLE, supported_ops

__all__ = ["PreparedModel", "prepare"]


@dataclass(frozen=True, eq=False)
class PreparedModel:
    """A model in a form, which nobody changes any more.

    Attributes:
        read: The model as it is in this form.
        shapes: Shape by input name, for dynamic inputs; the model stays as dynamic as it is.
        changed: How many ops each pass changed that led to this form, by its name.
        origin: The model as it was given, of which this is a clone; ``None`` where it is that itself.
    """

    read: ReadModel
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    origin: PreparedModel | None = None
    _groups: dict[tuple[tuple[str, str], ...], CoarseGraph] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(cls, model: ov.Model, shapes: Mapping[str, Sequence[int]] | None = None) -> PreparedModel:
        """A model as it is given."""
        return cls(ReadModel(model), dict(shapes or {}))

    def then(self, passes: Sequence[Pass]) -> PreparedModel:
        """A clone in a further form.

        The errors are those of :func:`~ov_autoplace.graph.passes.run_passes`.
        """
        further = self._then(passes)
        further.read.forget()  # what was read of a million ops takes a gigabyte
        return further

    def _then(self, passes: Sequence[Pass]) -> PreparedModel:
        read = ReadModel(self.model.clone())
        changed = run_passes(read, passes)
        return PreparedModel(read, self.shapes, {**self.changed, **changed}, self.origin or self)

    @property
    def model(self) -> ov.Model:
        """The model in this form."""
        return self.read.model

    @property
    def given(self) -> ov.Model:
        """The model as it was given."""
        return (self.origin or self).model

    @property
    def given_structure(self) -> ComputationGraph:
        """The :attr:`structure` of :attr:`given`, which other names leave as it is."""
        is_same = set(self.changed) <= {NAMES.name}
        return (self if self.origin is None or is_same else self.origin).structure

    @property
    def is_folded(self) -> bool:
        """Whether shape computations became Constants."""
        return FOLD.name in self.changed

    @cached_property
    def graph(self) -> ComputationGraph:
        """The N ops of :attr:`model`, with sizes by :attr:`shapes`.

        Raises:
            OptionError: A shape does not fit.
            ModelError: A dynamic input needs a shape.
        """
        graph = extract(self.model, self.shapes, self.read.records)
        self.read.forget()
        return graph

    @cached_property
    def structure(self) -> ComputationGraph:
        """The same for questions about structure; sizes may mean nothing."""
        return vars(self).get("graph") or extract_structure(self.model)

    @cached_property
    def kinds(self) -> OpKinds | None:
        """The kinds of ops of a model so large that devices are asked about a few of each only."""
        records = self.read.records
        return op_kinds(self.model, records) if len(records) > LARGEST_WHOLE else None

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
    """A model in the form that is decided on, with its graph.

    Args:
        model: Any model; it is not modified.
        shapes: Shape by input name, for dynamic inputs.

    Raises:
        OptionError: A shape does not fit.
        ModelError: A dynamic input needs a shape, or the model holds the parts of another for lanes.
    """
    if is_scheduled(model):
        raise ModelError(
            "the model has been cut for lanes and holds their plan; compile it as it is, "
            "or take the model that it was made from"
        )
    prepared = PreparedModel.of(model, shapes)._then(FOLDED)
    _ = prepared.kinds, prepared.graph  # of one reading, which is then dropped
    return prepared
