"""Square weights that are read as they are and transposed: OpenVINO's CPU multiplies them wrongly.

It packs a weight once for all that read the same memory, and does not tell the two ways apart: ``x W W'`` is
off by as much as its own magnitude, also through a Convert, scales or a Transpose, and where two equal
Constants share their bytes in a saved model. A transposed copy is other memory. Weights of less than eight
bits, and those that are scaled in groups, stay as they are: what candidates compute is compared, and tells.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops

from ov_autoplace.graph.names import unique_names

__all__ = ["has_tied_weights", "untie_weights"]

_READABLE = ("f16", "f32", "f64", "i8", "u8")
# What is between a weight and its reader, which reads the weight as the first input.
_SCALING = {"Multiply": ops.multiply, "Subtract": ops.subtract, "Divide": ops.divide}


@dataclass(frozen=True, eq=False)
class _Reader:
    """A MatMul that reads a square weight, transposed or not."""

    matmul: ov.Node
    weight: NDArray[Any]
    is_transposed: bool


def untie_weights(model: ov.Model) -> int:
    """Give those who read a square weight transposed a copy, in place, where others read it as it is.

    A MatMul that is made anew keeps its name, the names of its output and the texts that are noted at it; the
    ops that make its weight get names that no op has.

    Returns:
        How many MatMuls were made anew.
    """
    tied = _tied(model)
    taken = [op.get_friendly_name() for op in model.get_ops()] if tied else []
    return sum(_make_anew(reader, taken) for reader in tied)


def has_tied_weights(model: ov.Model) -> bool:
    """Whether a square weight is read both ways."""
    return bool(_tied(model))


def _tied(model: ov.Model) -> list[_Reader]:
    """Those who transpose a weight that others read as it is."""
    readers = [reader for op in model.get_ops() if (reader := _reader(op)) is not None]
    return [reader for alike in _read_both_ways(readers, _kind) for reader in _of_equal_weights(alike)]


def _of_equal_weights(readers: Sequence[_Reader]) -> list[_Reader]:
    """Those of some readers that transpose a weight which others among them read as it is."""
    return [r for alike in _read_both_ways(readers, _content) for r in alike if r.is_transposed]


def _read_both_ways(
    readers: Sequence[_Reader], key_of: Callable[[_Reader], Hashable]
) -> Iterator[list[_Reader]]:
    """Readers by a key, where some of them transpose and others do not."""
    found: defaultdict[Hashable, list[_Reader]] = defaultdict(list)
    for reader in readers:
        found[key_of(reader)].append(reader)
    return (alike for alike in found.values() if len({reader.is_transposed for reader in alike}) > 1)


def _kind(reader: _Reader) -> Hashable:
    return reader.weight.shape, str(reader.weight.dtype)


def _content(reader: _Reader) -> Hashable:
    return hashlib.blake2b(reader.weight.tobytes()).digest()


def _reader(op: ov.Node) -> _Reader | None:
    """What an op is that multiplies with a square weight, which is its second input."""
    if op.get_type_name() != "MatMul":
        return None
    is_transposed = bool(op.get_attributes()["transpose_b"])
    node = op.input_value(1).get_node()
    while (kind := node.get_type_name()) in ("Convert", "Transpose", *_SCALING):
        is_transposed ^= kind == "Transpose"
        node = node.input_value(0).get_node()
    shape = list(node.get_output_shape(0)) if kind == "Constant" else []
    if len(shape) != 2 or shape[0] != shape[1]:
        return None
    if node.get_output_element_type(0).to_string() not in _READABLE:
        return None
    return _Reader(op, node.data, is_transposed)


def _copied(output: ov.Output, transposed: bool) -> list[ov.Node] | None:
    """A chain of ops on constants, made anew without a Transpose.

    Args:
        output: Where the chain ends.
        transposed: Make the transpose of that.

    Returns:
        The new ops, the last one at the end; ``None`` where something is in the chain that is not known.
    """
    node = output.get_node()
    kind, element = node.get_type_name(), output.get_element_type().to_string()
    if kind == "Constant":
        if element not in _READABLE or len(output.get_shape()) > 2:
            return None
        data = node.data[None] if len(output.get_shape()) == 1 else node.data  # a vector is a row
        return [ops.constant(np.ascontiguousarray(data.T if transposed else data))]
    if kind == "Transpose":
        return _copied(node.input_value(0), not transposed)
    if kind not in ("Convert", *_SCALING):
        return None
    inputs = [_copied(value, transposed) for value in node.input_values()]
    if any(made is None for made in inputs):
        return None
    chains = [made for made in inputs if made is not None]
    ends = [made[-1] for made in chains]
    last = ops.convert(ends[0], element) if kind == "Convert" else _SCALING[kind](*ends)
    return [*(op for made in chains for op in made), last]


def _make_anew(reader: _Reader, taken: list[str]) -> bool:
    """Put a MatMul with a transposed copy of its weight in the place of one that transposes it, if it can.

    Args:
        reader: The latter.
        taken: Names of ops, to which new ones are added.
    """
    old, name = reader.matmul, reader.matmul.get_friendly_name()
    attributes = old.get_attributes()
    made = _copied(old.input_value(1), bool(attributes["transpose_b"])) or []
    if not made:
        return False
    names = unique_names([*taken, *[f"{name}/weight"] * len(made)])[len(taken) :]
    taken += names
    for op, own in zip(made, names, strict=True):
        op.set_friendly_name(own)
    new = ops.matmul(old.input_value(0), made[-1], bool(attributes["transpose_a"]), False)
    new.set_friendly_name(name)
    new.output(0).set_names(old.output(0).get_names())
    for key, noted in old.get_rt_info().items():
        if isinstance(noted.value, str):
            new.get_rt_info()[key] = noted.value
    for target in old.output(0).get_target_inputs():
        target.replace_source_output(new.output(0))
    return True
