"""Ops whose value does not depend on the inputs of a model: constants and everything computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ov_autoplace._base.arrays import BoolArray

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


def foldable_ops(op_types: Iterable[str], sources: Iterable[Sequence[int]]) -> BoolArray:
    """Which ops OpenVINO's constant folding would replace by Constants (these included).

    Static ShapeOf chains are not meant: they read an op that runs.

    Args:
        op_types: Type name of each op in topological order, length N.
        sources: Producing op of each input port of each op, length N.

    Returns:
        ``bool[N]``.
    """
    result: list[bool] = []
    for op_type, read in zip(op_types, sources, strict=True):
        is_computed = op_type not in _NEVER_FOLDED and len(read) > 0
        result.append(op_type == "Constant" or (is_computed and all(map(result.__getitem__, read))))
    return np.array(result, dtype=np.bool_)
