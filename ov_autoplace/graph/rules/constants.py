"""Constants, and chains that can be folded into one, stay with what reads them."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.graph.rules.view import GraphView, pairs_of

__all__ = ["constants_with_consumer"]


def constants_with_consumer(view: GraphView) -> IntArray:
    """Pairs of every foldable op and its first consumer.

    Cutting a decompression chain (Constant -> Convert -> Multiply, or Transpose of a Constant) off its
    MatMul is legal and ruinous: the weight becomes a tensor that is computed and transferred at every
    inference. Only the first consumer is joined, though. Merging all of them would tie together
    whatever shares a weight, and tied embeddings would turn a language model into one group. What the
    other consumers read is a constant tensor of the coarse graph when it comes straight from a
    Constant (HETERO copies those), and an ordinary tensor of the weight's full size otherwise, which
    is what a cut there costs.
    """
    ops = np.flatnonzero(view.foldable & (view.first_consumer < len(view.graph))).astype(np.int32)
    return pairs_of(ops, view.first_consumer[ops])
