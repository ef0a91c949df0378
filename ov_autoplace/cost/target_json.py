"""Target profiles as JSON.

Schema (version 1)::

    {"schema": "ov-autoplace/target", "version": 1, "name": str, "openvino": str, "created": "2026-11-20",
     "fingerprint": str,
     "devices": [{"name": str, "full_name": str, "precision": "f32",
                  "op_overhead_seconds": number, "memory_bytes": number | null,
                  "sources": {"op_overhead_seconds": str, "memory_bytes": str, ...},
                  "threads": int, "synchronisation_seconds": number,         both may be missing
                  "factors": {"matmul": number, ...},                        may be missing
                  "generation": str,                                         may be missing
                  "rates": [{"op_class": str, "precision": str, "sizes": [number, ...],
                             "per_second": [number, ...], "source": str}, ...]}, ...],
     "transfers": {"source": str, "launch_seconds": [number, ...],            D
                   "latency": [[number, ...], ...],                           D x D, from row to column
                   "seconds_per_byte": [[number, ...], ...],
                   "samples": [{"devices": [str, ...], "tensor_bytes": int, "seconds": [number, ...]}, ...]},
     "samples": [{"device": str, "op_class": str, "precision": str, "size": number,
                  "ops": int, "seconds": [number, ...]}, ...]}

``memory_bytes`` null is "not limited"; ``threads`` 0 or missing is "not known". Both lists of samples
are the raw measurements, empty when nothing was measured.
"""

from __future__ import annotations

import json
import math
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.files import write_text_atomically
from ov_autoplace._base.json_fields import Record, json_of, naming, read_json
from ov_autoplace.cost.target import DeviceProfile, Rate, RateSample, Target
from ov_autoplace.cost.transfers import TransferFit, TransferSample
from ov_autoplace.errors import TargetError

__all__ = ["SCHEMA", "VERSION", "catalogue", "load_target", "save_target", "target_of_text", "target_text"]

SCHEMA = "ov-autoplace/target"
VERSION = 1
_WHAT = "a target profile"


def save_target(target: Target, path: str | Path) -> None:
    """Write ``target`` to ``path``.

    Raises:
        OutputError: The file cannot be written.
    """
    write_text_atomically(path, target_text(target))


def target_text(target: Target) -> str:
    """A profile as JSON."""
    transfers = target.transfers
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "name": target.name,
        "openvino": target.openvino,
        "created": target.created,
        "fingerprint": target.fingerprint,
        "devices": [_device_fields(device) for device in target.devices],
        "transfers": {
            "source": target.transfers_source,
            "launch_seconds": transfers.launch_seconds.tolist(),
            "latency": transfers.latency.tolist(),
            "seconds_per_byte": transfers.seconds_per_byte.tolist(),
            "samples": [
                {"devices": s.devices, "tensor_bytes": s.tensor_bytes, "seconds": s.seconds.tolist()}
                for s in transfers.samples
            ],
        },
        "samples": [
            {
                "device": s.device,
                "op_class": s.op_class,
                "precision": s.precision,
                "size": s.size,
                "ops": s.ops,
                "seconds": s.seconds.tolist(),
            }
            for s in target.samples
        ],
    }
    return _dumps(document) + "\n"


def catalogue() -> tuple[str, ...]:
    """Names of the machines that the package knows from public figures."""
    return tuple(sorted(path.stem for path in _catalogue_folder().glob("*.json")))


def load_target(source: str | Path) -> Target:
    """Read a target profile.

    Args:
        source: A name of :func:`catalogue`, or a file that :func:`save_target` wrote.

    Raises:
        TargetError: There is no such profile, or the file is no target profile, has another version, or
            contradicts itself.
    """
    path = target_path(source)
    if not path.exists():
        raise TargetError(
            f"there is no target profile {str(source)!r}: no such file, and the catalogue has "
            f"{', '.join(catalogue())}"
        )
    return _target(read_json(path, TargetError, _WHAT), str(path))


def target_path(source: str | Path) -> Path:
    """The file that :func:`load_target` reads, which need not be there."""
    return _catalogue_folder() / f"{source}.json" if str(source) in catalogue() else Path(source)


def target_of_text(text: str, where: str) -> Target:
    """The profile of a text that :func:`target_text` made.

    Args:
        text: JSON.
        where: Where it is from, for error sentences.

    Raises:
        TargetError: As :func:`load_target` raises it.
    """
    return _target(json_of(text, where, TargetError, _WHAT), where)


def _target(data: object, where: str) -> Target:
    top = Record.of(data, where, TargetError)
    top.require_schema(SCHEMA, VERSION)
    with naming(where, TargetError):
        devices = tuple(_device(record) for record in top.records("devices", "device"))
        transfers = top.record("transfers")
        return Target(
            name=top.text("name"),
            openvino=top.text("openvino"),
            created=top.text("created"),
            fingerprint=top.text("fingerprint"),
            devices=devices,
            transfers=_transfers(transfers, tuple(device.name for device in devices)),
            transfers_source=transfers.text("source"),
            samples=tuple(_rate_sample(record) for record in top.records("samples", "sample")),
        )


def _device_fields(device: DeviceProfile) -> dict[str, Any]:
    return {
        "name": device.name,
        "full_name": device.full_name,
        "precision": device.precision,
        "op_overhead_seconds": device.op_overhead_seconds,
        "memory_bytes": device.memory_bytes if math.isfinite(device.memory_bytes) else None,
        "sources": dict(device.sources),
        **_thread_fields(device),
        **({"factors": dict(device.factors)} if device.factors else {}),
        **({"generation": device.generation} if device.generation else {}),
        "rates": [
            {
                "op_class": rate.op_class,
                "precision": rate.precision,
                "sizes": rate.sizes.tolist(),
                "per_second": rate.per_second.tolist(),
                "source": rate.source,
            }
            for rate in device.rates
        ],
    }


def _thread_fields(device: DeviceProfile) -> dict[str, Any]:
    if not device.threads:
        return {}
    return {"threads": device.threads, "synchronisation_seconds": device.synchronisation_seconds}


def _device(record: Record) -> DeviceProfile:
    sources = record.record("sources")
    return DeviceProfile(
        name=record.text("name"),
        full_name=record.text("full_name"),
        precision=record.text("precision"),
        rates=tuple(
            Rate(
                op_class=rate.text("op_class"),
                precision=rate.text("precision"),
                sizes=_floats(rate.numbers("sizes")),
                per_second=_floats(rate.numbers("per_second")),
                source=rate.text("source"),
            )
            for rate in record.records("rates", "rate")
        ),
        op_overhead_seconds=record.number("op_overhead_seconds"),
        memory_bytes=record.number("memory_bytes", null=math.inf),
        sources={key: sources.text(key) for key in sources.fields},
        # Who writes a profile by hand, or from data sheets, may not know them.
        threads=record.integer("threads", 0, 2**20) if "threads" in record.fields else 0,
        synchronisation_seconds=(
            record.number("synchronisation_seconds") if "synchronisation_seconds" in record.fields else 0.0
        ),
        factors=_factors(record.record("factors")) if "factors" in record.fields else {},
        generation=record.text("generation") if "generation" in record.fields else "",
    )


def _factors(record: Record) -> dict[str, float]:
    return {op_class: record.number(op_class) for op_class in record.fields}


def _transfers(record: Record, devices: tuple[str, ...]) -> TransferFit:
    D = len(devices)
    return TransferFit(
        devices=devices,
        latency=_floats(record.matrix("latency", D, D)),
        seconds_per_byte=_floats(record.matrix("seconds_per_byte", D, D)),
        launch_seconds=_floats(record.numbers("launch_seconds", D)),
        samples=tuple(
            TransferSample(
                devices=sample.texts("devices"),
                tensor_bytes=sample.integer("tensor_bytes", 0, 2**63),
                seconds=_floats(sample.numbers("seconds")),
            )
            for sample in record.records("samples", "sample")
        ),
    )


def _rate_sample(record: Record) -> RateSample:
    return RateSample(
        device=record.text("device"),
        op_class=record.text("op_class"),
        precision=record.text("precision"),
        size=record.number("size"),
        ops=record.integer("ops", 1, 2**31),
        seconds=_floats(record.numbers("seconds")),
    )


def _floats(values: list[float] | list[list[float]]) -> FloatArray:
    return frozen_array(np.array(values, dtype=np.float64), np.float64)


def _dumps(value: Any, indent: int = 0) -> str:
    """JSON with an object per line where it holds nothing but plain values, else a field per line."""
    flat = json.dumps(value, allow_nan=False)
    nested = isinstance(value, dict) and any(_holds_objects(item) for item in value.values())
    listed = isinstance(value, list) and _holds_objects(value)
    if not nested and not listed:
        return flat
    inner = "\n" + " " * (indent + 1)
    if isinstance(value, dict):
        fields = (f"{json.dumps(key)}: {_dumps(item, indent + 1)}" for key, item in value.items())
        return "{" + inner + ("," + inner).join(fields) + "\n" + " " * indent + "}"
    return (
        "["
        + inner
        + ("," + inner).join(_dumps(item, indent + 1) for item in value)
        + "\n"
        + " " * indent
        + "]"
    )


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(i, dict) for i in value))


def _catalogue_folder() -> Path:
    return Path(str(resources.files("ov_autoplace.cost.catalogue")))
