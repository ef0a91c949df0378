"""Networks of random blocks, written out as converters write them: to learn from what ops cost.

A network reads an image ``[1, C, H, W]``, tokens ``[1, T, C]``, rows ``[N, C]``, or a signal or volume
``[1, C, sides...]``, and goes through blocks that are drawn with their sizes, widths and variants. No network
that has a name comes out; every pattern that converters write for common layers does, in surroundings that no
published network has.
"""

from __future__ import annotations

import numpy as np
import openvino as ov

from networks.builder import Node
from networks.random_blocks import any_rank, grids, images, rows, tokens
from networks.random_blocks.drawn import Drawn
from networks.variation import chance, pick

__all__ = ["random_blocks"]

_FEW_ROWS_SHARE = 0.25  # of networks that read tokens or rows


def random_blocks(seed: int, weight_type: type = np.float32) -> ov.Model:
    """One network; the same seed gives the same one."""
    d = Drawn(seed, weight_type)
    kind = pick(d.random, ("image", "image", "tokens", "tokens", "rows", "grid"))
    if kind in ("tokens", "rows") and chance(np.random.default_rng((seed, 79)), _FEW_ROWS_SHARE):
        d.with_few_rows()
    depth = int(np.exp(d.random.uniform(np.log(2), np.log(14 if d.scale == 1 else 28))))
    blocks = {"image": images, "tokens": tokens, "rows": rows, "grid": grids}[kind]
    y = blocks.begin(d)
    ends: list[Node] = []
    # A few kinds make up a network, which repeats them.
    able = (*blocks.BLOCKS, *any_rank.BLOCKS)
    kinds = [pick(d.random, able) for _ in range(int(d.random.integers(1, 5)))]
    for _ in range(depth):
        y = d.scoped(pick(d.random, kinds), y)
        if chance(d.random, 0.04):
            ends.append(y)
    y = d.scoped(blocks.head, y)
    outputs = {f"output{i}": end for i, end in enumerate([y, *ends])}
    return d.net.model(f"random_{kind}", outputs)
