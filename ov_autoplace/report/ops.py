"""What the page tells of every op, as Netron does: attributes, shapes, types, and what its weights hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace.graph.names import unique_names
from ov_autoplace.graph.records import bodies_of

__all__ = ["op_columns"]

_SHOWN_VALUES = 16
"""Constants of up to so many elements are shown whole; the values of others stay in the model's file."""

_COUNTED = 2**22
"""Statistics of larger constants are those of a sample: reading gigabytes of weights would take too long."""

_PARTS = 64  # of a sample, evenly spaced
_LONGEST = 400  # characters of an attribute's value
_NUMBERS = frozenset(
    {"boolean", "f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"}
)
"""Element types whose values are read; those of less than a byte are packed."""


def op_columns(model: ov.Model) -> dict[str, Any]:
    """The N ops of a model as JSON's own types, in columns; what repeats is there once.

    Args:
        model: The model as its user knows it.

    Returns:
        * ``names``: Of the ops, in topological order, made unique as a decision does.
        * ``kinds``, ``kind``: Distinct (op set, type) pairs, and the index of each op's.
        * ``attributes``, ``attribute``: Distinct lists of (name, value), values as texts, and the index of
          each op's.
        * ``inputs``: Of each op, producer and its output port, by turns.
        * ``tensors``, ``outputs``: Distinct (element type, shape) texts, and of each op the indices of those
          of its outputs.
        * ``tensor_names``: By op: names of its output tensors other than its own name.
        * ``constants``: By op that is a Constant: its ``bytes``, and its ``values`` or statistics.
        * ``bodies``: By op that has bodies: how many ops each of them holds.
    """
    ops = model.get_ordered_ops()
    names = unique_names(op.get_friendly_name() for op in ops)
    position = {op.get_instance_id(): i for i, op in enumerate(ops)}
    kinds, attributes, tensors = _Distinct(), _Distinct(), _Distinct()
    tensor_names: dict[str, list[str]] = {}
    constants: dict[str, dict[str, Any]] = {}
    bodies: dict[str, list[int]] = {}
    kind, attribute, inputs, outputs = [], [], [], []
    for i, op in enumerate(ops):
        info = op.get_type_info()
        is_constant = info.name == "Constant"
        kind.append(kinds((info.version_id or "", info.name)))
        attribute.append(attributes(() if is_constant else _attributes(op.get_attributes())))
        sources = [(value.get_node(), value.get_index()) for value in op.input_values()]
        inputs.append([n for node, port in sources for n in (position[node.get_instance_id()], port)])
        outputs.append([tensors(_tensor(op, port)) for port in range(op.get_output_size())])
        known = {name for output in op.outputs() for name in output.get_names()} - {names[i]}
        if known and info.name != "Result":  # which repeats the names of what it reads
            tensor_names[str(i)] = sorted(known)
        if is_constant:
            constants[str(i)] = _constant(op)
        elif found := bodies_of(op):
            bodies[str(i)] = [len(body.get_ops()) for body in found]
    return {
        "names": names,
        "kinds": kinds.values,
        "kind": kind,
        "attributes": attributes.values,
        "attribute": attribute,
        "inputs": inputs,
        "tensors": tensors.values,
        "outputs": outputs,
        "tensor_names": tensor_names,
        "constants": constants,
        "bodies": bodies,
    }


class _Distinct:
    """Numbers equal values alike."""

    def __init__(self) -> None:
        self._number: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        """The number of a value."""
        return self._number.setdefault(value, len(self._number))

    @property
    def values(self) -> list[Any]:
        """The values by number."""
        return list(self._number)


def _tensor(op: ov.Node, port: int) -> tuple[str, str]:
    return op.get_output_element_type(port).to_string(), op.get_output_partial_shape(port).to_string()


def _attributes(attributes: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), _short(_text(value))) for name, value in attributes.items())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(map(_text, value))
    return str(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(text):,} characters)"


def _constant(op: Any) -> dict[str, Any]:
    """Size of a Constant, and its values where they are few, statistics where they are many."""
    found: dict[str, Any] = {"bytes": int(op.get_byte_size())}
    kind = op.get_element_type().to_string()
    if kind not in _NUMBERS:
        return found
    values = op.data.reshape(-1)
    if kind == "bf16":  # NumPy has no such type, and gets its bits under another name
        values = (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if values.size <= _SHOWN_VALUES:
        return found | {"values": _text(values.tolist())}
    return found | _statistics(values)


def _statistics(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Least, greatest, mean, deviation and share of zeros of the numbers among many values."""
    found: dict[str, Any] = {}
    if values.size > _COUNTED:
        starts = np.linspace(0, values.size - _COUNTED // _PARTS, _PARTS).astype(np.int64).tolist()
        values = np.concatenate([values[start : start + _COUNTED // _PARTS] for start in starts])
        found["sample"] = int(values.size)
    numbers = values.astype(np.float32 if values.dtype.kind == "f" and values.itemsize <= 4 else np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        found["not_finite"] = int(numbers.size - finite.sum())
        numbers = numbers[finite]
    if numbers.size:
        found["min"], found["max"] = f"{numbers.min():.6g}", f"{numbers.max():.6g}"
        found["mean"] = f"{numbers.mean(dtype=np.float64):.4g}"
        found["std"] = f"{numbers.std(dtype=np.float64):.4g}"
        found["zeros"] = f"{100 * float(np.mean(numbers == 0)):.3g} %"
    return found
