"""What one machine measured of a model, as arrays and as the JSON in which it crosses the network."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace._base.json_fields import Record
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.machine import KnownCosts
from ov_autoplace.errors import FleetError
from ov_autoplace.measure.attribution import Attribution
from ov_autoplace.measure.counting import Column, CountedDevices
from ov_autoplace.plan.lane import Form

__all__ = ["Measurement", "names_digest"]

_MOST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Measurement:
    """What one machine, or several of one kind together, measured of a model.

    Attributes:
        costs: Of its nodes, and of crossings.
        ops: Digest of the names of the N ops in their order, which tells whether two are about the same.
        left_out: Why a device of the machine takes no part, by device.
    """

    costs: KnownCosts
    ops: str
    left_out: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which :meth:`from_dict` reads."""
        counted, transfers = self.costs.counted, self.costs.transfers
        return {
            "ops": self.ops,
            "devices": list(self.costs.devices),
            "columns": [_column_values(column) for column in counted.columns],
            "samples": {device: values.tolist() for device, values in counted.samples.items()},
            "compile_seconds": counted.compile_seconds,
            "disturbance": counted.disturbance,
            "capacity": [value if math.isfinite(value) else None for value in counted.capacity.tolist()],
            "emulation": counted.emulation,
            "transfers": {
                "latency": transfers.latency.tolist(),
                "seconds_per_byte": transfers.seconds_per_byte.tolist(),
                "launch_seconds": transfers.launch_seconds.tolist(),
            },
            "left_out": dict(self.left_out),
        }

    @classmethod
    def from_dict(cls, data: object, where: str) -> Measurement:
        """Read what :meth:`to_dict` made.

        Args:
            data: Parsed JSON.
            where: Whose it is, for error sentences.

        Raises:
            FleetError: It is nothing of the kind.
        """
        top = Record.of(data, f"the measurement of {where}", FleetError)
        devices, transfers = top.texts("devices"), top.record("transfers")
        D = len(devices)
        columns = [_column(record) for record in top.records("columns", "device")]
        if not D or len(columns) != D or len({len(c.attribution.op_seconds) for c in columns}) != 1:
            raise FleetError(
                f"the measurement of {where} does not have as many times for each of its devices"
            )
        samples, left_out = top.record("samples"), top.record("left_out")
        if not set(samples.fields) <= set(devices):
            raise FleetError(f"the measurement of {where} has latencies of devices that it does not name")
        counted = CountedDevices(
            tuple(columns),
            {device: _floats(samples.numbers(device)) for device in samples.fields},
            top.number("compile_seconds"),
            top.number("disturbance"),
            _floats(top.numbers("capacity", D, null=math.inf)),
            top.text("emulation"),
        )
        fit = TransferFit(
            devices,
            _floats(transfers.matrix("latency", D, D)),
            _floats(transfers.matrix("seconds_per_byte", D, D)),
            _floats(transfers.numbers("launch_seconds", D)),
        )
        reasons = {device: left_out.text(device) for device in left_out.fields}
        return cls(KnownCosts(devices, counted, fit), top.text("ops"), reasons)


def names_digest(names: Sequence[str]) -> str:
    """Equal for equal names in equal order."""
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()


def _column_values(column: Column) -> dict[str, Any]:
    own = column.attribution
    return {
        "op_seconds": own.op_seconds.tolist(),
        "nodes_run": own.nodes_run.tolist(),
        "fused": [list(group) for group in own.fused],
        "unassigned_seconds": own.unassigned_seconds,
        "forms": {name: str(form) for name, form in own.forms.items()},
        "counted_seconds": column.counted_seconds,
        "subgraphs": column.subgraphs,
        "other_seconds": max(column.other_seconds, 0.0),
        "other_nodes": max(column.other_nodes, 0),
    }


def _column(record: Record) -> Column:
    seconds = _floats(record.numbers("op_seconds"))
    nodes_run = record.integers("nodes_run", 0, _MOST)
    if len(nodes_run) != len(seconds):
        raise FleetError(f"{record.where}: it counts nodes of {len(nodes_run)} ops, and times {len(seconds)}")
    fused = [Record({"ops": group}, record.where, FleetError).texts("ops") for group in record.items("fused")]
    forms = record.record("forms")
    attribution = Attribution(
        seconds,
        frozen_array(nodes_run, np.int32),
        tuple(fused),
        record.number("unassigned_seconds"),
        {name: Form.parse(forms.text(name)) for name in forms.fields},
    )
    return Column(
        attribution,
        record.number("counted_seconds"),
        record.integer("subgraphs", 0, _MOST),
        record.number("other_seconds"),
        record.integer("other_nodes", 0, _MOST),
    )


def _floats(values: Sequence[Any]) -> Any:
    return frozen_array(np.array(values, dtype=np.float64), np.float64)
