"""The analytic cost table: a roofline of a target, without compiling anything.

S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", CACM 52(4), 2009. A group takes the longer of its arithmetic and its memory traffic::

    seconds = max(sum over its ops of flop / rate(class of the op),
                  weight bytes / copy rate(weights of the whole model)
                  + exchanged bytes / copy rate(exchanged bytes)) + op overhead

Exchanged is what a group reads from and writes to other groups: what passes between its own ops stays in
the caches, since a group is what a device fuses, and what it exchanges is as close as its size allows. Its
weights were last used one inference ago, so they are as far away as all weights together put them. A group
of nothing but constants, inputs, outputs and ops that only rename a tensor takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray
from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target import DeviceProfile, Target
from ov_autoplace.graph.computation_graph import CoarseGraph

__all__ = [
    "WORK_CLASSES",
    "analytic_table",
    "busy_groups",
    "bytes_exchanged",
    "group_seconds",
    "work_by_class",
]

_MATMUL, _CONVOLUTION, _DEPTHWISE, _ELEMENTWISE = "matmul", "convolution", "depthwise", "elementwise"

WORK_CLASSES = (_MATMUL, _CONVOLUTION, _DEPTHWISE, _ELEMENTWISE)
"""The classes of :data:`~ov_autoplace.cost.target.OP_CLASSES` that arithmetic falls into."""

# Class of an op type, and the share of that class's rate it reaches. Types that are not listed compute
# element by element. The shares are judgements, not measurements: attention spends part of its time in the
# softmax, a recurrent cell waits for its own last step, transposed and deformable convolutions gather.
_CLASSES: dict[str, tuple[str, float]] = {
    "MatMul": (_MATMUL, 1.0),
    "FullyConnected": (_MATMUL, 1.0),
    "Einsum": (_MATMUL, 0.7),
    "ScaledDotProductAttention": (_MATMUL, 0.7),
    "LSTMCell": (_MATMUL, 0.5),
    "GRUCell": (_MATMUL, 0.5),
    "RNNCell": (_MATMUL, 0.5),
    "LSTMSequence": (_MATMUL, 0.5),
    "GRUSequence": (_MATMUL, 0.5),
    "RNNSequence": (_MATMUL, 0.5),
    "If": (_MATMUL, 0.5),
    "Loop": (_MATMUL, 0.5),
    "TensorIterator": (_MATMUL, 0.5),
    "Convolution": (_CONVOLUTION, 1.0),
    "ConvolutionBackpropData": (_CONVOLUTION, 0.7),
    "DeformableConvolution": (_CONVOLUTION, 0.2),
    "GroupConvolution": (_DEPTHWISE, 1.0),
    "GroupConvolutionBackpropData": (_DEPTHWISE, 0.7),
}

# Ops that a device resolves before it runs, or by giving a tensor another name.
_FREE = frozenset(
    {"Parameter", "Constant", "Result", "Reshape", "Squeeze", "Unsqueeze", "ShapeOf", "Identity"}
)

_INTEGER_PRECISIONS = frozenset({"i8", "u8", "i4", "u4"})


def analytic_table(
    coarse: CoarseGraph,
    target: Target,
    devices: Sequence[str],
    supported: BoolArray | None = None,
) -> CostTable:
    """Estimate what every group costs on every device of a target.

    Args:
        coarse: Co-location groups of a model, N ops in G groups.
        target: Knows ``devices``.
        devices: Device names, D.
        supported: Which op can run on which device, ``bool[N, D]`` in the order of ``coarse.ops``; a group
            runs where all its ops do. ``None`` = everything runs everywhere.

    Raises:
        TargetError: The target lacks a device.
    """
    profiles = [target.device(name) for name in devices]
    seconds = np.stack([group_seconds(coarse, profile) for profile in profiles], axis=1)
    if supported is not None:
        group, device = np.nonzero(~supported)
        seconds[coarse.group_of[group], device] = np.inf
    return assemble_table(
        coarse,
        devices,
        seconds,
        target.transfers,
        memory_capacity=np.array([profile.memory_bytes for profile in profiles]),
        source="analytic",
    )


def group_seconds(coarse: CoarseGraph, device: DeviceProfile) -> FloatArray:
    """Estimated run time of each group on one device, ``float64[G]``."""
    arithmetic = np.bincount(
        coarse.group_of, weights=_arithmetic_seconds(coarse, device), minlength=len(coarse)
    )
    copy, weights, exchanged = device.rate("copy"), coarse.graph.weight_bytes, bytes_exchanged(coarse)
    memory = weights / copy.at(weights.sum(keepdims=True)) + exchanged / copy.at(exchanged)
    return np.where(busy_groups(coarse), np.maximum(arithmetic, memory) + device.op_overhead_seconds, 0.0)


def _arithmetic_seconds(coarse: CoarseGraph, device: DeviceProfile) -> FloatArray:
    """Flop over rate of each op, ``float64[N]``."""
    ops = coarse.ops
    kinds: dict[tuple[str, float, str | None], list[int]] = {}
    for i, (op_type, precision) in enumerate(zip(ops.op_types, ops.precisions, strict=True)):
        op_class, share = _CLASSES.get(op_type, (_ELEMENTWISE, 1.0))
        # Floating-point models run in whatever precision the device prefers; integers stay integers.
        own = "i8" if precision in _INTEGER_PRECISIONS else None
        kinds.setdefault((op_class, share, own), []).append(i)
    seconds = np.zeros(len(ops))
    for (op_class, share, own), members in kinds.items():
        flops = ops.flops[members]
        seconds[members] = flops / (share * device.rate(op_class, own).at(flops))
    return seconds


def work_by_class(coarse: CoarseGraph) -> FloatArray:
    """Flop of each group by class of op, ``float64[G, 4]`` in the order of :data:`WORK_CLASSES`.

    Each op's count is divided by the share of its class's rate that it reaches, so that dividing by the
    rates of the classes gives the arithmetic seconds on any device whose rates do not depend on the size.
    """
    classes = [_CLASSES.get(op_type, (_ELEMENTWISE, 1.0)) for op_type in coarse.ops.op_types]
    column = np.array([WORK_CLASSES.index(op_class) for op_class, _ in classes], dtype=np.int64)
    share = np.array([share for _, share in classes])
    cell = coarse.group_of * len(WORK_CLASSES) + column
    work = np.bincount(cell, weights=coarse.ops.flops / share, minlength=len(coarse) * len(WORK_CLASSES))
    return np.asarray(work.reshape(len(coarse), len(WORK_CLASSES)), dtype=np.float64)


def busy_groups(coarse: CoarseGraph) -> BoolArray:
    """Which groups take any time, ``bool[G]``: those with an op that does more than rename a tensor."""
    runs = np.array([op_type not in _FREE for op_type in coarse.ops.op_types], dtype=np.bool_)
    return np.asarray(np.bincount(coarse.group_of, weights=runs, minlength=len(coarse)) > 0)


def bytes_exchanged(coarse: CoarseGraph) -> FloatArray:
    """Tensors read from and written to other groups, of each group, ``float64[G]``."""
    graph = coarse.graph
    size = np.where(coarse.tensor_is_constant, 0.0, graph.tensor_bytes)
    written = np.bincount(graph.tensor_producer, weights=size, minlength=len(graph))
    read = np.bincount(graph.tensor_consumers, weights=size[graph.edge_tensor], minlength=len(graph))
    return np.asarray(written + read, dtype=np.float64)
