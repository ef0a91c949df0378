"""Random directed acyclic graphs with the costs of neural networks, of any size and of several shapes.

They teach a policy what no family of networks happens to show. Amounts of work follow log-normal
distributions around what an op of its type usually does, and stay correlated along a path, as the widths
of neighbouring layers are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.cost.analytic import WORK_CLASSES
from ov_autoplace.training.workload import Workload

__all__ = ["RANDOM_FAMILIES", "random_workload", "workload_of_edges"]

# Op type, class of its work, how often it occurs.
_OP_TYPES = (
    ("MatMul", "matmul", 0.32),
    ("Convolution", "convolution", 0.32),
    ("GroupConvolution", "depthwise", 0.08),
    ("Multiply", "elementwise", 0.06),
    ("Add", "elementwise", 0.05),
    ("Softmax", "elementwise", 0.03),
    ("MVN", "elementwise", 0.04),
    ("Concat", "elementwise", 0.04),
    ("MaxPool", "elementwise", 0.03),
    ("Sigmoid", "elementwise", 0.02),
    ("Transpose", "elementwise", 0.01),
)
_FREE_SHARE = 0.02  # of the groups: reshapes that found no neighbour

Edges = list[tuple[int, int]]


def random_workload(family: str, groups: int, seed: int) -> Workload:
    """One random graph.

    Args:
        family: One of :data:`RANDOM_FAMILIES`.
        groups: Size, G >= 1.
        seed: Of everything.
    """
    random = np.random.default_rng((seed, RANDOM_FAMILIES.index(family), groups))
    edges = _SHAPES[family](groups, random)
    return workload_of_edges(f"{family}-{groups}-{seed}", family, edges, random, groups)


def workload_of_edges(
    name: str, family: str, edges: Edges, random: np.random.Generator, groups: int | None = None
) -> Workload:
    """A graph without cycles, with random costs.

    Args:
        name: What to call it.
        family: Which kind of graph it is.
        edges: Producer and consumer of each edge; edges that are named twice count once.
        random: Source of the costs.
        groups: Size, G; ``None`` takes the largest number of the edges.
    """
    if groups is None:
        groups = 1 + max((max(edge) for edge in edges), default=0)
    readers: list[list[int]] = [[] for _ in range(groups)]
    for source, target in sorted(set(edges)):
        readers[source].append(target)
    return _with_costs(name, family, _depth_first(readers), random)


def _with_costs(name: str, family: str, readers: list[list[int]], random: np.random.Generator) -> Workload:
    """A workload over a graph given by the groups that read each group's result."""
    G = len(readers)
    size = _tensor_elements(readers, random)
    kind = random.choice(len(_OP_TYPES), size=G, p=_shares(random))
    op_class = np.array([WORK_CLASSES.index(_OP_TYPES[k][1]) for k in kind])
    op_types = [_OP_TYPES[k][0] for k in kind]
    # Multiply-adds per element of the result: a row of a matrix, a kernel over channels, a window, a few.
    typical = np.array([512.0, 1152.0, 18.0, 3.0])[op_class]
    flops = np.zeros((G, len(WORK_CLASSES)))
    flops[np.arange(G), op_class] = size * typical * random.lognormal(0, 0.8, G)
    # What was fused into the group: an activation or a normalisation.
    flops[:, WORK_CLASSES.index("elementwise")] += size * random.integers(1, 12, G)
    # How often a weight is used: by as many rows as the whole graph has, or by as many pixels.
    reused = np.where(op_class == 0, 2.0 ** random.uniform(0, 9), 2.0 ** random.uniform(5, 13, G))
    weights = np.where(op_class < 2, 4 * flops[np.arange(G), op_class] / 2 / reused, 64.0)
    busy = random.random(G) >= _FREE_SHARE
    offsets, consumers, producers = _tensors(readers)
    itemsize = random.choice([2.0, 4.0])
    tensor_bytes = itemsize * size[producers]
    read = np.bincount(consumers, weights=np.repeat(tensor_bytes, np.diff(offsets)), minlength=G)
    written = np.bincount(producers, weights=tensor_bytes, minlength=G)
    T = len(producers)
    return Workload(
        name=name,
        family=family,
        num_ops=int(G * random.uniform(4, 9)),
        op_types=tuple(t if b else "Reshape" for t, b in zip(op_types, busy.tolist(), strict=True)),
        output_shapes=tuple(_shape(int(s), t) for s, t in zip(size, op_types, strict=True)),
        flops=flops * busy[:, None],
        weight_bytes=np.where(busy, weights, 0.0),
        output_bytes=itemsize * size * random.integers(1, 4, G),
        exchanged_bytes=np.asarray(read + written, dtype=np.float64),
        busy=busy,
        tensor_producer=producers,
        tensor_bytes=tensor_bytes,
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        tensor_is_constant=np.zeros(T, dtype=np.bool_),
        tensor_uncuttable=random.random(T) < random.choice([0.0, 0.0, 0.02]),
    )


def _shares(random: np.random.Generator) -> np.ndarray:
    """How often each op type occurs in one graph: the usual shares, each scaled by chance."""
    shares = np.array([share for *_, share in _OP_TYPES]) * random.lognormal(0, 1.0, len(_OP_TYPES))
    return np.asarray(shares / shares.sum())


def _tensor_elements(readers: list[list[int]], random: np.random.Generator) -> np.ndarray:
    """Elements of each group's result, ``float64[G]``: those of what it reads, a little changed."""
    G = len(readers)
    centre, spread = random.uniform(np.log(256), np.log(200_000)), random.uniform(0.1, 0.6)
    total, count = np.zeros(G), np.zeros(G)
    size = np.empty(G)
    for group in range(G):
        before = total[group] / count[group] if count[group] else centre + random.normal(0, 1)
        # Pulled back to the centre, or a long path would end anywhere.
        size[group] = 0.97 * before + 0.03 * centre + random.normal(0, spread)
        total[readers[group]] += size[group]
        count[readers[group]] += 1
    return np.ceil(np.exp(np.clip(size, np.log(16), np.log(5e6))))


def _tensors(readers: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets and consumers of the tensors that somebody reads, and their producers."""
    producers = np.array([group for group, who in enumerate(readers) if who], dtype=np.int32)
    offsets, consumers = csr_from_lists([who for who in readers if who])
    return offsets, consumers, producers


def _shape(elements: int, op_type: str) -> tuple[int, ...]:
    """A shape of about that many elements, as ops of the type have."""
    if "Convolution" in op_type or op_type == "MaxPool":
        side = max(1, round((elements / 16) ** (1 / 4)))
        return (1, max(1, elements // side**2), side, side)
    rows = max(1, round(elements**0.4))
    return (1, rows, max(1, elements // rows))


def _depth_first(readers: list[list[int]]) -> list[list[int]]:
    """The same graph with its groups numbered as OpenVINO orders ops: each right behind what it reads."""
    sources: list[list[int]] = [[] for _ in readers]
    for group, targets in enumerate(readers):
        for target in targets:
            sources[target].append(group)
    position: dict[int, int] = {}
    stack = [group for group in reversed(range(len(readers))) if not readers[group]]
    while stack:
        missing = [source for source in sources[stack[-1]] if source not in position]
        if missing:
            stack.extend(missing)
        else:
            position.setdefault(stack.pop(), len(position))
    ordered: list[list[int]] = [[] for _ in readers]
    for group, targets in enumerate(readers):
        ordered[position[group]] = sorted(position[target] for target in targets)
    return ordered


def _layered(groups: int, random: np.random.Generator) -> Edges:
    """Layers of some width; each group reads some of the layer before, rarely of one further back."""
    width = max(1, round(random.uniform(1.5, max(2.0, groups**0.5))))
    layer = np.minimum(np.cumsum(random.random(groups) < 1 / width), groups)
    edges: Edges = []
    for group in range(1, groups):
        before = np.flatnonzero(layer[:group] == max(0, layer[group] - 1))
        if len(before) == 0 or before[-1] >= group or layer[group] == 0:
            before = np.arange(max(0, group - width), group)
        count = min(len(before), int(random.geometric(0.6)))
        edges += [(int(s), group) for s in random.choice(before, size=count, replace=False)]
        if random.random() < 0.05:
            edges.append((int(random.integers(group)), group))
    read = {source for source, _ in edges}
    for group in range(groups - 1):
        if group not in read:
            edges.append((group, int(random.integers(group + 1, min(groups, group + 2 * width + 1)))))
    return edges


def _series_parallel(groups: int, random: np.random.Generator) -> Edges:
    """Recursively one part after the other, or parts beside each other between two ends."""
    parallel = random.uniform(0.2, 0.7)
    edges: Edges = []

    def fill(first: int, last: int) -> None:
        """Connect ``first`` to ``last`` through everything between them."""
        inner = last - first - 1
        if inner <= 0:
            edges.append((first, last))
        elif inner >= 2 and random.random() < parallel:
            branches = int(random.integers(2, min(5, inner) + 1))
            cuts = np.sort(random.choice(np.arange(1, inner), size=branches - 1, replace=False))
            for begin, end in pairwise([0, *cuts.tolist(), inner]):
                chain(first, first + 1 + begin, first + end, last)
        else:
            middle = first + 1 + int(random.integers(inner))
            fill(first, middle)
            fill(middle, last)

    def chain(source: int, begin: int, end: int, target: int) -> None:
        """A branch that starts with ``begin``, ends with ``end`` and hangs between two others."""
        edges.append((source, begin))
        if begin < end:
            fill(begin, end)
        edges.append((end, target))

    if groups > 1:
        fill(0, groups - 1)
    return edges


def _chain_with_skips(groups: int, random: np.random.Generator) -> Edges:
    """One after the other, with connections over a few or over many."""
    often, reach = random.uniform(0.05, 0.5), random.uniform(2, 8)
    edges = [(group, group + 1) for group in range(groups - 1)]
    for group in range(groups - 2):
        if random.random() < often:
            long = random.random() < 0.05
            over = int(random.integers(2, groups - group)) if long else 1 + int(random.geometric(1 / reach))
            edges.append((group, min(groups - 1, group + over)))
    return edges


def _wide_fan_out(groups: int, random: np.random.Generator) -> Edges:
    """Blocks of many short branches that one group feeds and one group collects."""
    edges: Edges = []
    hub, top = 0, 1
    while top < groups:
        branches = int(random.integers(3, max(4, min(64, groups // 3)) + 1))
        length = int(random.integers(1, 5))
        ends = []
        for _ in range(branches):
            tail = hub
            for _ in range(length):
                if top >= groups - 1:
                    break
                edges.append((tail, top))
                tail, top = top, top + 1
            ends.append(tail)
        if top >= groups:
            break
        edges += [(end, top) for end in ends]
        hub, top = top, top + 1
    return edges


def _tree_reduction(groups: int, random: np.random.Generator) -> Edges:
    """Many inputs that are joined, two to four at a time, until one result is left."""
    arity = int(random.integers(2, 5))
    leaves = groups - math.ceil((groups - 1) / arity)  # with which one result is left in the end
    waiting = list(range(leaves))
    edges: Edges = []
    for group in range(leaves, groups):
        joined = [waiting.pop(0) for _ in range(min(arity, len(waiting)))]
        edges += [(source, group) for source in joined]
        waiting.append(group)
    return edges


def _grid(groups: int, random: np.random.Generator) -> Edges:
    """Steps times layers of cells that read the cell below and the one a step before: a loop, unrolled.

    Sometimes a second grid follows, whose steps read all results of the first one's top layer.
    """
    cell = int(random.integers(1, 5))
    layers = int(random.integers(1, max(2, min(9, groups // (2 * cell)) + 1)))
    attends = random.random() < 0.4
    boundary = groups // 2 if attends else groups
    edges: Edges = []
    last_of: dict[int, int] = {}  # by layer, in the step before
    tops: list[int] = []
    memory: list[int] = []
    top = layer = 0
    below = -1
    while top < groups:
        if top >= boundary and not memory:
            memory, tops, last_of, below, layer = tops, [], {}, -1, 0
        if memory and layer == 0:
            edges += [(source, top) for source in memory]
        if below >= 0:
            edges.append((below, top))
        if layer in last_of:
            edges.append((last_of[layer], top))
        end = min(top + cell, groups) - 1
        edges += [(group, group + 1) for group in range(top, end)]
        last_of[layer], below, top = end, end, end + 1
        layer += 1
        if layer == layers:
            tops.append(end)
            layer, below = 0, -1
    return edges


_SHAPES: dict[str, Callable[[int, np.random.Generator], Edges]] = {
    "random_layered": _layered,
    "random_series_parallel": _series_parallel,
    "random_chain_skips": _chain_with_skips,
    "random_fan_out": _wide_fan_out,
    "random_tree": _tree_reduction,
    "random_grid": _grid,
}

RANDOM_FAMILIES = tuple(_SHAPES)
