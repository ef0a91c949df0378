"""Graphs of shapes that no generator of the training set draws, with the costs of neural networks.

To validate on: blocks of a DenseNet (G. Huang et al., 2017), BiFPN (M. Tan et al., EfficientDet, 2020), a
stencil that is swept over a line, and Gaussian elimination (H. Topcuoglu et al., HEFT, 2002). To test on:
butterflies of the fast Fourier transform (the same), tiled Cholesky factorisation (E. Agullo et al., 2016),
UNet++ (Z. Zhou et al., 2018), HRNet (K. Sun et al., 2019) and randomly wired small worlds (S. Xie et al.,
2019).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ov_autoplace.training.random_graphs import workload_of_edges
from ov_autoplace.training.workload import Workload

Edges = list[tuple[int, int]]
Shape = Callable[[int, np.random.Generator], Edges]


def shape_workload(family: str, groups: int, seed: int) -> Workload:
    """A graph of about so many groups; shapes with steps take the nearest size that they have below."""
    shapes = VALIDATION_SHAPES | TEST_SHAPES
    random = np.random.default_rng((seed, list(shapes).index(family), groups))
    return workload_of_edges(f"{family}-{groups}-{seed}", family, shapes[family](groups, random), random)


class _Nodes:
    """Numbers of nodes by what they are called."""

    def __init__(self) -> None:
        self._number: dict[tuple[object, ...], int] = {}

    def __call__(self, *name: object) -> int:
        return self._number.setdefault(name, len(self._number))


def _dense(groups: int, random: np.random.Generator) -> Edges:
    """Blocks in which every op reads all those before it."""
    size = int(random.integers(5, 9))
    edges: Edges = []
    for first in range(0, max(groups - 2, 1), size):
        own = range(first, min(first + size, groups))
        edges += [(i, j) for j in own for i in own if i < j]
        edges += [(first - 1, first)] if first else []
    return edges


def _bifpn(groups: int, random: np.random.Generator) -> Edges:
    """Layers that pass features down and up again between levels of a pyramid."""
    levels, node = int(random.integers(4, 7)), _Nodes()
    edges: Edges = [(node("in", i), node("in", i + 1)) for i in range(levels - 1)]
    inputs = [node("in", i) for i in range(levels)]
    for layer in range(max(1, (groups - levels) // (2 * levels - 2))):
        down = [*inputs]
        for i in range(levels - 2, 0, -1):
            down[i] = node("down", layer, i)
            edges += [(inputs[i], down[i]), (down[i + 1], down[i])]
        outputs = [node("up", layer, i) for i in range(levels)]
        for i in range(levels):
            edges += [(inputs[i], outputs[i])] + ([(down[i], outputs[i])] if 0 < i < levels - 1 else [])
            edges += [(outputs[i - 1], outputs[i])] if i else [(down[1], outputs[0])]
        inputs = outputs
    return edges


def _stencil(groups: int, random: np.random.Generator) -> Edges:
    """Sweeps over a line of cells, each reading itself and its neighbours of the sweep before."""
    width = int(random.integers(3, max(4, min(12, groups // 3)) + 1))
    steps = max(2, groups // width)
    return [
        ((t - 1) * width + j, t * width + i)
        for t in range(1, steps)
        for i in range(width)
        for j in range(max(0, i - 1), min(width, i + 2))
    ]


def _elimination(groups: int, random: np.random.Generator) -> Edges:
    """A pivot per column, then an update of every column behind it."""
    size = max(3, int(np.sqrt(2 * groups)))
    node = _Nodes()
    edges: Edges = []
    for k in range(size - 1):
        for j in range(k + 1, size):
            edges.append((node("pivot", k), node("update", k, j)))
            following = node("pivot", k + 1) if j == k + 1 else node("update", k + 1, j)
            if k + 1 < size - 1:
                edges.append((node("update", k, j), following))
    return edges


def _butterfly(groups: int, random: np.random.Generator) -> Edges:
    """Stages in each of which pairs of rows, ever further apart, are mixed."""
    rows = 4
    while 2 * rows * (int(np.log2(2 * rows)) + 1) <= groups:
        rows *= 2
    stages = int(np.log2(rows))
    edges: Edges = []
    for block in range(max(1, groups // (rows * (stages + 1)))):
        first = block * rows * (stages + 1)
        if block:
            edges += [(first - rows + i, first + (i * 3 + 1) % rows) for i in range(rows)]
        for s in range(stages):
            for i in range(rows):
                here = first + s * rows + i
                edges += [(here, here + rows), (here, first + (s + 1) * rows + (i ^ (1 << s)))]
    return edges


def _cholesky(groups: int, random: np.random.Generator) -> Edges:
    """Factorise a tile, solve its column with it, update every tile behind with two of these."""
    tiles = 2
    while (tiles + 1) * (tiles + 2) * (tiles + 3) // 6 <= groups:
        tiles += 1
    node = _Nodes()
    edges: Edges = []
    for k in range(tiles):
        for i in range(k + 1, tiles):
            edges.append((node("tile", k, k, k), node("tile", k, i, k)))
        for i in range(k + 1, tiles):
            for j in range(k + 1, i + 1):
                # The update that the next step finds under the same tile.
                readers = {node("tile", k, i, k), node("tile", k, j, k)}
                edges += [(reader, node("update", k, i, j)) for reader in sorted(readers)]
                edges.append((node("update", k, i, j), node("tile", k + 1, i, j)))
                if j > k + 1:
                    edges.append((node("tile", k + 1, i, j), node("update", k + 1, i, j)))
    return edges


def _nested_unet(groups: int, random: np.random.Generator) -> Edges:
    """A triangle of nodes: each reads all before it on its level and the one below."""
    depth = max(3, int((np.sqrt(8 * groups + 1) - 1) / 2))
    # Wide triangles are not built: several follow each other.
    depth, copies = min(depth, 5), max(1, groups // (min(depth, 5) * (min(depth, 5) + 1) // 2))
    node = _Nodes()
    edges: Edges = []
    for c in range(copies):
        if c:
            edges.append((node(c - 1, 0, depth - 1), node(c, 0, 0)))
        for j in range(depth):
            for i in range(depth - j):
                if j == 0 and i:
                    edges.append((node(c, i - 1, 0), node(c, i, 0)))
                edges += [(node(c, i, m), node(c, i, j)) for m in range(j)]
                edges += [(node(c, i + 1, j - 1), node(c, i, j))] if j else []
    return edges


def _high_resolution(groups: int, random: np.random.Generator) -> Edges:
    """Branches of several resolutions that are exchanged, each with each, after a few ops."""
    branches, length = int(random.integers(3, 5)), int(random.integers(1, 4))
    node = _Nodes()
    edges: Edges = []
    ends = [node("stem")] * branches
    for stage in range(max(1, groups // (branches * (length + 1)))):
        outs = []
        for b in range(branches):
            last = ends[b]
            for step in range(length):
                edges.append((last, node("op", stage, b, step)))
                last = node("op", stage, b, step)
            outs.append(last)
        for b in range(branches):
            edges += [(out, node("sum", stage, b)) for out in outs]
        ends = [node("sum", stage, b) for b in range(branches)]
    return edges


def _small_world(groups: int, random: np.random.Generator) -> Edges:
    """Rings of which each node knows its neighbours, with some edges moved; edges go to higher numbers."""
    size = int(random.integers(12, 33))
    edges: Edges = []
    first = 0
    while first < groups:
        count = min(size, max(groups - first, 6))
        inner = set()
        for i in range(count):
            for step in (1, 2):
                j = (i + step) % count if random.random() >= 0.75 else int(random.integers(count))
                if i != j:
                    inner.add((first + min(i, j), first + max(i, j)))
        edges += sorted(inner)
        read, written = ({edge[side] for edge in inner} for side in (1, 0))
        own = range(first, first + count)
        if first:
            edges += [(first - 1, i) for i in own if i not in read]
        edges += [(i, first + count) for i in own if i not in written]
        first += count + 1
    return edges


VALIDATION_SHAPES: dict[str, Shape] = {
    "dense": _dense,
    "bifpn": _bifpn,
    "stencil": _stencil,
    "elimination": _elimination,
}
"""By family: edges of a graph of about so many nodes."""

TEST_SHAPES: dict[str, Shape] = {
    "butterfly": _butterfly,
    "cholesky": _cholesky,
    "nested_unet": _nested_unet,
    "high_resolution": _high_resolution,
    "small_world": _small_world,
}
"""The same; results on them are looked at when nothing is chosen by them any more."""
