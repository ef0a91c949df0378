"""Cost tables as NumPy archives (``.npz``), for tables of a million groups: one array per field.

An archive holds the arrays of a :class:`~ov_autoplace.cost.table.CostTable` under the names of its fields,
those of its wiring behind ``wiring.``, and what is no array in ``head``, a JSON object. Texts are one array
of UTF-8 and one of offsets, ``names`` and ``names.offsets``; so are lists of different lengths. Optional
fields are left out where the table has none.

Nothing is unpickled, and no array is longer than its file: entries are not compressed, and headers that
NumPy would evaluate as Python are matched as texts.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.files import os_reason, write_atomically
from ov_autoplace._base.json_fields import Record, naming
from ov_autoplace._base.text import parse_json
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.wiring import Wiring
from ov_autoplace.errors import CostTableError

__all__ = ["SUFFIX", "load_archive", "save_archive"]

SUFFIX = ".npz"
_SCHEMA, _VERSION = "ov-autoplace/cost-table-arrays", 1

_SECONDS, _IDS, _BYTES, _LONG = "<f8", "<i4", "|u1", "<i8"
_FIELDS = {
    "op_seconds": _SECONDS,
    "tensor_producer": _IDS,
    "tensor_bytes": _SECONDS,
    "tensor_offsets": _IDS,
    "tensor_consumers": _IDS,
    "tensor_is_constant": _BYTES,
    "tensor_uncuttable": _BYTES,
    "transfer_latency": _SECONDS,
    "transfer_seconds_per_byte": _SECONDS,
    "launch_seconds": _SECONDS,
    "memory_bytes": _SECONDS,
    "memory_capacity": _SECONDS,
}
_OPTIONAL = {"colocation": _IDS, "result_bytes": _SECONDS}
_WIRING = {
    "node_group": _IDS,
    "node_kind": _IDS,
    "tensor_producer": _IDS,
    "tensor_bytes": _SECONDS,
    "tensor_offsets": _IDS,
    "tensor_consumers": _IDS,
    "bonds": _IDS,
    "links": _IDS,
}
_ROWS = {"bonds": (2,), "links": (3,)}
_MARKS = ("tensor_is_constant", "tensor_uncuttable")
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    r"\{'descr': '([<|][a-z]\d)', 'fortran_order': False, 'shape': \((\d{1,18}),(?: (\d{1,18}))?\), \} *\n"
)


def save_archive(table: CostTable, path: str | Path) -> None:
    """Write ``table`` to ``path``.

    Raises:
        OutputError: The file cannot be written.
    """
    head = {
        "schema": _SCHEMA,
        "version": _VERSION,
        "source": table.source,
        "devices": table.devices,
        "mix_seconds": table.mix_seconds,
        "corun_factor": table.corun_factor,
    }
    if table.lane_devices is not None:
        head["lane_devices"] = table.lane_devices
    arrays: dict[str, Any] = {
        "head": _bytes(json.dumps(head, allow_nan=False).encode()),
        **_texts("names", table.names),
    }
    for field, dtype in (_FIELDS | _OPTIONAL).items():
        if getattr(table, field) is not None:
            arrays[field] = getattr(table, field).astype(dtype, copy=False)
    if table.op_types is not None:
        arrays |= _texts("op_types", table.op_types)
    if table.output_shapes is not None:
        arrays["output_shapes"] = np.array([size for shape in table.output_shapes for size in shape], _LONG)
        arrays["output_shapes.offsets"] = _offsets([len(shape) for shape in table.output_shapes])
    if table.members is not None:
        arrays |= _texts("members", [op for ops in table.members for op in ops])
        arrays["members.groups"] = _offsets([len(ops) for ops in table.members])
    if table.wiring is not None:
        for field, dtype in _WIRING.items():
            arrays[f"wiring.{field}"] = getattr(table.wiring, field).astype(dtype, copy=False)

    def write(file: BinaryIO) -> None:
        np.savez(file, **arrays)

    write_atomically(path, write)


def load_archive(path: str | Path) -> CostTable:
    """Read a table that :func:`save_archive` wrote.

    Raises:
        CostTableError: The file is missing, is no cost table, has another version, or contradicts itself.
    """
    with naming(path, CostTableError):
        arrays = _arrays(path)
        head = Record.of(_head(arrays), "'head'", CostTableError)
        head.require_schema(_SCHEMA, _VERSION)
        fields: dict[str, Any] = {name: _array(arrays, name, dtype) for name, dtype in _FIELDS.items()}
        fields |= {name: _array(arrays, name, dtype) for name, dtype in _OPTIONAL.items() if name in arrays}
        fields |= {name: _marks(name, fields[name]) for name in _MARKS}
        if "op_types" in arrays:
            fields["op_types"] = _read_texts(arrays, "op_types")
        if "output_shapes" in arrays:
            sizes = _array(arrays, "output_shapes", _LONG, ())
            if sizes.size and sizes.min() < -1:
                raise CostTableError(f"'output_shapes' holds {sizes.min()}; sizes are -1 or more")
            fields["output_shapes"] = _rows(sizes.tolist(), arrays, "output_shapes.offsets")
        if "members" in arrays:
            fields["members"] = _rows(_read_texts(arrays, "members"), arrays, "members.groups")
        if "wiring.node_group" in arrays:
            fields["wiring"] = Wiring(
                **{
                    name: _array(arrays, f"wiring.{name}", dtype, _ROWS.get(name, ()))
                    for name, dtype in _WIRING.items()
                }
            )
        return CostTable(
            devices=head.texts("devices"),
            names=_read_texts(arrays, "names"),
            source=head.text("source"),
            mix_seconds=head.number("mix_seconds"),
            corun_factor=head.number("corun_factor"),
            lane_devices=head.texts("lane_devices") if "lane_devices" in head else None,
            **fields,
        )


def _arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of an archive by name; they share its memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > os.path.getsize(path):
                raise CostTableError("this is no cost table: its entries are longer than the file")
            if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
                raise CostTableError(
                    "this is no cost table: its entries are compressed or encrypted; write it with save_table"
                )
            if len({entry.filename for entry in entries}) < len(entries):
                raise CostTableError("this is no cost table: two entries have one name")
            return {entry.filename.removesuffix(".npy"): _entry(archive, entry) for entry in entries}
    except OSError as cause:
        raise CostTableError(f"cannot read a cost table from {path}: {os_reason(cause)}") from cause
    except (
        zipfile.BadZipFile,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        struct.error,
    ) as cause:
        raise CostTableError(f"this is no cost table: it is no NumPy archive ({cause})") from cause


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """One array: a header of NumPy's format 1.0 and its data."""
    data = archive.read(entry)
    start = len(_MAGIC) + 2
    end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    header = _HEADER.fullmatch(data[start:end].decode("latin-1"))
    if not data.startswith(_MAGIC) or header is None:
        raise CostTableError(f"{entry.filename[:60]!r} is not an array as save_table writes it")
    shape = tuple(int(size) for size in header.groups()[1:] if size is not None)
    dtype = header[1]
    if dtype not in (_SECONDS, _IDS, _BYTES, _LONG):
        raise CostTableError(
            f"{entry.filename[:60]!r} holds values of the type {dtype!r}, which no field has"
        )
    length = int(np.dtype(dtype).itemsize)
    for size in shape:
        length *= size
    if length != len(data) - end:
        raise CostTableError(
            f"{entry.filename[:60]!r} holds {len(data) - end} bytes; its shape needs {length}"
        )
    return np.frombuffer(data, dtype, offset=end).reshape(shape)


def _array(
    arrays: Mapping[str, NDArray[Any]], name: str, dtype: str, row: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """An array of a type, and of rows of a shape where that is given.

    Raises:
        CostTableError: It is missing, or has another type or shape.
    """
    if name not in arrays:
        raise CostTableError(f"{name!r} is missing")
    array = arrays[name]
    if array.dtype != np.dtype(dtype):
        raise CostTableError(f"{name!r} must hold {np.dtype(dtype)} values, not {array.dtype}")
    if row is not None and array.shape[1:] != row and array.shape != (0,):
        wanted = "one dimension" if row == () else f"rows of {row[0]}"
        raise CostTableError(f"{name!r} must have {wanted}, not the shape {list(array.shape)}")
    return array


def _head(arrays: Mapping[str, NDArray[Any]]) -> Any:
    try:
        return parse_json(_array(arrays, "head", _BYTES).tobytes().decode())
    except (ValueError, RecursionError) as cause:
        raise CostTableError(f"'head' does not parse as JSON ({cause})") from cause


def _marks(name: str, values: NDArray[np.uint8]) -> NDArray[np.bool_]:
    if values.size and values.max() > 1:
        raise CostTableError(f"{name!r} must be 0 or 1, not {values.max()}")
    return values.astype(np.bool_)


def _bytes(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8)


def _offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(_LONG)


def _texts(name: str, values: Sequence[str]) -> dict[str, NDArray[Any]]:
    # Names come from models; JSON keeps the lone halves of surrogate pairs, too.
    encoded = [value.encode("utf-8", "surrogatepass") for value in values]
    return {name: _bytes(b"".join(encoded)), f"{name}.offsets": _offsets([len(text) for text in encoded])}


def _read_texts(arrays: Mapping[str, NDArray[Any]], name: str) -> tuple[str, ...]:
    content = _array(arrays, name, _BYTES).tobytes()
    offsets = _checked_offsets(arrays, f"{name}.offsets", len(content))
    try:
        return tuple(content[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(offsets))
    except UnicodeDecodeError as cause:
        raise CostTableError(f"{name!r} is no UTF-8 ({cause.reason})") from cause


def _rows(
    values: Sequence[Any], arrays: Mapping[str, NDArray[Any]], name: str
) -> tuple[tuple[Any, ...], ...]:
    """The values between each two offsets."""
    offsets = _checked_offsets(arrays, name, len(values))
    return tuple(tuple(values[begin:end]) for begin, end in pairwise(offsets))


def _checked_offsets(arrays: Mapping[str, NDArray[Any]], name: str, end: int) -> list[int]:
    offsets = _array(arrays, name, _LONG)
    if (
        offsets.ndim != 1
        or not len(offsets)
        or offsets[0]
        or offsets[-1] != end
        or (np.diff(offsets) < 0).any()
    ):
        raise CostTableError(f"{name!r} must rise from 0 to {end} without a fall")
    found: list[int] = offsets.tolist()
    return found
