"""A hash of everything in a model that the answer to where its ops should run can depend on.

It holds what a plugin sees: each op's type, version, name, attributes, inputs and outputs, and the bodies of
If, Loop and TensorIterator. Of constants it holds the values that decide something: those of up to 4 KiB,
which are shapes, axes, indices, scales; larger ones are weights, whose values change results but not times.
Of them type and shape count.

Whether the results of a device are right depends on weights, too. They have a hash of their own, of a few
bytes of each, because reading them all would take longer than a compile from the cache. What must never be
taken for another model is told by all bytes of all constants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace.graph.records import bodies_of

__all__ = ["constants_hash", "model_hash", "weights_hash"]

_VALUE_BYTES = 4096
_SAMPLED_BYTES = 256  # in the middle of each weight: one page of the file that it is mapped from, 2 at most
_LOOPS = ("Loop", "TensorIterator")


def model_hash(model: ov.Model) -> str:
    """Hexadecimal digest of ``model``; names of its ops must be unique for it to tell all wirings apart."""
    digest = hashlib.sha256()
    _add(digest, model)
    return digest.hexdigest()


def weights_hash(model: ov.Model) -> str:
    """Hexadecimal digest of some bytes of every weight: training changes them, other edits need not."""
    digest = hashlib.sha256()
    for op in _constants(model):
        if op.get_byte_size() > _VALUE_BYTES and op.get_element_type() != ov.Type.string:
            values = op.data.reshape(-1).view(np.uint8)
            start = (len(values) - _SAMPLED_BYTES) // 2
            digest.update(values[start : start + _SAMPLED_BYTES].tobytes())
    return digest.hexdigest()


def constants_hash(model: ov.Model) -> str:
    """Hexadecimal digest of the values of all constants; of gigabytes it takes seconds."""
    digest = hashlib.sha256()
    for op in _constants(model):
        digest.update(_bytes(op))
    return digest.hexdigest()


def _constants(model: ov.Model) -> Iterator[Any]:
    for op in model.get_ordered_ops():
        if op.get_type_name() == "Constant":
            yield op
        for body in bodies_of(op):
            yield from _constants(body)


def _add(digest: Any, model: ov.Model) -> None:
    for op in model.get_ordered_ops():
        kind = op.get_type_info()
        parts = [op.get_friendly_name(), f"{kind.version_id}.{kind.name}", repr(op.get_attributes())]
        parts += [f"{o.get_element_type()}{o.get_partial_shape()}" for o in op.outputs()]
        parts += [f"{v.get_node().get_friendly_name()}:{v.get_index()}" for v in op.input_values()]
        digest.update("\0".join(parts).encode("utf-8", "surrogatepass") + b"\n")
        if kind.name == "Constant":
            digest.update(_value(op))
        for body in bodies_of(op):
            digest.update(b"body\n")
            _add(digest, body)
        digest.update("".join(_ports(op, kind.name)).encode())


def _value(constant: Any) -> bytes:
    """The bytes of a small constant."""
    return b"" if constant.get_byte_size() > _VALUE_BYTES else _bytes(constant)


def _bytes(constant: Any) -> bytes:
    if constant.get_element_type() == ov.Type.string:
        # As an array, which is of no width, they hold nothing.
        return repr(constant.get_value_strings()).encode("utf-8", "surrogatepass")
    return bytes(constant.data.tobytes())


def _ports(op: Any, kind: str) -> Iterator[str]:
    """How the inputs and outputs of an op with bodies are connected to those of the bodies."""
    found: list[Any] = []
    if kind == "If":
        found = [d for body in (0, 1) for d in _descriptions(op, body)]
    elif kind in _LOOPS:
        yield str(op.get_num_iterations())
        found = _descriptions(op)
    if kind == "Loop":
        yield str(op.get_special_body_ports())
    for description in found:
        fields = {n: getattr(description, n) for n in dir(description) if not n.startswith("_")}
        plain = {name: value for name, value in fields.items() if isinstance(value, int)}
        yield f"{type(description).__name__}{plain}\n"


def _descriptions(op: Any, *body: int) -> list[Any]:
    return [*op.get_input_descriptions(*body), *op.get_output_descriptions(*body)]
