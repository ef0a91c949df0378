"""Measured transfers, kept in the user's cache folder: they hold for a machine and its drivers.

An entry is a file ``transfers-<key>.json``. The key is a hash of everything that transfers depend on, which
the entry holds as text too: devices with their full names, plugin builds and drivers, their properties,
OpenVINO, this package, the processors that the process may use. Entries hold raw samples, and grow: a
decision that has time for two sizes of tensors measures two, and a later one adds others.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace._base.files import make_folder, write_text_atomically
from ov_autoplace._base.json_fields import Record
from ov_autoplace._base.user_cache import user_cache_folder
from ov_autoplace.cost.transfers import TransferFit, TransferSample
from ov_autoplace.devices.conditions import measuring_conditions
from ov_autoplace.devices.names import CACHE_PROPERTIES, device_settings
from ov_autoplace.errors import AutoplaceError, TargetError
from ov_autoplace.measure.transfers import DEFAULT_SIZES, fit_transfers

__all__ = ["FEWEST_SIZES", "SIZES", "StoredTransfers", "TransferStore", "stored_transfers"]

_log = logging.getLogger("ov_autoplace")

_SCHEMA, _VERSION = "ov-autoplace/transfers", 1

SIZES = tuple(DEFAULT_SIZES[i] for i in (0, 4, 2, 5, 1, 3))
"""Bytes of tensors in the order of measuring: any two and more from the start tell latency from bandwidth."""

FEWEST_SIZES = 2

# What was measured in this process, for machines on which no file can be written.
_of_this_process: dict[str, tuple[TransferSample, ...]] = {}


@dataclass(frozen=True, eq=False)
class StoredTransfers:
    """One entry.

    Attributes:
        path: Its file.
        conditions: What it holds for, a line each.
        devices: Device names.
        settings: Their properties, in which they differ from a new Core's, as text.
        samples: What was measured.
    """

    path: Path
    conditions: tuple[str, ...]
    devices: tuple[str, ...]
    settings: Mapping[str, Mapping[str, str]]
    samples: tuple[TransferSample, ...]

    @classmethod
    def load(cls, path: Path) -> StoredTransfers:
        """Read a file of the store.

        Raises:
            TargetError: It is none, is damaged, or was written by another version.
        """
        top = Record.load(path, TargetError, "stored transfer costs")
        top.require_schema(_SCHEMA, _VERSION)
        devices = top.texts("devices")
        samples = tuple(_sample(record, devices) for record in top.records("samples", "sample"))
        own = top.record("settings")
        records = {device: own.record(device) for device in devices}
        settings = {d: {key: record.text(key) for key in record.fields} for d, record in records.items()}
        return cls(path, top.texts("conditions"), devices, settings, samples)

    def save(self) -> None:
        """Write the file, and the folder where it is missing.

        Raises:
            OutputError: That is not possible.
        """
        document = {
            "schema": _SCHEMA,
            "version": _VERSION,
            "conditions": self.conditions,
            "devices": self.devices,
            "settings": self.settings,
            "samples": [
                {"devices": s.devices, "tensor_bytes": s.tensor_bytes, "seconds": s.seconds.tolist()}
                for s in self.samples
            ],
        }
        make_folder(self.path.parent)
        write_text_atomically(self.path, json.dumps(document, allow_nan=False) + "\n")


class TransferStore:
    """The entry for some devices of a Core, with some properties, on this machine.

    Args:
        core: Knows the devices.
        devices: Device names.
        properties: OpenVINO properties per device.
        memory: What was measured in this process, by key.
    """

    def __init__(
        self,
        core: ov.Core,
        devices: Sequence[str],
        properties: Mapping[str, Mapping[str, Any]],
        memory: dict[str, tuple[TransferSample, ...]] = _of_this_process,
    ) -> None:
        self._memory = memory
        self._devices = tuple(devices)
        self._settings = {
            device: {key: value for key, value in own.items() if key not in CACHE_PROPERTIES}
            for device, own in device_settings(core, devices, properties).items()
        }
        self._conditions = measuring_conditions(core, devices, properties)
        self._key = hashlib.sha256("\n".join(self._conditions).encode()).hexdigest()[:32]
        folder = user_cache_folder()
        self._path = None if folder is None else folder / f"transfers-{self._key}.json"

    def samples(self) -> tuple[TransferSample, ...]:
        """What is known, in this process or from an earlier one."""
        known = self._memory.get(self._key, ())
        if not self.missing(known) or self._path is None or not self._path.exists():
            return known
        try:
            entry = StoredTransfers.load(self._path)
        except TargetError as cause:
            _log.debug("%s is not used and will be replaced: %s", self._path, cause)
            return known
        if entry.conditions != self._conditions or entry.devices != self._devices:
            return known
        self._memory[self._key] = _merged(known, entry.samples)
        return self._memory[self._key]

    def add(self, samples: Sequence[TransferSample]) -> None:
        """Keep samples besides those that are known; a folder that cannot be written costs nothing."""
        known = self._memory[self._key] = _merged(self.samples(), samples)
        if self._path is None:
            return
        try:
            StoredTransfers(self._path, self._conditions, self._devices, self._settings, known).save()
        except AutoplaceError as cause:
            _log.debug("transfer costs are not kept: %s", cause)

    def missing(self, samples: Sequence[TransferSample]) -> list[tuple[tuple[str, str], int]]:
        """Pairs of devices and sizes that were not measured, in the order in which to measure them."""
        pairs = list(combinations(self._devices, 2))
        return [(pair, size) for size in SIZES for pair in pairs if not _has(samples, pair, size)]

    def fit(self, samples: Sequence[TransferSample]) -> TransferFit | None:
        """Costs, or ``None`` while a pair lacks the two sizes that tell latency from bandwidth."""
        pairs = list(combinations(self._devices, 2))
        sizes = [size for size in SIZES if all(_has(samples, pair, size) for pair in pairs)]
        if len(sizes) < FEWEST_SIZES and pairs:
            return None
        return fit_transfers(self._devices, [s for s in samples if s.tensor_bytes in sizes])


def stored_transfers() -> Iterator[Path]:
    """Files of all entries."""
    folder = user_cache_folder()
    if folder is not None and folder.is_dir():
        yield from sorted(folder.glob("transfers-*.json"))


def _has(samples: Sequence[TransferSample], pair: tuple[str, str], size: int) -> bool:
    return any(s.tensor_bytes == size and set(s.devices) == set(pair) for s in samples)


def _merged(first: Sequence[TransferSample], second: Sequence[TransferSample]) -> tuple[TransferSample, ...]:
    """All samples, each placement of a size once; what was measured last counts."""
    return tuple({(s.devices, s.tensor_bytes): s for s in (*first, *second)}.values())


def _sample(record: Record, devices: Sequence[str]) -> TransferSample:
    placed = record.texts("devices")
    seconds = np.array(record.numbers("seconds"), dtype=np.float64)
    if (
        not set(placed) <= set(devices)
        or not len(seconds)
        or not (np.isfinite(seconds) & (seconds > 0)).all()
    ):
        raise TargetError(f"{record.where} is no measurement on {', '.join(devices)}")
    return TransferSample(placed, record.integer("tensor_bytes", 1, 2**63), frozen_array(seconds, np.float64))
