"""Random machines: cost tables of a workload on devices that nobody built.

A policy that has seen only a few machines learns these machines; one that has seen a new machine with every
episode learns to read costs. What varies: how fast each device is at each class and type of op, how much an
op costs at least, what it cannot run at all, what crossing costs against what a device can win, which devices
are copies or lanes of another one, how much they hold, and whether the table shown to the policy holds the
truth or an estimate of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.training.layouts import drawn_limits, random_layout
from ov_autoplace.training.workload import Workload

__all__ = ["EVERY_OBJECTIVE", "RandomTargets", "Task", "random_task"]

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class RandomTargets:
    """How random machines are drawn.

    Attributes:
        devices: Numbers of devices (columns of the table) and how often each is drawn.
        objectives: What placements are scored by, and how often each is drawn.
        copies: Chance that some of three or more devices are copies of one another.
        lanes: Under the objective ``overlap``, chance that columns are lanes of one device, alone or beside
            others.
        limits: Chance that devices have less memory than the whole workload takes, by objective.
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
    objectives: tuple[tuple[str, float], ...] = (("hetero", 1.0),)
    copies: float = 0.0
    lanes: float = 0.0
    limits: tuple[tuple[str, float], ...] = ()
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


EVERY_OBJECTIVE = RandomTargets(
    devices=((2, 0.35), (3, 0.2), (4, 0.2), (5, 0.05), (6, 0.08), (7, 0.03), (8, 0.09)),
    objectives=(("hetero", 0.45), ("overlap", 0.4), ("rate", 0.15)),
    copies=0.25,
    lanes=0.8,
    limits=(("hetero", 0.35), ("overlap", 0.2), ("rate", 0.2)),
)
"""What a policy for all objectives is trained on."""


@dataclass(frozen=True, eq=False)
class Task:
    """A problem: what the policy sees, and what is true.

    Attributes:
        shown: The table that the policy reads.
        true: The table that placements are scored on; the same object unless ``shown`` is an estimate.
        family: Of the workload.
        name: Of the workload.
        objective: What placements are scored by. Memory limits are the tables' ``memory_capacity``.
    """

    shown: CostTable
    true: CostTable
    family: str
    name: str
    objective: str = "hetero"


def random_task(
    workload: Workload,
    random: np.random.Generator,
    targets: RandomTargets,
    devices: int | None = None,
    objective: str | None = None,
) -> Task:
    """A workload on a random machine.

    Args:
        workload: What is computed.
        random: Source of everything random.
        targets: How machines are drawn.
        devices: Number of devices; ``None`` draws it.
        objective: What placements are scored by; ``None`` draws it.
    """
    if objective is None:
        objective = _drawn(targets.objectives, random)
    if devices is None:
        devices = _drawn(targets.devices, random)
    layout = random_layout(devices, objective, targets.copies, targets.lanes, random)
    seconds = _op_seconds(workload, random, targets, layout.kinds)
    true = _with_crossings(workload, seconds, random, targets, objective)
    if random.random() < targets.untyped:
        true = replace(true, op_types=None, output_shapes=None)
    shown = true
    if random.random() < targets.estimate:
        shown = _estimated(workload, true, random, targets)
    limited = dict(targets.limits).get(objective, 0.0)
    if limited and random.random() < limited:
        # Whether a source knows which bytes are results; where it does not, nothing is freed.
        results = workload.output_bytes if random.random() < 0.7 else None
        capacity = drawn_limits(replace(true, result_bytes=results), layout, random)
        shown, true = (replace(t, result_bytes=results, memory_capacity=capacity) for t in (shown, true))
    is_exact = shown is true or shown.source == true.source
    true = layout.laid_out(true)
    return Task(true if is_exact else layout.laid_out(shown), true, workload.family, workload.name, objective)


def _drawn(weighted: Sequence[tuple[_Value, float]], random: np.random.Generator) -> _Value:
    """One of several values, each as often as its weight says."""
    values, weights = zip(*weighted, strict=True)
    if len(values) == 1:
        return cast("_Value", values[0])
    return cast("_Value", values[int(random.choice(len(values), p=np.array(weights) / sum(weights)))])


def _estimated(
    workload: Workload, true: CostTable, random: np.random.Generator, targets: RandomTargets
) -> CostTable:
    """The table as somebody would estimate it who has not measured."""
    _, op_type = np.unique(workload.op_types, return_inverse=True)
    shape = (op_type.max() + 1, true.num_devices)
    error = random.normal(0, targets.estimate_type_error, shape)[op_type]
    error += random.normal(0, targets.estimate_device_error, true.num_devices)
    error += random.normal(0, targets.estimate_op_error, true.op_seconds.shape)
    crossing = np.exp(random.normal(0, 0.3))
    return replace(
        true,
        op_seconds=true.op_seconds * np.exp(error),
        transfer_latency=true.transfer_latency * crossing,
        transfer_seconds_per_byte=true.transfer_seconds_per_byte * crossing,
        source="analytic",
    )


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
    objective: str,
) -> CostTable:
    """The table with transfers that are dear or cheap compared to what single ops can win.

    Where devices take turns that is the difference between them; where they work at once, all that an op
    takes.
    """
    D = seconds.shape[1]
    known = np.where(np.isfinite(seconds), seconds, np.nan)
    least = np.nanmin(known, axis=1)
    gain = float(np.nanmean(np.nanmax(known, axis=1) - least if objective == "hetero" else least))
    typical = max(gain, 1e-9) * 10.0 ** random.uniform(*targets.crossing)
    by_latency = random.uniform(0.1, 1.0)
    moves = ~workload.tensor_is_constant
    mean_bytes = max(float(workload.tensor_bytes[moves].mean()) if moves.any() else 1.0, 1.0)
    pair = np.exp(random.normal(0, 0.4, (2, D, D)))
    pair = 0.5 * (pair + pair.transpose(0, 2, 1)) if random.random() < 0.5 else pair
    launch = typical * random.uniform(0, 0.6) * np.exp(random.normal(0, 0.4, D))
    mix = typical * random.uniform(0, 2) if objective == "overlap" and random.random() < 0.5 else 0.0
    transfers = TransferFit(
        devices=tuple(f"DEVICE{d}" for d in range(D)),
        latency=typical * by_latency * pair[0],
        seconds_per_byte=typical * (1 - by_latency) / mean_bytes * pair[1],
        launch_seconds=launch,
    )
    return replace(workload.table(seconds, transfers), mix_seconds=mix)
