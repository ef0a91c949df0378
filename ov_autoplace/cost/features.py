"""What a network of costs sees of an op and of a device.

Times enter as ratios only, by the time of light ops, and the answer is a multiple of a roofline: a machine
that does everything in half the time takes half the time by the network, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.analytic import op_roofline
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.target import OP_CLASSES, DeviceProfile

__all__ = ["DEVICE_FEATURES", "OP_FEATURES", "OpInputs", "descriptor"]

_VECTOR = 16  # elements that CPUs of the widest vectors compute at once, and blocks of channels in memory
_TIME_SCALE = 5  # of logarithms of times
_SMALL_CACHE = 1 << 16  # bytes, less than the cache of any core

_PRECISIONS = ("f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")
_LIGHT, _HEAVY = 1e5, 1e8  # work of an op, flop or bytes, at which a device's rates are told

OP_FEATURES = (
    *("log_flops", "log_weight_bytes", "log_input_bytes", "log_output_bytes", "log_steps", "rank"),
    *("log_last", "log_second", "log_first", "log_intensity", "begins_kernel", "log_readers", "log_operands"),
    *("log_run_length", "filled_last", "filled_second"),
    *(f"is_{precision}" for precision in _PRECISIONS),
    *("log_arithmetic", "log_memory", "log_kernel", "log_weights_per_thread", "log_model_ops"),
)
"""One column each of what an op shows."""

DEVICE_FEATURES = (
    *(f"log_{op_class}_{size}" for op_class in OP_CLASSES for size in ("light", "heavy")),
    *("log_overhead", "log_threads", "synchronisation", "is_bf16", "is_f16"),
)
"""One value each of what a device shows, the same for all ops."""


@dataclass(frozen=True, eq=False)
class OpInputs:
    """What a network of costs reads of N ops on one device.

    Attributes:
        op_types: Their types, length N.
        values: ``float32[N, len(OP_FEATURES) + len(DEVICE_FEATURES)]``.
        seconds: Roofline of each op, which the network corrects, ``float64[N]``.
        edges: Producer and consumer of each edge, ``int32[E, 2]``.
    """

    op_types: tuple[str, ...]
    values: NDArray[np.float32]
    seconds: FloatArray
    edges: IntArray

    def disturbed(self, random: np.random.Generator, noise: float, dropout: float) -> OpInputs:
        """The same as another calibration of the device might show it, without some of the edges.

        Args:
            random: Draws.
            noise: Standard deviation of the logarithms of what ops take there.
            dropout: Share of the edges that are left out.
        """
        last = self.values.shape[1] - len(DEVICE_FEATURES)
        times = DEVICE_FEATURES.index("log_threads")
        values = self.values.copy()
        values[:, last : last + times] += (random.normal(0.0, noise, times) / _TIME_SCALE).astype(np.float32)
        kept = random.random(len(self.edges)) >= dropout
        return replace(self, values=values, edges=self.edges[kept])

    @classmethod
    def of(cls, ops: OpGraph, device: DeviceProfile) -> OpInputs:
        """The inputs for ops on a device."""
        N = len(ops)
        arithmetic, memory, overhead = op_roofline(ops, device)
        seconds = np.maximum(arithmetic, memory) + overhead
        head = ops.head
        kernel = np.bincount(head, weights=np.maximum(arithmetic, memory), minlength=N)[head]
        unit = _unit_of(_op_seconds(device))
        # Whether they fit the cache of a core decides how fast they are read.
        weights_per_thread = float(ops.read_weights.sum()) / max(device.threads, 1)
        columns = [
            _log(ops.flops, 10),
            _log(ops.weight_bytes, 10),
            _log(ops.input_bytes, 10),
            _log(ops.output_bytes, 10),
            _log(ops.steps, 5),
            np.array([len(shape) for shape in ops.shapes]) / 4,
            *(_log(_dimension(ops, axis), 5) for axis in (-1, 1, 0)),
            _log(ops.flops / np.maximum(ops.elements, 1.0), 5),
            head == np.arange(N),
            _log(np.bincount(ops.edges[:, 0], minlength=N), 1),
            _log(np.bincount(ops.edges[:, 1], minlength=N), 1),
            _log(ops.run_length, 5),
            *(_filled(_dimension(ops, axis)) for axis in (-1, 1)),
            *(np.array([own == precision for own in ops.precisions]) for precision in _PRECISIONS),
            *(np.log(times / unit + 0.01) / _TIME_SCALE for times in (arithmetic, memory, kernel)),
            np.full(N, math.log1p(weights_per_thread / _SMALL_CACHE) / 2),
            np.full(N, math.log1p(N) / 5),
        ]
        own = np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1)
        told = np.broadcast_to(descriptor(device), (N, len(DEVICE_FEATURES)))
        values = np.concatenate([own, told], axis=1).astype(np.float32)
        return cls(ops.op_types, values, seconds, ops.edges)


def descriptor(device: DeviceProfile) -> NDArray[np.float32]:
    """What a device shows, ``float32[len(DEVICE_FEATURES)]``.

    These are times of whole ops, which are what was measured. How they are divided into work and overhead
    differs from one calibration to the next.
    """
    seconds = _op_seconds(device)
    unit = _unit_of(seconds)
    times = np.log(seconds / unit) / _TIME_SCALE
    overhead = math.log(device.op_overhead_seconds / unit + 0.01) / _TIME_SCALE
    threads = math.log2(max(device.threads, 1)) / 4
    waiting = device.synchronisation_seconds * math.log2(max(device.threads, 1)) / unit
    marks = [device.precision == precision for precision in ("bf16", "f16")]
    return np.array([*times.ravel(), overhead, threads, waiting, *marks], dtype=np.float32)


def _op_seconds(device: DeviceProfile) -> FloatArray:
    """What a light and a heavy op of each class take, ``float64[len(OP_CLASSES), 2]``."""
    work = np.array([_LIGHT, _HEAVY])
    rates = [device.rate(op_class).at(work) for op_class in OP_CLASSES]
    return np.asarray(device.op_overhead_seconds + work / np.stack(rates), dtype=np.float64)


def _unit_of(seconds: FloatArray) -> float:
    """The unit of all times: the geometric mean of what light ops take, of :func:`_op_seconds`."""
    return float(np.exp(np.log(seconds[:, 0]).mean()))


def _dimension(ops: OpGraph, axis: int) -> FloatArray:
    return np.array(
        [max(shape[axis], 1) if len(shape) > max(axis, 0) else 1 for shape in ops.shapes], dtype=np.float64
    )


def _filled(dimensions: FloatArray) -> FloatArray:
    """Which share of full vectors a dimension takes, as kernels compute in vectors."""
    return np.asarray(dimensions / (np.ceil(dimensions / _VECTOR) * _VECTOR), dtype=np.float64)


def _log(values: ArrayLike, scale: float) -> FloatArray:
    return np.log1p(np.asarray(values, dtype=np.float64)) / scale
