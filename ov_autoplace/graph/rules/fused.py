"""Ops that a device runs as one kernel, as its compiled model reports them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.graph.rules.view import GraphView

__all__ = ["fused_together"]


def fused_together(view: GraphView, fused: Sequence[Sequence[str]], pin_of: IntArray) -> list[IntArray]:
    """Pairs for each group of friendly names that a device fused (``originalLayersNames``).

    Names that the graph does not know are skipped (devices invent some), and so is a group of which the
    user pinned any op differently from the others.

    Args:
        view: The graph of N ops.
        fused: Groups of friendly names.
        pin_of: Pin of each op, ``int32[N]``, -1 for none.

    Returns:
        One ``int32[K, 2]`` per group that has at least two known ops.
    """
    index = view.graph.index
    result: list[IntArray] = []
    for names in fused:
        ops = [index[name] for name in names if name in index]
        if len(ops) > 1 and len(set(pin_of[ops].tolist())) == 1:
            result.append(np.array(list(pairwise(ops)), dtype=np.int32))
    return result
