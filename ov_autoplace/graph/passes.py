"""How a model is brought into a form in which it is worked on: passes, which one function runs.

A pass changes a model in place and says how much it changed. A form is a list of passes; nobody does a step
of one by hand. What ops a pass adds belongs to what is around it: whoever has a device for every op of the
model as it was gives new ones that of a neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import openvino as ov

from ov_autoplace.errors import AutoplaceError, ModelError
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.masks import order_masks
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.graph.records import ReadModel
from ov_autoplace.graph.shapes import make_static
from ov_autoplace.graph.tied_weights import untie_weights

__all__ = ["FOLD", "FOLDED", "MEND", "NAMED", "NAMES", "Pass", "formed", "run_passes", "static_shapes"]


@dataclass(frozen=True)
class Pass:
    """One change of a model.

    Attributes:
        name: What it does.
        change: Does it, in place; how many ops it changed, 0 where the model is as it was.
    """

    name: str
    change: Callable[[ReadModel], int]


NAMES = Pass("telling ops of one name apart", lambda read: make_names_unique(read.model))
FOLD = Pass("folding shapes", lambda read: fold_static_shapes(read.model, read.records))
MEND = Pass(
    "mending what OpenVINO computes wrongly",
    lambda read: untie_weights(read.model) + order_masks(read.model),
)

NAMED = (NAMES,)
"""The ops as HETERO tells them apart, and as everybody names them."""

FOLDED = (NAMES, FOLD)
"""What is decided on, and compiled: HETERO may cut it where it must not before."""


def static_shapes(shapes: Mapping[str, Sequence[int]] | None = None) -> Pass:
    """The pass before all others of what is measured.

    Args:
        shapes: See :func:`~ov_autoplace.graph.shapes.make_static`.
    """
    return Pass("giving inputs static shapes", lambda read: make_static(read.model, shapes))


def formed(model: ov.Model, passes: Sequence[Pass]) -> ov.Model:
    """A clone of a model in a form; see :func:`run_passes`."""
    clone = model.clone()
    run_passes(clone, passes)
    return clone


def run_passes(model: ov.Model | ReadModel, passes: Sequence[Pass]) -> dict[str, int]:
    """Run passes on a model, in place.

    Args:
        model: The model; it is of no use after an error.
        passes: The passes, in order.

    Returns:
        How many ops each pass changed, by its name, of those that changed any.

    Raises:
        ModelError: A pass failed.
        AutoplaceError: A pass refuses the model.
    """
    read = model if isinstance(model, ReadModel) else ReadModel(model)
    changed: dict[str, int] = {}
    for step in passes:
        try:
            count = step.change(read)
        except AutoplaceError:
            raise
        except RuntimeError as cause:
            before = f" after {', '.join(changed)}" if changed else ""
            raise ModelError(f"{step.name} failed{before}: {cause}; is the model valid?") from cause
        if count:
            changed[step.name] = count
            read.forget()
    return changed
