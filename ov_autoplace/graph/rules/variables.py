"""State variables live on one device."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.graph.rules.view import GraphView

__all__ = ["variables_with_accesses"]


def variables_with_accesses(view: GraphView) -> IntArray:
    """Pairs of the ReadValue and Assign ops of one variable.

    HETERO cannot compile a model whose Assign lives apart from its ReadValue or whose path between
    the two leaves the subgraph. The ops between need no pairs of their own: they lie on a path out of
    the group and back into it, so :func:`~ov_autoplace.graph.coarsen.coarsen` merges them when it
    makes the groups acyclic.
    """
    pairs = [pair for accesses in view.graph.variables for pair in pairwise(accesses)]
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)
