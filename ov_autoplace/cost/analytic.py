"""The analytic cost table: a roofline of a target, without compiling anything.

S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", CACM 52(4), 2009. Ops that a device fuses are one kernel (``OpGraph.head``), which takes
the longer of its arithmetic and its memory traffic::

    seconds = max(sum over its ops of flop / rate(class of the op),
                  weight bytes / copy rate(weights of the whole model)
                  + exchanged bytes / copy rate(exchanged bytes)) + steps x op overhead

Exchanged is what a kernel reads from and writes to others: what passes between its own ops stays in
registers, and what it exchanges is as close as its size allows. Its weights were last used one inference ago,
so they are as far away as all weights together put them. Steps are the ops of a loop's body times its
iterations, and the time steps of a recurrent sequence. A group of ops takes what its kernels take; ops that
only rename a tensor take no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray
from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.table import ANALYTIC, CostTable
from ov_autoplace.cost.target import DeviceProfile, Target
from ov_autoplace.graph.computation_graph import CoarseGraph

__all__ = [
    "Roofline",
    "analytic_table",
    "group_seconds",
    "op_classes",
    "op_roofline",
    "target_table",
]

_MATMUL, _CONVOLUTION, _DEPTHWISE, _ELEMENTWISE = "matmul", "convolution", "depthwise", "elementwise"
_BY_REFERENCE = "by reference"  # no class of rates: _REFERENCE_FLOP_PER_SECOND_AND_THREAD

# Class of an op type, and the share of that class's rate it reaches. Types that are not listed compute
# element by element. The shares are judgements, not measurements: transposed convolutions gather.
_CLASSES: dict[str, tuple[str, float]] = {
    "MatMul": (_MATMUL, 1.0),
    "FullyConnected": (_MATMUL, 1.0),
    "Einsum": (_MATMUL, 0.7),
    "ScaledDotProductAttention": ("attention", 1.0),
    "LSTMCell": ("recurrent", 1.0),
    "GRUCell": ("recurrent", 1.0),
    "RNNCell": ("recurrent", 1.0),
    "LSTMSequence": ("recurrent", 1.0),
    "GRUSequence": ("recurrent", 1.0),
    "RNNSequence": ("recurrent", 1.0),
    "If": (_MATMUL, 0.5),
    "Loop": (_MATMUL, 0.5),
    "TensorIterator": (_MATMUL, 0.5),
    "Convolution": (_CONVOLUTION, 1.0),
    "ConvolutionBackpropData": (_CONVOLUTION, 0.7),
    "DeformableConvolution": (_CONVOLUTION, 0.2),
    "GroupConvolution": (_DEPTHWISE, 1.0),
    "GroupConvolutionBackpropData": (_DEPTHWISE, 0.7),
}

_INTEGER_PRECISIONS = frozenset({"i8", "u8", "i4", "u4"})

# OpenVINO 2026.4 has no kernel for f16 that transposes a convolution along one dimension: the reference does,
# one number at a time. The rate lies between those that were measured on Granite Rapids, 0.06 Gflop/s, and on
# Emerald Rapids, 0.03 Gflop/s.
_REFERENCE_FLOP_PER_SECOND_AND_THREAD = 4e7


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
    seconds = np.stack([group_seconds(coarse, target.device(name)) for name in devices], axis=1)
    return target_table(coarse, target, devices, seconds, supported, ANALYTIC)


def target_table(
    coarse: CoarseGraph,
    target: Target,
    devices: Sequence[str],
    seconds: FloatArray,
    supported: BoolArray | None,
    source: str,
) -> CostTable:
    """The cost table of a target's devices from what their groups are estimated to take, ``float64[G, D]``.

    The other arguments and the errors are those of :func:`analytic_table`.
    """
    seconds = seconds.copy()
    if supported is not None:
        group, device = np.nonzero(~supported)
        seconds[coarse.group_of[group], device] = np.inf
    capacity = np.array([target.device(name).memory_bytes for name in devices])
    return assemble_table(coarse, devices, seconds, target.transfers, capacity, source)


def group_seconds(coarse: CoarseGraph, device: DeviceProfile) -> FloatArray:
    """Estimated run time of each group on one device, ``float64[G]``."""
    ops, kept = OpGraph.of(coarse.ops)
    seconds = Roofline.of(ops, device).seconds
    return np.bincount(coarse.group_of[kept], weights=seconds, minlength=len(coarse)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Roofline:
    """What N ops take on a device by its rates. What a kernel takes beside its arithmetic is at its first op.

    Attributes:
        arithmetic: Flop over rate of each op, ``float64[N]``.
        memory: Of the kernel that an op begins, ``float64[N]``; 0 of the other ops.
        overhead: Likewise.
        head: The first op of each op's kernel, ``int32[N]``.
    """

    arithmetic: FloatArray
    memory: FloatArray
    overhead: FloatArray
    head: IntArray

    @classmethod
    def of(cls, ops: OpGraph, device: DeviceProfile) -> Roofline:
        """The roofline of a device."""
        head, copy = ops.head, device.rate("copy")
        weights = np.bincount(head, weights=ops.read_weights, minlength=len(ops))
        exchanged = _exchanged_bytes(ops, head)
        total = weights.sum(keepdims=True)
        memory = weights / copy.at(total) + exchanged / copy.at(exchanged)
        runs = np.bincount(head, weights=ops.is_busy, minlength=len(ops)) > 0
        steps = np.bincount(head, weights=np.maximum(ops.steps - 1, 0), minlength=len(ops))
        return cls(
            _arithmetic_seconds(ops, device),
            np.where(runs, memory, 0.0),
            np.where(runs, (1.0 + steps) * device.op_overhead_seconds, 0.0),
            head,
        )

    @property
    def seconds(self) -> FloatArray:
        """Estimated run time of each kernel at its first op, ``float64[N]``."""
        arithmetic = np.bincount(self.head, weights=self.arithmetic, minlength=len(self.head))
        return np.asarray(np.maximum(arithmetic, self.memory) + self.overhead, dtype=np.float64)


def op_classes(ops: OpGraph) -> tuple[str, ...]:
    """Class of each op, whose rate its arithmetic takes, length N."""
    return tuple(_CLASSES.get(op_type, (_ELEMENTWISE, 1.0))[0] for op_type in ops.op_types)


def op_roofline(ops: OpGraph, device: DeviceProfile) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Arithmetic, memory traffic and overhead of each op as if nothing were fused, ``float64[N]`` each."""
    copy = device.rate("copy")
    moved = ops.input_bytes + ops.output_bytes
    weights = ops.read_weights
    memory = weights / copy.at(weights.sum(keepdims=True)) + moved / copy.at(moved)
    overhead = np.maximum(ops.steps, 1) * device.op_overhead_seconds
    return _arithmetic_seconds(ops, device), memory, np.asarray(overhead, dtype=np.float64)


def _exchanged_bytes(ops: OpGraph, head: IntArray) -> FloatArray:
    """Bytes that each kernel reads from and writes to others, at its first op, ``float64[N]``."""
    producer, consumer = ops.edges[:, 0], ops.edges[:, 1]
    inside = head[producer] == head[consumer]
    kept = np.ones(len(ops), dtype=np.bool_)
    kept[producer[inside]] = False
    read = ops.input_bytes - np.bincount(
        consumer[inside], weights=ops.output_bytes[producer[inside]], minlength=len(ops)
    )
    moved = np.maximum(read, 0.0) + np.where(kept, ops.output_bytes, 0.0)
    return np.bincount(head, weights=moved, minlength=len(ops)).astype(np.float64)


def _arithmetic_seconds(ops: OpGraph, device: DeviceProfile) -> FloatArray:
    """Flop over rate of each op, ``float64[N]``."""
    reference = _REFERENCE_FLOP_PER_SECOND_AND_THREAD * device.threads
    has_reference = device.threads > 0 and device.precision == "f16"
    kinds: dict[tuple[str, float, str | None], list[int]] = {}
    for i, (op_type, precision, shape) in enumerate(
        zip(ops.op_types, ops.precisions, ops.shapes, strict=True)
    ):
        op_class, share = _CLASSES.get(op_type, (_ELEMENTWISE, 1.0))
        if has_reference and op_type.endswith("ConvolutionBackpropData") and len(shape) == 3:
            op_class = _BY_REFERENCE
        # Floating-point models run in whatever precision the device prefers; integers stay integers.
        own = "i8" if precision in _INTEGER_PRECISIONS else None
        kinds.setdefault((op_class, share, own), []).append(i)
    seconds = np.zeros(len(ops))
    for (op_class, share, own), members in kinds.items():
        flops = ops.flops[members]
        rate = reference if op_class == _BY_REFERENCE else share * device.rate(op_class, own).at(flops)
        seconds[members] = flops / rate
    return seconds
