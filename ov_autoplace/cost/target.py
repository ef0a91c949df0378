"""Targets: what is known of a machine's devices apart from any model.

A target is measured (:func:`ov_autoplace.measure.calibrate.calibrate`), put together from what the devices
say of themselves (:func:`~ov_autoplace.cost.generic_target.generic_target`), or read from the catalogue of
public figures in ``ov_autoplace/cost/catalogue``. Every number carries its source.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.errors import TargetError

__all__ = [
    "MEASURED",
    "OP_CLASSES",
    "SHARE_OF_MATMUL",
    "THREAD_SCALING",
    "DeviceProfile",
    "Rate",
    "RateSample",
    "Target",
]

OP_CLASSES = ("matmul", "convolution", "depthwise", "elementwise", "copy")
"""What a device's speed is known for: flop/s of four kinds of op, and bytes/s moved (``copy``)."""

SHARE_OF_MATMUL = {"attention": 0.15, "recurrent": 0.5}
"""What a device's speed may be known for beside that: classes of ops that are products of matrices, and
slower. Where nobody measured them, they reach these shares of the matmul rate: medians over precisions and
widths of a CPU."""

MEASURED = "measured"
"""Source of a number that was measured on the machine."""

THREAD_SCALING = 0.7
"""Work on ``n`` times as many threads is ``n`` to this power times as fast: on two cores, the median of the
nodes of 85 networks."""


@dataclass(frozen=True, eq=False)
class Rate:
    """Speed of one device at one class of ops and one precision, as a function of the amount of work.

    Attributes:
        op_class: One of :data:`OP_CLASSES` or :data:`SHARE_OF_MATMUL`.
        precision: OpenVINO element type name that the device computes in (``"f32"``, ``"bf16"``).
        sizes: Ascending amounts of work of one op, ``float64[n]``: flop, for ``copy`` bytes read and written.
        per_second: Speed at each size, ``float64[n]``.
        source: ``"measured"``, or which public figure or assumption the numbers come from.
    """

    op_class: str
    precision: str
    sizes: FloatArray
    per_second: FloatArray
    source: str

    def __post_init__(self) -> None:
        sizes, speeds = np.asarray(self.sizes), np.asarray(self.per_second)
        name = f"the {self.precision} {self.op_class} rate"
        if self.op_class not in (*OP_CLASSES, *SHARE_OF_MATMUL):
            known = ", ".join([*OP_CLASSES, *SHARE_OF_MATMUL])
            raise TargetError(f"{self.op_class!r} is no class of ops; there are {known}")
        if len(sizes) == 0 or sizes.shape != speeds.shape:
            raise TargetError(f"{name} needs one speed per size, and at least one size")
        if not ((sizes > 0) & (speeds > 0) & np.isfinite(sizes) & np.isfinite(speeds)).all():
            raise TargetError(f"{name} must hold finite sizes and speeds above 0")
        if not (np.diff(sizes) > 0).all():
            raise TargetError(f"{name} must have ascending sizes")

    def at(self, work: FloatArray) -> FloatArray:
        """Speed at each amount of work: linear between known sizes on logarithmic scales, flat outside."""
        known = np.log(self.sizes)
        speed = np.interp(np.log(np.maximum(work, self.sizes[0])), known, np.log(self.per_second))
        return np.asarray(np.exp(speed), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DeviceProfile:
    """One device of a target.

    Attributes:
        name: OpenVINO device name.
        full_name: The hardware, in its maker's words.
        precision: Element type that the device computes floating-point models in unless told otherwise.
        rates: Every class of :data:`OP_CLASSES` in ``precision``, and what else is known.
        op_overhead_seconds: Time of an op that has nothing to do.
        memory_bytes: Memory that models may fill; ``inf`` = not known, not limited.
        sources: Where ``op_overhead_seconds`` and ``memory_bytes`` come from, and ``synchronisation_seconds``
            where there is one.
        threads: On how many threads the device runs all of this; 0 = not a CPU, or not known.
        synchronisation_seconds: Part of ``op_overhead_seconds`` for each doubling of the threads: they are
            woken for every op that they share, and wait for the last one of them.
        factors: By class of op, how many times as long as estimated whole models took that were run.
        generation: Maker, family and instructions of a CPU, equal for processors that are alike; empty = not
            a CPU, or not known.
    """

    name: str
    full_name: str
    precision: str
    rates: tuple[Rate, ...]
    op_overhead_seconds: float
    memory_bytes: float
    sources: Mapping[str, str]
    threads: int = 0
    synchronisation_seconds: float = 0.0
    factors: Mapping[str, float] = field(default_factory=dict)
    generation: str = ""

    def __post_init__(self) -> None:
        known = [(rate.op_class, rate.precision) for rate in self.rates]
        for pair in known:
            if known.count(pair) > 1:
                raise TargetError(f"device {self.name!r} has two {pair[1]} {pair[0]} rates; keep one")
        for op_class in OP_CLASSES:
            if (op_class, self.precision) not in known:
                raise TargetError(f"device {self.name!r} lacks its {self.precision} {op_class} rate")
        for op_class, factor in self.factors.items():
            if not 0 < factor < math.inf:
                said = f"the factor of {op_class} on {self.name!r} is {factor}"
                raise TargetError(f"{said}; it must be above 0")
        needed = ["op_overhead_seconds", "memory_bytes"]
        for key in needed + ["synchronisation_seconds"] * bool(self.synchronisation_seconds):
            if key not in self.sources:
                raise TargetError(f"device {self.name!r} does not say where its {key} comes from")

    def rate(self, op_class: str, precision: str | None = None) -> Rate:
        """The rate in ``precision``, or in the device's own where that is not known."""
        found = {(rate.op_class, rate.precision): rate for rate in self.rates}
        rate = found.get((op_class, precision or self.precision)) or found.get((op_class, self.precision))
        if rate is not None:
            return rate
        matmul, share = found["matmul", self.precision], SHARE_OF_MATMUL[op_class]
        source = f"assumed {share:.0%} of the matmul rate"
        return replace(matmul, op_class=op_class, per_second=share * matmul.per_second, source=source)

    def on_threads(self, threads: int) -> DeviceProfile:
        """The same device on fewer threads; :attr:`threads` must be known.

        Speeds change as :data:`THREAD_SCALING` says, and an op costs less synchronisation.

        Args:
            threads: From 1 to :attr:`threads`.
        """
        share = self.threads / threads
        rates = tuple(replace(r, per_second=r.per_second / share**THREAD_SCALING) for r in self.rates)
        saved = self.synchronisation_seconds * math.log2(share)
        overhead = max(self.op_overhead_seconds - saved, 0.0)
        return replace(self, rates=rates, op_overhead_seconds=overhead, threads=threads)

    def slower(self, factor: float) -> DeviceProfile:
        """The same device where everything takes ``factor`` times as long."""
        return replace(
            self,
            rates=tuple(replace(rate, per_second=rate.per_second / factor) for rate in self.rates),
            op_overhead_seconds=factor * self.op_overhead_seconds,
            synchronisation_seconds=factor * self.synchronisation_seconds,
        )


@dataclass(frozen=True, eq=False)
class RateSample:
    """One micro-benchmark: what was run, and every latency.

    Attributes:
        device, op_class, precision: As in :class:`Rate`.
        size: Work of an op, flop or bytes.
        ops: How many such ops the model has.
        seconds: Raw latencies of the whole model, ``float64[n]``.
    """

    device: str
    op_class: str
    precision: str
    size: float
    ops: int
    seconds: FloatArray


@dataclass(frozen=True, eq=False)
class Target:
    """The devices of one machine and what crossing them costs.

    Attributes:
        name: What to call it.
        openvino: OpenVINO version that was measured, or that the assumptions were made for.
        created: ISO date.
        fingerprint: Hash over devices, drivers and OpenVINO version; empty when nothing was measured.
        devices: The devices.
        transfers: Launch and transfer costs over exactly these devices, in this order.
        transfers_source: Where they come from.
        samples: Raw micro-benchmarks behind the rates.
    """

    name: str
    openvino: str
    created: str
    fingerprint: str
    devices: tuple[DeviceProfile, ...]
    transfers: TransferFit
    transfers_source: str
    samples: tuple[RateSample, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.devices:
            raise TargetError(f"the target {self.name!r} has no devices")
        if len(set(self.device_names)) != len(self.devices):
            raise TargetError(
                f"the target {self.name!r} names a device twice: {', '.join(self.device_names)}"
            )
        if self.transfers.devices != self.device_names:
            raise TargetError(
                f"the target {self.name!r} has devices {', '.join(self.device_names)}, "
                f"but transfers of {', '.join(self.transfers.devices)}"
            )

    @property
    def device_names(self) -> tuple[str, ...]:
        """Names of the devices."""
        return tuple(device.name for device in self.devices)

    @property
    def is_measured(self) -> bool:
        """Whether the numbers were measured on the machine."""
        return self.transfers_source == MEASURED or bool(self.samples)

    def device(self, name: str) -> DeviceProfile:
        """The device called ``name``.

        Raises:
            TargetError: There is none.
        """
        for device in self.devices:
            if device.name == name:
                return device
        raise TargetError(
            f"the target {self.name!r} has no device {name!r}; it has {', '.join(self.device_names)}"
        )

    def slower(self, factor: float) -> Target:
        """The same machine where everything but a transfer takes ``factor`` times as long."""
        launch = frozen_array(factor * self.transfers.launch_seconds, np.float64)
        return replace(
            self,
            devices=tuple(device.slower(factor) for device in self.devices),
            transfers=replace(self.transfers, launch_seconds=launch),
        )

    def resolve_devices(self, devices: str | Sequence[str] | None = None) -> tuple[str, ...]:
        """The devices that a request names, in its order; all when it names none.

        Args:
            devices: ``"GPU,CPU"`` or a sequence of names, or nothing.

        Raises:
            TargetError: A name that the target lacks, or a name given twice.
        """
        if not devices:
            return self.device_names
        names = [name.strip() for name in devices.split(",")] if isinstance(devices, str) else list(devices)
        for name in names:
            self.device(name)
            if names.count(name) > 1:
                raise TargetError(f"device {name!r} is listed twice")
        return tuple(names)
