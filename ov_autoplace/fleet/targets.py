"""One target profile for each kind of machine: medians of those of its machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.cost.target import DeviceProfile, Rate, Target
from ov_autoplace.cost.target_json import target_of_text
from ov_autoplace.errors import AutoplaceError, FleetError
from ov_autoplace.fleet.merging import Spread, named_outliers, spread_of, transfers_of
from ov_autoplace.fleet.run import FleetRun, Group

__all__ = ["KindTarget", "calibrate_fleet", "merge_targets"]


@dataclass(frozen=True, eq=False)
class KindTarget:
    """The target profile of a kind of machine.

    Attributes:
        group: The machines.
        machines: Names of those that were measured.
        target: ``None`` where none could be; the group says what is missing.
        spread: By device: of the mean time that its kinds of ops take.
        outliers: What is odd about a machine, by machine; see :mod:`ov_autoplace.fleet.merging`.
    """

    group: Group
    machines: tuple[str, ...]
    target: Target | None
    spread: Mapping[str, Spread]
    outliers: Mapping[str, str]


def calibrate_fleet(run: FleetRun, options: Mapping[str, Any], quick: bool) -> list[KindTarget]:
    """Calibrate machines of each kind.

    Args:
        run: The machines.
        options: The placer's, as JSON values.
        quick: Fewer sizes and repetitions.
    """
    requests = {
        name: {"devices": list(group.kind.devices), "options": dict(options), "quick": quick}
        for name, group in run.groups.items()
    }
    answers = run.on_each("calibrate", "ov_autoplace.fleet.on_machine:calibrate", requests)
    result = []
    for name, group in run.groups.items():
        found: dict[str, Target] = {}
        for machine, answer in answers.get(name, {}).items():
            try:
                found[machine] = target_of_text(str(answer.get("target", "")), "its answer")
            except AutoplaceError as cause:
                group.missing.append(f"calibrate: {machine}: {cause}")
        if not found:
            result.append(KindTarget(group, (), None, {}, {}))
            continue
        devices = next(iter(found.values())).device_names
        per_op = [np.stack([_op_seconds(t.device(device)) for t in found.values()]) for device in devices]
        totals = np.stack([seconds.mean(axis=1) for seconds in per_op], axis=1)
        result.append(
            KindTarget(
                group,
                tuple(found),
                merge_targets(name, list(found.values())),
                {device: spread_of(totals[:, d], per_op[d]) for d, device in enumerate(devices)},
                named_outliers(tuple(found), devices, totals),
            )
        )
    return result


def merge_targets(name: str, targets: Sequence[Target]) -> Target:
    """Medians of the profiles of machines of one kind; raw samples stay with each machine's own profile.

    Args:
        name: What to call it.
        targets: At least one.

    Raises:
        FleetError: They were measured at different sizes or precisions.
    """
    first = targets[0]
    devices = []
    for d, device in enumerate(first.devices):
        own = [target.devices[d] for target in targets]
        devices.append(
            replace(
                device,
                rates=tuple(_rate([_same(o, rate) for o in own]) for rate in device.rates),
                op_overhead_seconds=float(np.median([o.op_overhead_seconds for o in own])),
                synchronisation_seconds=float(np.median([o.synchronisation_seconds for o in own])),
                memory_bytes=min(o.memory_bytes for o in own),
            )
        )
    transfers = transfers_of([target.transfers for target in targets])
    return replace(first, name=name, devices=tuple(devices), transfers=transfers, samples=())


def _same(device: DeviceProfile, rate: Rate) -> Rate:
    """The rate of another machine's device at the same class, precision and sizes."""
    for other in device.rates:
        if (other.op_class, other.precision) == (rate.op_class, rate.precision):
            if np.array_equal(other.sizes, rate.sizes):
                return other
            break
    raise FleetError(
        f"machines of one kind measured {rate.op_class} on {device.name} in {rate.precision} "
        "at different sizes"
    )


def _rate(rates: Sequence[Rate]) -> Rate:
    speeds = np.median(np.stack([rate.per_second for rate in rates]), axis=0)
    return replace(rates[0], per_second=frozen_array(speeds, np.float64))


def _op_seconds(device: DeviceProfile) -> FloatArray:
    """Time of an op of each class at each size, in the device's own precision, ``float64[n]``."""
    own = [rate for rate in device.rates if rate.precision == device.precision]
    return np.concatenate([rate.sizes / rate.per_second for rate in own])
