"""Cost tables as JSON: one line per device, group and tensor, so that two tables can be compared by eye.

Schema (version 1)::

    {"schema": "ov-autoplace/cost-table", "version": 1, "source": "profiled",
     "devices": [{"name": str, "launch_seconds": number, "memory_capacity": number | null,
                  "lane_of": str?}, ...],                    the device, where the name is that of a lane
     "transfer_latency": [[seconds, ...], ...],              D x D, from row to column
     "transfer_seconds_per_byte": [[seconds, ...], ...],     D x D
     "mix_seconds": number?,                                 0 where it is missing
     "corun_factor": number?,                                1 where it is missing
     "doubt": number?,                                       1 where it is missing
     "groups": [{"name": str, "op_seconds": [number | null, ...], "memory_bytes": number,
                 "result_bytes": number?, "op_type": str?, "output_shape": [int, ...]?, "colocation": int?,
                 "members": [str, ...]?}, ...],
     "tensors": [{"producer": group index, "bytes": number, "consumers": [group index, ...],
                  "constant": true?, "uncuttable": true?}, ...],
     "wiring": {"node_group": [int, ...], "node_kind": [int, ...],
                "tensor_producer": [int, ...], "tensor_bytes": [number, ...],
                "tensor_consumers": [[int, ...], ...], "bonds": [[int, int], ...],
                "links": [[int, int, int], ...]?}?}

A null is an infinity: of ``op_seconds`` "cannot run there", of ``memory_capacity`` "not limited".
``result_bytes``, ``op_type``, ``output_shape``, ``colocation`` and ``members`` are given for every group or
for none, ``lane_of`` for every device or for none. Sizes follow from the lists themselves, so a file cannot
ask for more memory than its own length. Numbers survive bit by bit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace._base.files import write_text_atomically
from ov_autoplace._base.json_fields import Record, json_of, naming, read_json
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.wiring import Wiring
from ov_autoplace.errors import CostTableError

__all__ = ["SCHEMA", "VERSION", "load_table", "save_table", "table_of_text", "table_text"]

SCHEMA = "ov-autoplace/cost-table"
VERSION = 1
_WHAT = "a cost table"
_MAX_ID = 2**31 - 2
_MAX_DIM = 2**63 - 1

_Field = TypeVar("_Field")


def save_table(table: CostTable, path: str | Path) -> None:
    """Write ``table`` to ``path``.

    Raises:
        OutputError: The file cannot be written.
    """
    write_text_atomically(path, table_text(table))


def table_text(table: CostTable) -> str:
    """A table as JSON."""
    head = {
        "schema": SCHEMA,
        "version": VERSION,
        "source": table.source,
        "transfer_latency": table.transfer_latency.tolist(),
        "transfer_seconds_per_byte": table.transfer_seconds_per_byte.tolist(),
        "mix_seconds": table.mix_seconds,
        "corun_factor": table.corun_factor,
        "doubt": table.doubt,
    }
    sections = {"devices": _devices(table), "groups": _groups(table), "tensors": _tensors(table)}
    parts = [f"{json.dumps(key)}: {_dumps(value)}" for key, value in head.items()]
    if table.wiring is not None:
        parts.append(f'"wiring": {_dumps(_wiring(table.wiring))}')
    for key, items in sections.items():
        lines = ",\n  ".join(map(_dumps, items))
        parts.append(f"{json.dumps(key)}: [\n  {lines}\n ]" if lines else f"{json.dumps(key)}: []")
    return "{" + ",\n ".join(parts) + "}\n"


def load_table(path: str | Path) -> CostTable:
    """Read a table that :func:`save_table` wrote.

    Raises:
        CostTableError: The file is missing, is no cost table, has another version, or contradicts itself.
    """
    return _table(read_json(path, CostTableError, _WHAT), str(path))


def table_of_text(text: str, where: str) -> CostTable:
    """The table of a text that :func:`table_text` made.

    Args:
        text: JSON.
        where: Where it is from, for error sentences.

    Raises:
        CostTableError: As :func:`load_table` raises it.
    """
    return _table(json_of(text, where, CostTableError, _WHAT), where)


def _table(data: object, where: str) -> CostTable:
    top = Record.of(data, where, CostTableError)
    top.require_schema(SCHEMA, VERSION)
    devices = list(top.records("devices", "device"))
    groups = list(top.records("groups", "group"))
    tensors = list(top.records("tensors", "tensor"))
    D = len(devices)
    offsets, consumers = csr_from_lists([tensor.integers("consumers", 0, _MAX_ID) for tensor in tensors])
    op_seconds = [group.numbers("op_seconds", D, null=math.inf) for group in groups]
    classes = _on_all(groups, "colocation", lambda g: g.integer("colocation", -1, _MAX_ID))
    results = _on_all(groups, "result_bytes", lambda g: g.number("result_bytes"))
    with naming(where, CostTableError):
        return CostTable(
            devices=tuple(device.text("name") for device in devices),
            names=tuple(group.text("name") for group in groups),
            op_seconds=np.array(op_seconds, dtype=np.float64).reshape(len(groups), D),
            tensor_producer=_array([tensor.integer("producer", 0, _MAX_ID) for tensor in tensors], np.int64),
            tensor_bytes=_array([tensor.number("bytes") for tensor in tensors], np.float64),
            tensor_offsets=offsets,
            tensor_consumers=consumers,
            tensor_is_constant=_array([tensor.flag("constant", False) for tensor in tensors], np.bool_),
            tensor_uncuttable=_array([tensor.flag("uncuttable", False) for tensor in tensors], np.bool_),
            transfer_latency=_array(top.matrix("transfer_latency", D, D), np.float64),
            transfer_seconds_per_byte=_array(top.matrix("transfer_seconds_per_byte", D, D), np.float64),
            launch_seconds=_array([device.number("launch_seconds") for device in devices], np.float64),
            mix_seconds=top.number("mix_seconds") if "mix_seconds" in top else 0.0,
            corun_factor=top.number("corun_factor") if "corun_factor" in top else 1.0,
            doubt=top.number("doubt") if "doubt" in top else 1.0,
            lane_devices=_on_all(devices, "lane_of", lambda d: d.text("lane_of")),
            memory_bytes=_array([group.number("memory_bytes") for group in groups], np.float64),
            memory_capacity=_array(
                [device.number("memory_capacity", null=math.inf) for device in devices], np.float64
            ),
            colocation=None if classes is None else _array(classes, np.int64),
            op_types=_on_all(groups, "op_type", lambda g: g.text("op_type")),
            output_shapes=_on_all(
                groups, "output_shape", lambda g: tuple(g.integers("output_shape", -1, _MAX_DIM))
            ),
            members=_on_all(groups, "members", lambda g: g.texts("members")),
            source=top.text("source"),
            result_bytes=None if results is None else _array(results, np.float64),
            wiring=_read_wiring(top.record("wiring")) if "wiring" in top else None,
        )


def _devices(table: CostTable) -> Iterable[dict[str, Any]]:
    for d, name in enumerate(table.devices):
        device = {
            "name": name,
            "launch_seconds": float(table.launch_seconds[d]),
            "memory_capacity": _or_null(float(table.memory_capacity[d])),
        }
        yield device if table.lane_devices is None else device | {"lane_of": table.lane_devices[d]}


def _groups(table: CostTable) -> Iterable[dict[str, Any]]:
    for g, name in enumerate(table.names):
        group: dict[str, Any] = {
            "name": name,
            "op_seconds": [_or_null(seconds) for seconds in table.op_seconds[g].tolist()],
            "memory_bytes": float(table.memory_bytes[g]),
        }
        if table.result_bytes is not None:
            group["result_bytes"] = float(table.result_bytes[g])
        if table.op_types is not None:
            group["op_type"] = table.op_types[g]
        if table.output_shapes is not None:
            group["output_shape"] = table.output_shapes[g]
        if table.colocation is not None:
            group["colocation"] = int(table.colocation[g])
        if table.members is not None:
            group["members"] = table.members[g]
        yield group


def _tensors(table: CostTable) -> Iterable[dict[str, Any]]:
    offsets = table.tensor_offsets.tolist()
    for t, producer in enumerate(table.tensor_producer.tolist()):
        tensor: dict[str, Any] = {
            "producer": producer,
            "bytes": float(table.tensor_bytes[t]),
            "consumers": table.tensor_consumers[offsets[t] : offsets[t + 1]].tolist(),
        }
        if table.tensor_is_constant[t]:
            tensor["constant"] = True
        if table.tensor_uncuttable[t]:
            tensor["uncuttable"] = True
        yield tensor


def _wiring(wiring: Wiring) -> dict[str, Any]:
    offsets, consumers = wiring.tensor_offsets.tolist(), wiring.tensor_consumers.tolist()
    return {
        "node_group": wiring.node_group.tolist(),
        "node_kind": wiring.node_kind.tolist(),
        "tensor_producer": wiring.tensor_producer.tolist(),
        "tensor_bytes": wiring.tensor_bytes.tolist(),
        "tensor_consumers": [consumers[begin:end] for begin, end in pairwise(offsets)],
        "bonds": wiring.bonds.tolist(),
        "links": wiring.links.tolist(),
    }


def _read_wiring(record: Record) -> Wiring:
    offsets, consumers = csr_from_lists(record.integer_lists("tensor_consumers", 0, _MAX_ID))
    producers = record.integers("tensor_producer", 0, _MAX_ID)
    return Wiring(
        node_group=_array(record.integers("node_group", 0, _MAX_ID), np.int32),
        node_kind=_array(record.integers("node_kind", 0, _MAX_ID), np.int32),
        tensor_producer=_array(producers, np.int32),
        tensor_bytes=_array(record.numbers("tensor_bytes", len(producers)), np.float64),
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        bonds=_array(record.rows("bonds", 2, 0, _MAX_ID), np.int32),
        links=_array(record.rows("links", 3, 0, _MAX_ID) if "links" in record else [], np.int32),
    )


def _on_all(records: list[Record], key: str, read: Callable[[Record], _Field]) -> tuple[_Field, ...] | None:
    """The field ``key`` of every record, or ``None`` when none has it."""
    if not any(key in record for record in records):
        return None
    return tuple(read(record) for record in records)


def _array(values: Sequence[Any], dtype: DTypeLike) -> NDArray[Any]:
    return np.array(values, dtype=dtype)


def _or_null(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _dumps(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
