"""What operations were measured to take on the devices of one kind of machine, as one file.

A file is an ``.npz`` without pickled objects. It holds N networks, S settings of devices, and M measurements,
each of one network on one setting. It knows nothing of the features that a network of costs sees, so that
those may change without measuring anew. Values of all networks (or measurements) follow each other in one
array, and ``FIELD.sizes`` says how many belong to each.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace._base.files import read_arrays, write_atomically
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.target import DeviceProfile, Target
from ov_autoplace.cost.target_json import target_of_text, target_text
from ov_autoplace.errors import TrainingError

__all__ = ["CostSamples", "Known", "Measurement", "Network", "Setting"]

_SCHEMA = 1
_NETWORK = {
    "op_types": np.str_,
    "precisions": np.str_,
    "flops": np.float32,
    "weight_bytes": np.float32,
    "input_bytes": np.float32,
    "output_bytes": np.float32,
    "steps": np.int32,
    "ranks": np.int32,
    "dims": np.int32,
    "edges": np.int32,
}
_MEASUREMENT = {"kernel_of": np.int32, "kernel_seconds": np.float32, "kernel_nodes": np.int32}
_ONE_EACH = ("network", "setting", "seconds", "spread")

Known = list[tuple[DeviceProfile, float]]
"""Devices as they may be known, and the seconds of a launch on each."""


@dataclass(frozen=True, eq=False)
class Network:
    """A network whose ops were measured.

    Attributes:
        name: Unique in a file.
        family: Which kind of network it is; what is held out is held out by family.
        ops: The N ops that run.
    """

    name: str
    family: str
    ops: OpGraph


@dataclass(frozen=True, eq=False)
class Setting:
    """A device as it was set up when networks were measured on it.

    Attributes:
        name: What to call it, like ``CPU, 2 threads, bf16``.
        device: The device without what was set; the same for all settings of one device. What follows a
            semicolon tells the hour, where a device was measured in several.
        targets: What is known of it: as it was calibrated, and as it tells of itself.
        reference_seconds: What a reference model took when it was calibrated. Measurements are as long as
            they would have been then, by what the same model took beside them. 0 = none ran beside them.
    """

    name: str
    device: str
    targets: tuple[Target, ...]
    reference_seconds: float

    @property
    def without_hour(self) -> tuple[str, str, int]:
        """Device, precision and threads, the same in all hours."""
        profile = self.targets[0].devices[0]
        return self.device.partition(";")[0], profile.precision, profile.threads


@dataclass(frozen=True, eq=False)
class Measurement:
    """One network on one setting.

    Attributes:
        network, setting: Positions in the file.
        seconds: Of an inference, undisturbed.
        spread: Relative distance of the upper from the lower quartile of its samples.
        kernel_of: Which of K kernels computes each op, ``int32[N]``; -1 = none that was seen.
        kernel_seconds: Times of the kernels, ``float64[K]``, which add up to ``seconds`` without the launch.
        kernel_nodes: Nodes that the device ran for each, ``int32[K]``.
    """

    network: int
    setting: int
    seconds: float
    spread: float
    kernel_of: IntArray
    kernel_seconds: FloatArray
    kernel_nodes: IntArray


@dataclass(frozen=True, eq=False)
class CostSamples:
    """All that a file holds."""

    networks: tuple[Network, ...] = ()
    settings: tuple[Setting, ...] = ()
    measurements: tuple[Measurement, ...] = ()

    @cached_property
    def known(self) -> tuple[Known, ...]:
        """By setting, what a user may know of its device, and of the seconds of a launch there.

        That is what its targets say; and where other settings are of the same device and precision on more
        threads, what follows from those for fewer threads. A calibration tells of its own hour, and is
        brought to the fastest one as measurements are in :attr:`comparable`.
        """
        return tuple(map(self._known_of, range(len(self.settings))))

    def _known_of(self, setting: int) -> Known:
        own = self.settings[setting].targets[0].devices[0]
        device = self.settings[setting].device
        known = self._told_of(setting)
        threads = {
            s: other.targets[0].devices[0].threads
            for s, other in enumerate(self.settings)
            if (other.device, other.targets[0].devices[0].precision) == (device, own.precision)
        }
        widest = max(threads, key=lambda s: threads[s])
        if threads[widest] > own.threads:
            known += [(wide.on_threads(own.threads), launch) for wide, launch in self._told_of(widest)]
        return known

    def _told_of(self, setting: int) -> Known:
        """What the targets of a setting say."""
        calibrated, *others = self.settings[setting].targets
        targets = [calibrated.slower(self._fastest_hour[setting]), *others]
        return [(target.devices[0], float(target.transfers.launch_seconds[0])) for target in targets]

    @cached_property
    def _fastest_hour(self) -> tuple[float, ...]:
        """By setting, which share of its time anything takes in the fastest hour of its device.

        A shared machine is slower in one hour than in another, by what the reference model took when each
        setting was calibrated. Nothing is known of a setting without a reference.
        """
        fastest: dict[tuple[str, str, int], float] = {}
        for setting in self.settings:
            if setting.reference_seconds:
                own = fastest.get(setting.without_hour, setting.reference_seconds)
                fastest[setting.without_hour] = min(own, setting.reference_seconds)
        return tuple(
            fastest[s.without_hour] / s.reference_seconds if s.reference_seconds else 1.0
            for s in self.settings
        )

    @cached_property
    def comparable(self) -> tuple[Measurement, ...]:
        """All measurements, as long as they would have been in the fastest hour of their device."""
        share = self._fastest_hour
        return tuple(
            replace(
                m,
                seconds=share[m.setting] * m.seconds,
                kernel_seconds=frozen_array(share[m.setting] * m.kernel_seconds, np.float64),
            )
            for m in self.measurements
        )

    @property
    def undisturbed(self) -> tuple[Measurement, ...]:
        """The fastest of :attr:`comparable` for each network on each device as it was set up, of all hours.

        Other work on the machine only makes networks slower, and may last longer than a measurement.
        """
        fastest: dict[tuple[int, tuple[str, str, int]], Measurement] = {}
        for m in self.comparable:
            own = m.network, self.settings[m.setting].without_hour
            if own not in fastest or m.seconds < fastest[own].seconds:
                fastest[own] = m
        return tuple(fastest.values())

    @property
    def names(self) -> frozenset[str]:
        """Names of the networks."""
        return frozenset(network.name for network in self.networks)

    def part(self, keep: Callable[[Network], bool]) -> CostSamples:
        """The measurements of some of the networks."""
        kept = [n for n, network in enumerate(self.networks) if keep(network)]
        position = {n: i for i, n in enumerate(kept)}
        return CostSamples(
            tuple(self.networks[n] for n in kept),
            self.settings,
            tuple(
                replace(m, network=position[m.network]) for m in self.measurements if m.network in position
            ),
        )

    def save(self, path: str | Path) -> None:
        """Write the file.

        Raises:
            OutputError: It cannot be written.
        """
        graphs = [_fields(network.ops) for network in self.networks]
        arrays: dict[str, NDArray[Any]] = {
            "schema": np.array(_SCHEMA),
            "names": np.array([network.name for network in self.networks], dtype=np.str_),
            "families": np.array([network.family for network in self.networks], dtype=np.str_),
            "settings": np.array([setting.name for setting in self.settings], dtype=np.str_),
            "devices": np.array([setting.device for setting in self.settings], dtype=np.str_),
            "reference_seconds": np.array([s.reference_seconds for s in self.settings], dtype=np.float64),
            "targets": np.array([target_text(t) for s in self.settings for t in s.targets], dtype=np.str_),
            "targets.sizes": np.array([len(setting.targets) for setting in self.settings], dtype=np.int64),
        }
        for field, dtype in _NETWORK.items():
            arrays |= _joined(field, [graph[field] for graph in graphs], dtype)
        for field, dtype in _MEASUREMENT.items():
            arrays |= _joined(field, [getattr(m, field) for m in self.measurements], dtype)
        for field in _ONE_EACH:
            arrays[field] = np.array([getattr(m, field) for m in self.measurements])
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        write_atomically(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> CostSamples:
        """Read a file.

        Raises:
            TrainingError: It is no such file, or contradicts itself.
        """
        try:
            arrays = read_arrays(path)
            return cls._of(arrays)
        except (KeyError, ValueError, IndexError) as cause:
            raise TrainingError(f"{path} holds no costs that were collected: {cause}") from cause

    @classmethod
    def _of(cls, arrays: dict[str, NDArray[Any]]) -> CostSamples:
        if int(arrays["schema"]) != _SCHEMA:
            raise ValueError(f"its version is {arrays['schema']}, and this package reads {_SCHEMA}")
        parts = {field: _parts(arrays, field) for field in (*_NETWORK, *_MEASUREMENT, "targets")}
        networks = tuple(
            Network(str(name), str(family), _graph({field: parts[field][i] for field in _NETWORK}))
            for i, (name, family) in enumerate(zip(arrays["names"], arrays["families"], strict=True))
        )
        names = [str(name) for name in arrays["settings"]]
        targets = [
            tuple(target_of_text(str(text), name) for text in texts)
            for name, texts in zip(names, parts["targets"], strict=True)
        ]
        devices, references = map(str, arrays["devices"]), map(float, arrays["reference_seconds"])
        settings = tuple(Setting(*one) for one in zip(names, devices, targets, references, strict=True))
        measurements = tuple(
            Measurement(
                int(arrays["network"][i]),
                int(arrays["setting"][i]),
                float(arrays["seconds"][i]),
                float(arrays["spread"][i]),
                frozen_array(parts["kernel_of"][i], np.int32),
                frozen_array(parts["kernel_seconds"][i], np.float64),
                frozen_array(parts["kernel_nodes"][i], np.int32),
            )
            for i in range(len(arrays["network"]))
        )
        return cls(networks, settings, measurements)


def _fields(ops: OpGraph) -> dict[str, NDArray[Any]]:
    ranks = [len(shape) for shape in ops.shapes]
    dims = [dim for shape in ops.shapes for dim in shape]
    return {
        "op_types": np.array(ops.op_types, dtype=np.str_),
        "precisions": np.array(ops.precisions, dtype=np.str_),
        "ranks": np.array(ranks),
        "dims": np.array(dims),
        "edges": ops.edges.ravel(),
        **{
            field: getattr(ops, field)
            for field in ("flops", "weight_bytes", "input_bytes", "output_bytes", "steps")
        },
    }


def _graph(fields: dict[str, NDArray[Any]]) -> OpGraph:
    if (fields["dims"] < 0).any():
        raise ValueError("a tensor's size is not known")
    shapes = np.split(fields["dims"], np.cumsum(fields["ranks"])[:-1])
    return OpGraph(
        op_types=tuple(map(str, fields["op_types"])),
        precisions=tuple(map(str, fields["precisions"])),
        shapes=tuple(tuple(shape.tolist()) for shape in shapes),
        edges=frozen_array(fields["edges"].reshape(-1, 2), np.int32),
        steps=frozen_array(fields["steps"], np.int32),
        **{
            field: frozen_array(fields[field], np.float64)
            for field in ("flops", "weight_bytes", "input_bytes", "output_bytes")
        },
    )


def _joined(field: str, parts: Sequence[NDArray[Any]], dtype: Any) -> dict[str, NDArray[Any]]:
    values = np.concatenate([np.asarray(part) for part in parts]) if parts else np.empty(0)
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    return {field: values.astype(dtype), f"{field}.sizes": sizes}


def _parts(arrays: dict[str, NDArray[Any]], field: str) -> list[NDArray[Any]]:
    sizes = arrays[f"{field}.sizes"]
    if int(sizes.sum()) != len(arrays[field]):
        raise ValueError(f"{field} has {len(arrays[field])} values, and {int(sizes.sum())} are counted")
    return np.split(arrays[field], np.cumsum(sizes)[:-1]) if len(sizes) else []
