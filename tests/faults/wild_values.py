"""Values of every kind for calls of the C++ core, drawn by hypothesis; see ``binding_calls.py``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from hypothesis import strategies as st

__all__ = ["arrays", "csr", "drawn_links", "drawn_seconds", "numbers", "oddities", "reals"]

numbers = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([-(2**63), -(2**31), -1, 2**26, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**64 - 1, 2**70]),
)
reals = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 1e-300, 1e300, np.inf, -np.inf, np.nan]))
oddities = st.one_of(
    st.none(), st.booleans(), numbers, reals, st.text(max_size=3), st.binary(max_size=3), st.just(object())
)


@st.composite
def arrays(draw: st.DrawFn) -> object:
    """Arrays of any type, shape and layout, many of them nearly right; at times no array at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(oddities)
    size = draw(st.integers(0, 8))
    values = draw(st.lists(st.integers(-1, 7), min_size=size, max_size=size))
    dtype = draw(st.sampled_from(["i4", "i4", "i4", "u1", "f8", "i8", "?", "f4", "U2"]))
    array = np.array(values, "i8").astype(dtype)
    shape = draw(st.sampled_from([None, None, (-1, 2), (2, -1), (1, -1), (-1, 1, 1), ()]))
    if shape is not None:
        with suppress(ValueError):
            array = array.reshape(shape)
    layout = draw(st.integers(0, 7))
    if layout == 0 and array.ndim:
        array = array[::-1]
    elif layout == 1 and array.ndim:
        array = np.repeat(array, 2, axis=0)[::2]
    elif layout == 2:
        array = np.asfortranarray(array)
    elif layout == 3:
        array = array.astype(array.dtype.newbyteorder())
    elif layout == 4:
        array.flags.writeable = False
    return array


@st.composite
def csr(draw: st.DrawFn, nodes: int) -> list[np.ndarray]:
    """Producers, offsets and consumers of tensors over some nodes, mostly in topological order."""
    tensors = draw(st.integers(0, 6))
    producer = [draw(st.integers(0, max(0, nodes - 1))) for _ in range(tensors)]
    readers = [draw(st.lists(st.integers(p + 1, max(p + 1, nodes - 1)), max_size=3)) for p in producer]
    offsets = np.cumsum([0, *map(len, readers)])
    return [np.array(a, "i4") for a in (producer, offsets, [c for r in readers for c in r])]


def drawn_seconds(data: st.DataObject, costs: st.SearchStrategy[float]) -> Callable[..., np.ndarray]:
    """Makes arrays of a shape."""

    def seconds(*shape: int) -> np.ndarray:
        flat = data.draw(st.lists(costs, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        return np.array(flat, "f8").reshape(shape)

    return seconds


def drawn_links(data: st.DataObject) -> np.ndarray:
    """Rows of three small numbers."""
    return np.array(data.draw(st.lists(st.tuples(*[st.integers(-1, 7)] * 3), max_size=3)), "i4").reshape(
        -1, 3
    )
