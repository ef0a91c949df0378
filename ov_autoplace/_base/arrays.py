"""Array types and the few array helpers that every data class of the package shares.

Rows of different lengths lie in one array (compressed sparse rows): row r is
``values[offsets[r] : offsets[r + 1]]``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

__all__ = [
    "BoolArray",
    "FloatArray",
    "IntArray",
    "csr_from_lists",
    "frozen_array",
    "grouped",
    "offsets_of",
    "rows_of",
]


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


def offsets_of(lengths: ArrayLike) -> IntArray:
    """Offsets of R rows of these lengths, ``int32[R + 1]``."""
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)


def rows_of(offsets: IntArray) -> NDArray[np.int64]:
    """Row of each entry, ``int64[E]``: keys of pairs are made of it, which 32 bits would not hold."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def grouped(values: NDArray[np.integer], rows: IntArray, num_rows: int) -> list[list[int]]:
    """The values of each row; those of one row keep their order."""
    ordered = values[np.argsort(rows, kind="stable")].tolist()
    offsets = offsets_of(np.bincount(rows, minlength=num_rows)).tolist()
    return [ordered[begin:end] for begin, end in pairwise(offsets)]


def csr_from_lists(lists: list[list[int]]) -> tuple[IntArray, IntArray]:
    """Offsets ``[len(lists) + 1]`` and concatenated values of a list of lists."""
    offsets = offsets_of([len(items) for items in lists])
    values = np.fromiter((i for items in lists for i in items), dtype=np.int32, count=int(offsets[-1]))
    return offsets, values
