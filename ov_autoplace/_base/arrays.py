"""Array types and the few array helpers that every data class of the package shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

__all__ = ["BoolArray", "FloatArray", "IntArray", "csr_from_lists", "frozen_array"]


def frozen_array(values: Any, dtype: DTypeLike) -> NDArray[Any]:
    """A C-contiguous, read-only array of ``dtype``; copies only when it must.

    Args:
        values: Anything ``numpy.asarray`` takes.
        dtype: Element type of the result.
    """
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        if array is values or array.base is not None:
            array = array.copy()
        array.setflags(write=False)
    return array


def csr_from_lists(lists: list[list[int]]) -> tuple[IntArray, IntArray]:
    """Offsets ``[len(lists) + 1]`` and concatenated values of a list of lists."""
    offsets = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum([len(items) for items in lists], out=offsets[1:])
    values = np.fromiter((i for items in lists for i in items), dtype=np.int32, count=int(offsets[-1]))
    return offsets, values
