"""Random machines: cost tables of a workload on devices that nobody built.

A policy that has seen only a few machines learns these machines; one that has seen a new machine with every
episode learns to read costs. What varies: how fast each device is at each class and type of op, how much an
op costs at least, what it cannot run at all, what crossing costs against what a device can win, and whether
the table shown to the policy holds the truth or an estimate of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.cost.table import CostTable
from ov_autoplace.training.workload import Workload

__all__ = ["RandomTargets", "Task", "random_task"]


@dataclass(frozen=True)
class RandomTargets:
    """How random machines are drawn.

    Attributes:
        devices: Numbers of devices and how often each is drawn.
        balance: Standard deviation of the logarithm of a device's total time over the others'.
        type_spread: The same for one op type on one device.
        op_spread: The same for a single op on one device.
        crossing: Range of the logarithm (base 10) of a typical transfer by the typical gain of an op.
        unsupported: Chance that a device lacks some op types.
        estimate: Chance that the policy sees an estimate instead of the truth.
        estimate_device_error, estimate_type_error, estimate_op_error: Standard deviations of an estimate's
            logarithm: of all that a device runs, of one op type on it, and of one op.
        untyped: Chance that the table has no op types.
    """

    devices: tuple[tuple[int, float], ...] = ((2, 0.7), (3, 0.25), (4, 0.05))
    balance: float = 0.35
    type_spread: float = 0.6
    op_spread: float = 0.3
    crossing: tuple[float, float] = (-1.5, 1.5)
    unsupported: float = 0.15
    estimate: float = 0.2
    estimate_device_error: float = 0.15
    estimate_type_error: float = 0.5
    estimate_op_error: float = 0.3
    untyped: float = 0.15


@dataclass(frozen=True, eq=False)
class Task:
    """A problem: what the policy sees, and what is true.

    Attributes:
        shown: The table that the policy reads.
        true: The table that placements are scored on; the same object unless ``shown`` is an estimate.
        family: Of the workload.
        name: Of the workload.
    """

    shown: CostTable
    true: CostTable
    family: str
    name: str


def random_task(
    workload: Workload, random: np.random.Generator, targets: RandomTargets, devices: int | None = None
) -> Task:
    """A workload on a random machine.

    Args:
        workload: What is computed.
        random: Source of everything random.
        targets: How machines are drawn.
        devices: Number of devices; ``None`` draws it.
    """
    if devices is None:
        counts, weights = zip(*targets.devices, strict=True)
        devices = int(random.choice(counts, p=np.array(weights) / sum(weights)))
    seconds = _op_seconds(workload, random, targets, devices)
    true = _with_crossings(workload, seconds, random, targets)
    if random.random() < targets.untyped:
        true = replace(true, op_types=None, output_shapes=None)
    if random.random() >= targets.estimate:
        return Task(true, true, workload.family, workload.name)
    _, op_type = np.unique(workload.op_types, return_inverse=True)
    shape = (op_type.max() + 1, devices)
    error = random.normal(0, targets.estimate_type_error, shape)[op_type]
    error += random.normal(0, targets.estimate_device_error, devices)
    error += random.normal(0, targets.estimate_op_error, seconds.shape)
    crossing = np.exp(random.normal(0, 0.3))
    shown = replace(
        true,
        op_seconds=true.op_seconds * np.exp(error),
        transfer_latency=true.transfer_latency * crossing,
        transfer_seconds_per_byte=true.transfer_seconds_per_byte * crossing,
        source="analytic",
    )
    return Task(shown, true, workload.family, workload.name)


def _op_seconds(
    workload: Workload, random: np.random.Generator, targets: RandomTargets, devices: int
) -> NDArray[np.float64]:
    """Seconds of each group on each device, ``float64[G, D]``, some infinite."""
    G, D, classes = len(workload), devices, workload.flops.shape[1]
    # Decades around a small CPU: what matters is how they compare to each other.
    rate = 10.0 ** (random.uniform(9.5, 12.0) + random.normal(0, 0.4, (D, classes)))
    bandwidth = 10.0 ** (random.uniform(9.5, 11.5) + random.normal(0, 0.3, D))
    overhead = 10.0 ** (random.uniform(-6.5, -4.5) + random.normal(0, 0.4, D))
    moved = workload.weight_bytes + workload.exchanged_bytes
    seconds = np.maximum(workload.flops @ (1.0 / rate).T, moved[:, None] / bandwidth) + overhead
    types, op_type = np.unique(workload.op_types, return_inverse=True)
    spread = targets.type_spread * random.uniform(0, 1.5)
    seconds *= np.exp(random.normal(0, spread, (len(types), D)))[op_type]
    seconds *= np.exp(random.normal(0, targets.op_spread * random.uniform(0, 1.5), (G, D)))
    seconds[~workload.busy] = 0.0
    total = np.maximum(seconds.sum(axis=0), 1e-12)
    seconds *= total.mean() / total * np.exp(random.normal(0, targets.balance, D))
    if random.random() < targets.unsupported:
        lacks = random.random((len(types), D)) < random.uniform(0.02, 0.3)
        lacks[:, random.integers(D)] = False  # one device runs everything, as the CPU does
        seconds[lacks[op_type]] = np.inf
    return np.asarray(seconds)


def _with_crossings(
    workload: Workload,
    seconds: NDArray[np.float64],
    random: np.random.Generator,
    targets: RandomTargets,
) -> CostTable:
    """The table with transfers that are dear or cheap compared to what single ops can win."""
    D = seconds.shape[1]
    known = np.where(np.isfinite(seconds), seconds, np.nan)
    gain = float(np.nanmean(np.nanmax(known, axis=1) - np.nanmin(known, axis=1)))
    typical = max(gain, 1e-9) * 10.0 ** random.uniform(*targets.crossing)
    by_latency = random.uniform(0.1, 1.0)
    moves = ~workload.tensor_is_constant
    mean_bytes = max(float(workload.tensor_bytes[moves].mean()) if moves.any() else 1.0, 1.0)
    pair = np.exp(random.normal(0, 0.4, (2, D, D)))
    pair = 0.5 * (pair + pair.transpose(0, 2, 1)) if random.random() < 0.5 else pair
    launch = typical * random.uniform(0, 0.6) * np.exp(random.normal(0, 0.4, D))
    return CostTable(
        devices=tuple(f"DEVICE{d}" for d in range(D)),
        names=tuple(f"group{g}" for g in range(len(workload))),
        op_seconds=seconds,
        tensor_producer=workload.tensor_producer,
        tensor_bytes=workload.tensor_bytes,
        tensor_offsets=workload.tensor_offsets,
        tensor_consumers=workload.tensor_consumers,
        tensor_is_constant=workload.tensor_is_constant,
        tensor_uncuttable=workload.tensor_uncuttable,
        transfer_latency=typical * by_latency * pair[0],
        transfer_seconds_per_byte=typical * (1 - by_latency) / mean_bytes * pair[1],
        launch_seconds=launch,
        memory_bytes=workload.weight_bytes + workload.output_bytes,
        memory_capacity=np.full(D, np.inf),
        op_types=workload.op_types,
        output_shapes=workload.output_shapes,
        source="profiled",
    )
