"""Cheap ops follow a neighbour: the fusion patterns of all plugins, and HSDAG's rule where it is safe.

What plugins fuse without asking (bias and activation behind a convolution or MatMul, the residual Add,
Gelu, Swish and HSwish, decomposed MVN, LayerNorm, RMS and Softmax, FakeQuantize, rotary embedding) is
one shape of graph: a heavy op, then element-wise ops, reductions and data movement that lead back to
it. Two passes find that shape without a table of patterns:

* a light group joins the deepest group that it reads;
* a light group that only one group reads joins this one. This is the rule of HSDAG (an only child joins
  its only parent), restricted to light groups: applied to all ops it would turn a sequential network
  into a single group, and leave nothing to place.

Heavy ops never join each other here, and nothing joins across a pin. What is measured to matter is heavy
whatever its type: a Sin or a CumSum may take ten times as long on one device as on another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ov_autoplace._base.arrays import BoolArray, IntArray, grouped
from ov_autoplace.graph.rules.view import GraphView

__all__ = ["is_light", "light_ops_with_neighbour"]

# Element-wise functions, normalisation, reductions and data movement.
_LIGHT_TYPES = frozenset(
    """
    Abs Acos Acosh Add Asin Asinh Atan Atanh BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
    BitwiseRightShift BitwiseXor Ceiling Clamp Cos Cosh Divide Elu Equal Erf Exp FakeConvert FakeQuantize
    Floor FloorMod Gelu Greater GreaterEqual HSigmoid HSwish HardSigmoid IsFinite IsInf IsNaN LeakyRelu Less
    LessEqual Log LogSoftmax LogicalAnd LogicalNot LogicalOr LogicalXor Maximum Minimum Mish Mod Multiply
    Negative NotEqual PRelu Power Relu Round Select Selu Sigmoid Sign Sin Sinh SoftPlus SoftSign Softmax Sqrt
    SquaredDifference Subtract Swish Tan Tanh

    BatchNormInference GRN GroupNormalization LRN MVN NormalizeL2 RMS

    CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceLogicalAnd ReduceLogicalOr ReduceMax
    ReduceMean ReduceMin ReduceProd ReduceSum

    Broadcast Concat Convert ConvertLike DepthToSpace Gather GatherElements GatherND Identity OneHot Pad Range
    Reshape Reverse Roll ShapeOf ShuffleChannels Slice SpaceToDepth Split Squeeze StridedSlice Tile Transpose
    Unsqueeze VariadicSplit

    Constant Parameter Result
    """.split()  # noqa: SIM905 (two hundred quotation marks less)
)

_SMALL_WEIGHT_BYTES = 64 * 1024


def light_ops_with_neighbour(
    view: GraphView, labels: IntArray, pins: IntArray, heavy: BoolArray | None = None
) -> IntArray:
    """Pairs of ops that join light groups to a neighbour.

    The result keeps the groups acyclic: a level is kept per group so that every edge leads to a higher
    one, and a group joins another only if that one lies strictly above everything else it reads.

    Args:
        view: The graph of N ops.
        labels: Group of each op, ``int32[N]``, groups being numbered in topological order.
        pins: Pin of each group, ``int32[G]``; groups with different pins (-1 = none) never join.
        heavy: Ops that are heavy whatever their type, ``bool[N]``.

    Returns:
        ``int32[K, 2]``.
    """
    num_groups = len(pins)
    sources, targets = _group_edges(view, labels, num_groups)
    is_heavy = ~is_light(view) if heavy is None else ~is_light(view) | heavy
    light = np.bincount(labels[is_heavy], minlength=num_groups) == 0
    follows = light & ~_growing(view, labels, num_groups)
    # With several branches to gather, no branch is the one that a Concat belongs to.
    gathers = np.zeros(num_groups, dtype=np.bool_)
    gathers[labels[view.is_type({"Concat"})]] = True
    reads = grouped(sources, targets, num_groups)
    leader, level = _join_what_they_read(reads, follows.tolist(), gathers.tolist(), pins.tolist())
    read_by = grouped(targets, sources, num_groups)
    _join_only_reader(leader, level, read_by, light.tolist(), pins.tolist())
    representative = np.full(num_groups, len(labels), dtype=np.int32)
    np.minimum.at(representative, labels, np.arange(len(labels), dtype=np.int32))
    leaders = np.array(leader, dtype=np.int32)
    moved = np.flatnonzero(leaders != np.arange(num_groups))
    return np.stack((representative[moved], representative[leaders[moved]]), axis=1).astype(np.int32)


def is_light(view: GraphView) -> BoolArray:
    """Ops whose run time hardly matters, ``bool[N]``: light types, and all that is folded away.

    An op with a lot of stored data, more than it reads and writes, such as the lookup of an embedding, is
    heavy whatever its type: where it runs decides where that data lies.
    """
    graph = view.graph
    light_op = view.is_type(_LIGHT_TYPES) | view.foldable
    moved = graph.input_bytes + graph.output_bytes
    light_op &= graph.weight_bytes <= np.maximum(moved, _SMALL_WEIGHT_BYTES)
    return np.asarray(light_op)


def _growing(view: GraphView, labels: IntArray, num_groups: int) -> BoolArray:
    """Groups that send out more bytes than they take in, ``bool[G]``: better cut before than behind."""
    graph = view.graph
    tensor = graph.edge_tensor
    producer, consumer = labels[view.edge_source], labels[view.edge_target]
    crossing = (producer != consumer) & ~graph.is_constant[view.edge_source]
    sent = np.unique(tensor[crossing])
    taken = np.unique(tensor[crossing].astype(np.int64) * num_groups + consumer[crossing])
    out_bytes = np.bincount(
        labels[graph.tensor_producer[sent]], weights=graph.tensor_bytes[sent], minlength=num_groups
    )
    received, receiver = np.divmod(taken, num_groups)
    in_bytes = np.bincount(receiver, weights=graph.tensor_bytes[received], minlength=num_groups)
    return np.asarray(out_bytes > in_bytes)


def _group_edges(view: GraphView, labels: IntArray, num_groups: int) -> tuple[IntArray, IntArray]:
    """Distinct dependencies between different groups, as two aligned arrays."""
    ends = labels[view.dependencies].astype(np.int64)
    keys = np.unique(ends[:, 0] * num_groups + ends[:, 1])
    sources, targets = keys // num_groups, keys % num_groups
    between = sources != targets
    return sources[between].astype(np.int32), targets[between].astype(np.int32)


def _join_what_they_read(
    reads: list[list[int]], follows: list[bool], gathers: list[bool], pins: list[int]
) -> tuple[list[int], list[int]]:
    """First pass: the group that each group has joined (or itself), and the level of each."""
    leader = list(range(len(reads)))
    level = [0] * len(reads)
    for group, sources in enumerate(reads):
        if not sources:
            continue
        leaders = {leader[source] for source in sources}
        deepest = max(leaders, key=level.__getitem__)
        top = level[deepest]
        if (
            follows[group]
            and pins[deepest] == pins[group]
            and (len(leaders) == 1 or not gathers[group])
            and sum(level[other] == top for other in leaders) == 1
        ):
            leader[group] = deepest
        level[group] = top + (leader[group] == group)
    return leader, level


def _join_only_reader(
    leader: list[int], level: list[int], read_by: list[list[int]], light: list[bool], pins: list[int]
) -> None:
    """Second pass, in place: light groups that a single group reads join it, last ones first."""
    members: list[list[int]] = [[] for _ in leader]
    for group, head in enumerate(leader):
        members[head].append(group)
    find = _finder(leader)
    heads = [group for group, head in enumerate(leader) if group == head]
    for head in sorted(heads, key=level.__getitem__, reverse=True):
        if not light[head]:
            continue
        readers = {find(reader) for group in members[head] for reader in read_by[group]} - {head}
        if len(readers) == 1:
            reader = readers.pop()
            if pins[reader] == pins[head]:
                leader[head] = reader
    for group in range(len(leader)):
        leader[group] = find(group)


def _finder(leader: list[int]) -> Callable[[int], int]:
    def find(group: int) -> int:
        root = group
        while leader[root] != root:
            root = leader[root]
        while leader[group] != root:
            leader[group], group = root, leader[group]
        return root

    return find
