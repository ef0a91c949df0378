"""Static shapes for dynamic models: what the caller gives, and documented guesses for the rest.

Defaults of a dynamic dimension, each moved into the dimension's own bounds:

* dimension 0 of several (the batch): 1;
* the two spatial dimensions of an image, which is a rank-4 input whose dimensions 2 and 3 (NCHW) are
  both dynamic, or whose dimensions 1 and 2 are while the last is at most 4 (NHWC): 224;
* a dynamic channel of such an NCHW image: 3;
* anything else, such as a sequence length: 64;
* where these do not fit the model, the only dimension of a vector is the batch, too (``beam_idx`` of a
  language model): that of the other inputs.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import openvino as ov
from openvino import op as ov_op

from ov_autoplace._base.text import counted
from ov_autoplace.errors import ModelError, OptionError

__all__ = [
    "DEFAULT_BATCH",
    "DEFAULT_DIMENSION",
    "DEFAULT_IMAGE_SIDE",
    "Call",
    "assumed_size",
    "make_static",
    "named_shapes",
    "with_static_shapes",
]

DEFAULT_BATCH = 1
DEFAULT_CHANNELS = 3
DEFAULT_IMAGE_SIDE = 224
DEFAULT_DIMENSION = 64

_log = logging.getLogger("ov_autoplace")


@dataclass(frozen=True)
class Call:
    """One of several shapes in which a model is called.

    Attributes:
        shapes: Shape by input name, of every dynamic input.
        times: How often it comes, beside the others.
    """

    shapes: Mapping[str, Sequence[int]]
    times: float = 1.0

    @property
    def size(self) -> int:
        """Elements of all its inputs."""
        return sum(math.prod(shape) for shape in self.shapes.values())


def named_shapes(model: ov.Model, call: Call) -> dict[str, tuple[int, ...]]:
    """The shapes of a call by friendly names of the Parameters.

    Raises:
        OptionError: A name is no input, a shape does not fit, or a dynamic input has none.
    """
    parameters = model.get_parameters()
    given = _by_input(model, call.shapes)
    for i, parameter in enumerate(parameters):
        if i not in given and parameter.get_output_partial_shape(0).is_dynamic:
            name = parameter.get_friendly_name()
            raise OptionError(f"one of several sets of shapes gives none for the input {name!r}; give it one")
    return {parameters[i].get_friendly_name(): shape for i, shape in given.items()}


def with_static_shapes(model: ov.Model, shapes: Mapping[str, Sequence[int]] | None = None) -> ov.Model:
    """A clone of a model, made static by :func:`make_static`, whose arguments and errors it has."""
    clone = model.clone()
    make_static(clone, shapes)
    return clone


def make_static(model: ov.Model, shapes: Mapping[str, Sequence[int]] | None = None) -> int:
    """Give the inputs of ``model`` static shapes, in place, and say which ones were guessed.

    Only the inputs' shapes change and are propagated; no transformation runs, so the ops stay in the same
    order under the same names.

    Args:
        model: Any model. It is of no use after an error.
        shapes: Shape by input name (any tensor name or the friendly name of the Parameter). Inputs that
            are not mentioned keep their static dimensions and take the defaults above for the others.

    Returns:
        How many inputs have another shape.

    Raises:
        OptionError: A name is no input, two names mean one input, or a shape does not fit.
        ModelError: An input has dynamic rank and no shape was given, or the guessed shapes do not fit.
    """
    inputs = model.get_parameters()
    partial = [parameter.get_output_partial_shape(0) for parameter in inputs]
    given = _by_input(model, shapes or {})
    first = _guesses(model, given, DEFAULT_DIMENSION)
    second = _guesses(model, given, _batch([*given.values(), *first.values()]))
    # A model that refused a shape may take it the next time, so only a clone is asked twice.
    cause = _refusal(model.clone(), {**given, **first}) if second != first else None
    guessed = first if cause is None else second
    refused = _refusal(model, {**given, **guessed})
    if refused is not None:
        raise _misfit(model, shapes or {}, first, cause or refused) from refused
    for i, shape in guessed.items():
        _log.warning(
            "input %r of shape %s has no static shape; assuming %s (AUTOPLACE_SHAPES or --shape says which)",
            inputs[i].get_friendly_name(),
            partial[i],
            list(shape),
        )
    return sum(p.get_output_partial_shape(0) != old for p, old in zip(inputs, partial, strict=True))


def assumed_size(position: int, dimension: ov.Dimension, rank: int) -> int:
    """Size that an unknown dimension counts with: 1 in front of others, else 64, moved into its bounds.

    Args:
        position: Index of the dimension.
        dimension: The dimension, static or not.
        rank: Number of dimensions; the only dimension of a vector is a length and not a batch.
    """
    if dimension.is_static:
        return int(dimension.get_length())
    return _clamped(DEFAULT_BATCH if position == 0 and rank != 1 else DEFAULT_DIMENSION, dimension)


def _by_input(model: ov.Model, shapes: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """The given shapes by position of the Parameter, checked against the model's own shapes."""
    parameters = model.get_parameters()
    index: dict[str, int] = {}
    for i, parameter in enumerate(parameters):
        for name in (parameter.get_friendly_name(), *parameter.output(0).get_names()):
            index.setdefault(name, i)
    result: dict[int, tuple[int, ...]] = {}
    for name, values in shapes.items():
        if name not in index:
            known = ", ".join(repr(p.get_friendly_name()) for p in parameters) or "none"
            raise OptionError(f"a shape is given for {name!r}, which is no input; the inputs are {known}")
        shape = tuple(int(value) for value in values)
        if any(value < 0 for value in shape):
            raise OptionError(f"the shape given for input {name!r}, {list(shape)}, has a negative dimension")
        parameter = parameters[index[name]]
        partial = parameter.get_output_partial_shape(0)
        if partial.rank.is_static and len(shape) != partial.rank.get_length():
            raise OptionError(
                f"the shape given for input {name!r}, {list(shape)}, has {counted(len(shape), 'dimension')}; "
                f"the input is {partial}"
            )
        if partial.is_static and shape != tuple(partial.to_shape()):
            raise OptionError(
                f"the shape given for input {name!r}, {list(shape)}, is not the one that it has, "
                f"{list(partial.to_shape())}; give the model another shape first, with openvino.Model.reshape"
            )
        if not partial.compatible(ov.PartialShape(list(shape))):
            raise OptionError(
                f"the shape given for input {name!r}, {list(shape)}, is outside of what it allows, {partial}"
            )
        if result.get(index[name], shape) != shape:
            raise OptionError(f"input {name!r} is given two different shapes; name each input once")
        result[index[name]] = shape
    return result


def _guesses(
    model: ov.Model, given: Mapping[int, tuple[int, ...]], vector: int
) -> dict[int, tuple[int, ...]]:
    """The documented default shapes of dynamic inputs that are not given, by position of the Parameter."""
    return {
        i: _guess(parameter, vector)
        for i, parameter in enumerate(model.get_parameters())
        if i not in given and parameter.get_output_partial_shape(0).is_dynamic
    }


def _batch(shapes: Iterable[tuple[int, ...]]) -> int:
    """The first dimension of most of these shapes that have several."""
    firsts = Counter(shape[0] for shape in shapes if len(shape) > 1)
    return firsts.most_common(1)[0][0] if firsts else DEFAULT_BATCH


def _guess(parameter: ov_op.Parameter, vector: int) -> tuple[int, ...]:
    """That of one input; ``vector`` is the size of one with a single dimension."""
    name = parameter.get_friendly_name()
    partial = parameter.get_output_partial_shape(0)
    if partial.rank.is_dynamic:
        raise ModelError(f"input {name!r} has no known number of dimensions; give it a shape")
    dimensions = [partial.get_dimension(i) for i in range(partial.rank.get_length())]
    if len(dimensions) == 1:
        return (_clamped(vector, dimensions[0]),)
    shape = [assumed_size(i, dimension, len(dimensions)) for i, dimension in enumerate(dimensions)]
    if len(dimensions) == 4:
        dynamic = [dimension.is_dynamic for dimension in dimensions]
        if dynamic[2] and dynamic[3]:
            shape[2:4] = [_clamped(DEFAULT_IMAGE_SIDE, dimension) for dimension in dimensions[2:]]
            if dynamic[1]:
                shape[1] = _clamped(DEFAULT_CHANNELS, dimensions[1])
        elif dynamic[1] and dynamic[2] and shape[3] <= 4:
            shape[1:3] = [_clamped(DEFAULT_IMAGE_SIDE, dimension) for dimension in dimensions[1:3]]
    return tuple(shape)


def _clamped(size: int, dimension: ov.Dimension) -> int:
    """``size`` moved into the bounds of a dynamic dimension."""
    upper = dimension.get_max_length()
    return int(max(size if upper < 0 else min(size, upper), dimension.get_min_length()))


def _refusal(model: ov.Model, shapes: Mapping[int, tuple[int, ...]]) -> RuntimeError | None:
    """Give inputs these shapes, by position of the Parameter; why they do not fit together, if so."""
    is_changed = False
    for i, parameter in enumerate(model.get_parameters()):
        partial = parameter.get_output_partial_shape(0)
        if i in shapes and (partial.is_dynamic or tuple(partial.to_shape()) != shapes[i]):
            parameter.set_partial_shape(ov.PartialShape(list(shapes[i])))
            is_changed = True
    try:
        if is_changed:
            model.validate_nodes_and_infer_types()
    except RuntimeError as cause:
        return cause
    return None


def _misfit(
    model: ov.Model,
    shapes: Mapping[str, Sequence[int]],
    guessed: Mapping[int, tuple[int, ...]],
    cause: RuntimeError,
) -> ModelError | OptionError:
    """The sentence that says which input shapes do not fit together."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    reason = lines[-1].rstrip(":") if lines else "shape inference failed"
    if guessed:
        inputs = model.get_parameters()
        assumed = ", ".join(f"{inputs[i].get_friendly_name()!r}: {list(s)}" for i, s in guessed.items())
        return ModelError(
            f"the shapes assumed for dynamic inputs ({assumed}) do not fit the model; "
            f"give these inputs a shape ({reason})"
        )
    chosen = ", ".join(f"{name!r}: {list(shape)}" for name, shape in shapes.items())
    return OptionError(f"the given shapes ({chosen}) do not fit the model ({reason})")
