"""Square weights that are read as they are and transposed: OpenVINO 2026.4.1's CPU multiplies them wrongly.

It packs a weight once for all that read the same memory, and does not tell the two ways apart: ``x W W'`` is
off by as much as its own magnitude, also through a Convert or a Transpose, and where two equal Constants
share their bytes in a saved model. A transposed copy is other memory. Weights of less than 16 bits with
scales are multiplied wrongly, too, and stay as they are: what candidates compute is compared, and tells.
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

__all__ = ["untie_weights"]

_READABLE = ("f16", "f32", "f64")


@dataclass(frozen=True, eq=False)
class _Reader:
    """A MatMul that reads a square weight, transposed or not."""

    matmul: ov.Node
    weight: NDArray[Any]
    is_transposed: bool


def untie_weights(model: ov.Model) -> dict[str, str]:
    """Give those who read a square weight transposed a copy, in place, where others read it as it is.

    A MatMul that is made anew keeps its name, the names of its output and the device that is written at it;
    its weight gets that device, too, and a name that no op has.

    Returns:
        The name of each MatMul that was made anew, by that of its weight.
    """
    readers = [reader for op in model.get_ops() if (reader := _reader(op)) is not None]
    tied = [reader for alike in _read_both_ways(readers, _kind) for reader in _of_equal_weights(alike)]
    taken = {op.get_friendly_name() for op in model.get_ops()} if tied else set()
    return dict(_made_anew(reader, taken) for reader in tied)


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
    while (kind := node.get_type_name()) in ("Convert", "Transpose"):
        is_transposed ^= kind == "Transpose"
        node = node.input_value(0).get_node()
    if kind != "Constant" or node.get_output_element_type(0).to_string() not in _READABLE:
        return None
    shape = list(node.get_output_shape(0))
    return _Reader(op, node.data, is_transposed) if len(shape) == 2 and shape[0] == shape[1] else None


def _made_anew(reader: _Reader, taken: set[str]) -> tuple[str, str]:
    """Put a MatMul with a transposed copy of its weight in the place of one that transposes it.

    Args:
        reader: The latter.
        taken: Names of ops, to which new ones are added.

    Returns:
        The names of the weight and of the MatMul.
    """
    old = reader.matmul
    kind = old.get_input_element_type(1).to_dtype()
    weight = ops.constant(np.ascontiguousarray(reader.weight.T, dtype=kind))
    name = f"{old.get_friendly_name()}/weight"
    while name in taken:
        name += "_"
    taken.add(name)
    weight.set_friendly_name(name)
    new = ops.matmul(old.input_value(0), weight, bool(old.get_attributes()["transpose_a"]), False)
    new.set_friendly_name(old.get_friendly_name())
    new.output(0).set_names(old.output(0).get_names())
    for key, noted in old.get_rt_info().items():
        if isinstance(noted.value, str):
            new.get_rt_info()[key] = weight.get_rt_info()[key] = noted.value
    for target in old.output(0).get_target_inputs():
        target.replace_source_output(new.output(0))
    return name, old.get_friendly_name()
