"""Ops whose value does not depend on the inputs of a model: constants and everything computed from them."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import BoolArray, IntArray

__all__ = ["foldable_ops"]

# They have no inputs, or only constant ones, and still answer differently from run to run or end a graph.
_NEVER_FOLDED = frozenset(
    {
        "Parameter",
        "ReadValue",
        "Assign",
        "RandomUniform",
        "Multinomial",
        "Result",
        "If",
        "Loop",
        "TensorIterator",
    }
)


def foldable_ops(op_types: tuple[str, ...], input_offsets: IntArray, input_sources: IntArray) -> BoolArray:
    """Which ops OpenVINO's constant folding would replace by Constants (these included).

    Static ShapeOf chains are not meant: they read an op that runs.

    Args:
        op_types: Type name of each op in topological order, length N.
        input_offsets: CSR offsets of each op's input ports, ``int32[N + 1]``.
        input_sources: Producing op of each input port, ``int32[E]``.

    Returns:
        ``bool[N]``.
    """
    offsets = input_offsets.tolist()
    sources = input_sources.tolist()
    result = [False] * len(op_types)
    for i, op_type in enumerate(op_types):
        if op_type == "Constant":
            result[i] = True
        elif op_type not in _NEVER_FOLDED:
            begin, end = offsets[i], offsets[i + 1]
            result[i] = end > begin and all(result[source] for source in sources[begin:end])
    return np.array(result, dtype=np.bool_)
