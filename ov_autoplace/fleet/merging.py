"""One measurement out of those of several machines of a kind: medians, how far they agree, and who does not.

The times of an op on a device are the median over the machines, so that what befalls fewer than half of them
changes little. What is no time (which ops are fused, how many nodes were run) is taken from the machine that
is nearest to the median, because it has to fit together.

A machine is an *outlier* if on some device its time for all ops is off the median machine's by more than
25 %, and by more than 4.5 times as far as the median machine is: the usual three standard deviations of a
normal distribution, of which the median deviation is 0.67. Of two machines that disagree nobody can say which
one is right, so both are named. Outliers stay in the median, but no answer is raced on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.machine import KnownCosts
from ov_autoplace.errors import FleetError
from ov_autoplace.fleet.measurement import Measurement
from ov_autoplace.measure.counting import Column, CountedDevices

__all__ = ["Merged", "Spread", "merge", "named_outliers", "outliers_of", "spread_of", "transfers_of"]

_FAR, _DEVIATIONS = 1.25, 4.5


@dataclass(frozen=True)
class Spread:
    """How far machines agree about one device.

    Attributes:
        median_seconds: Time of the model's ops, of the median machine.
        low: Of the fastest machine, over the median.
        high: Of the slowest one.
        per_op: Half of the work is in ops whose times are off their medians by at most this share.
    """

    median_seconds: float
    low: float
    high: float
    per_op: float


@dataclass(frozen=True, eq=False)
class Merged:
    """What the machines of one kind measured together.

    Attributes:
        measurement: The medians.
        machines: Whose measurements these are of.
        spread: By device.
        outliers: What is odd about a machine, by machine; see the head of this file.
        nearest: The machine that is nearest to the median.
    """

    measurement: Measurement
    machines: tuple[str, ...]
    spread: Mapping[str, Spread]
    outliers: Mapping[str, str]
    nearest: str

    @property
    def to_avoid(self) -> tuple[str, ...]:
        """Machines on which no answer shall be raced: none where all are odd."""
        return () if len(self.outliers) == len(self.machines) else tuple(self.outliers)


def merge(measurements: Mapping[str, Measurement]) -> Merged:
    """The measurement of a kind.

    Args:
        measurements: By machine, at least one; all of one model on machines of one kind.

    Raises:
        FleetError: They are about different ops.
    """
    ops = Counter(
        (m.ops, len(m.costs.counted.columns[0].attribution.op_seconds)) for m in measurements.values()
    )
    if len(ops) > 1:
        raise FleetError(
            "machines of one kind see different ops in the model; is one of them of another release? "
            f"({', '.join(measurements)})"
        )
    # A device may fail on some machines: who lacks one that most have says nothing of the others.
    devices = Counter(m.costs.devices for m in measurements.values()).most_common(1)[0][0]
    whole = {machine: m for machine, m in measurements.items() if m.costs.devices == devices}
    odd = {
        machine: "it runs the model on other devices: "
        + ("; ".join(f"{d} {why}" for d, why in m.left_out.items()) or ", ".join(m.costs.devices))
        for machine, m in measurements.items()
        if m.costs.devices != devices
    }
    machines, found = tuple(whole), list(whole.values())
    totals = np.array([[_total(c) for c in m.costs.counted.columns] for m in found])
    outliers = odd | named_outliers(machines, devices, totals)
    distance = np.abs(_log_ratios(totals)).sum(axis=1)
    nearest = int(distance.argmin())
    counted = _counted([m.costs.counted for m in found], nearest)
    costs = KnownCosts(devices, counted, transfers_of([m.costs.transfers for m in found]))
    spread = {
        device: spread_of(
            totals[:, d],
            np.stack([m.costs.counted.columns[d].attribution.op_seconds for m in found]),
        )
        for d, device in enumerate(devices)
    }
    left_out = next(m.left_out for m in found)
    return Merged(
        Measurement(costs, found[0].ops, left_out), tuple(measurements), spread, outliers, machines[nearest]
    )


def named_outliers(machines: Sequence[str], devices: Sequence[str], totals: FloatArray) -> dict[str, str]:
    """What is odd about machines that are far off, by machine.

    Args:
        machines: Names, M.
        devices: Names, D.
        totals: Time of each machine on each device, ``float64[M, D]``.
    """
    found: dict[str, list[str]] = {}
    for d, device in enumerate(devices):
        for i, sentence in outliers_of(totals[:, d]).items():
            found.setdefault(machines[i], []).append(f"{device} {sentence}")
    return {machine: "; ".join(sentences) for machine, sentences in found.items()}


def outliers_of(seconds: FloatArray) -> dict[int, str]:
    """Which machines are far off, by position.

    Args:
        seconds: Time of each machine, ``float64[M]``.
    """
    if len(seconds) < 2 or not (seconds > 0).all():
        return {}
    ratios = _log_ratios(seconds[:, None])[:, 0]
    if len(seconds) == 2:
        if np.ptp(ratios) <= np.log(_FAR):
            return {}
        slower = seconds.max() / seconds.min()
        sentence = f"takes {slower:.2f} times as long on one of two machines as on the other"
        return dict.fromkeys((0, 1), sentence)
    limit = max(np.log(_FAR), _DEVIATIONS * float(np.median(np.abs(ratios))))
    return {
        i: f"takes {np.exp(ratio):.2f} times as long as on the median machine"
        for i, ratio in enumerate(ratios.tolist())
        if abs(ratio) > limit
    }


def spread_of(totals: FloatArray, op_seconds: FloatArray) -> Spread:
    """How far M machines agree about a device.

    Args:
        totals: Time of all ops, ``float64[M]``.
        op_seconds: Time of each of N ops, ``float64[M, N]``.
    """
    median = float(np.median(totals))
    middle = np.median(op_seconds, axis=0)
    off = np.median(np.abs(op_seconds - middle), axis=0) / np.where(middle > 0, middle, 1.0)
    order = np.argsort(off)
    work = np.cumsum(middle[order])
    half = int(np.searchsorted(work, work[-1] / 2)) if len(work) and work[-1] > 0 else -1
    per_op = float(off[order][half]) if half >= 0 else 0.0
    scale = median if median > 0 else 1.0
    return Spread(median, float(totals.min()) / scale, float(totals.max()) / scale, per_op)


def _total(column: Column) -> float:
    """Time of a column's ops; the mean inference where the device tells no times of nodes."""
    return float(column.attribution.op_seconds.sum()) or column.counted_seconds


def _log_ratios(totals: FloatArray) -> FloatArray:
    safe = np.maximum(totals, 1e-12)
    return np.asarray(np.log(safe / np.median(safe, axis=0)))


def _counted(found: Sequence[CountedDevices], nearest: int) -> CountedDevices:
    base = found[nearest]
    columns = [_column([counted.columns[d] for counted in found], nearest) for d in range(len(base.columns))]
    return replace(
        base,
        columns=tuple(columns),
        samples={
            device: _pooled([c.samples[device] for c in found if device in c.samples])
            for device in base.samples
        },
        compile_seconds=float(np.median([c.compile_seconds for c in found])),
        disturbance=float(np.median([c.disturbance for c in found])),
        capacity=frozen_array(np.min([c.capacity for c in found], axis=0), np.float64),
    )


def _column(columns: Sequence[Column], nearest: int) -> Column:
    own = columns[nearest]
    seconds = np.median(np.stack([c.attribution.op_seconds for c in columns]), axis=0)
    return replace(
        own,
        attribution=replace(own.attribution, op_seconds=frozen_array(seconds, np.float64)),
        counted_seconds=float(np.median([c.counted_seconds for c in columns])),
        other_seconds=float(np.median([c.other_seconds for c in columns])),
    )


def _pooled(samples: Sequence[FloatArray]) -> FloatArray:
    """Latencies of all machines, as many of each, so that none outweighs the others."""
    count = min(len(own) for own in samples)
    picked: list[IntArray] = [np.linspace(0, len(own) - 1, count).astype(np.int64) for own in samples]
    return frozen_array(np.concatenate([own[p] for own, p in zip(samples, picked, strict=True)]), np.float64)


def transfers_of(fits: Sequence[TransferFit]) -> TransferFit:
    """Medians of what crossings cost on machines of one kind."""

    def median(name: str) -> FloatArray:
        return frozen_array(np.median(np.stack([getattr(fit, name) for fit in fits]), axis=0), np.float64)

    return TransferFit(
        fits[0].devices, median("latency"), median("seconds_per_byte"), median("launch_seconds")
    )
