"""Placement problems with a teacher's answers, as files: training reads them and waits for no teacher.

A shard is one ``.npz`` file of P problems that holds no pickled objects. It knows nothing of what a policy
sees, so that networks may change without new labels. For each field of :data:`_FIELDS`, ``FIELD`` holds the
values of all problems one after the other and ``FIELD.sizes`` says how many each problem has, ``int64[P]``.
What an estimate changes of a table is stored beside the truth (``shown_...``), the rest once.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.files import read_arrays, write_atomically
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CostTableError, TrainingError
from ov_autoplace.training.targets import Task

__all__ = ["Labelled", "Shard", "load_labelled", "read_shard", "save_labelled", "shard_bytes"]

_SCHEMA = 1

_ESTIMATED = ("op_seconds", "transfer_latency", "transfer_seconds_per_byte")
_TABLE = (
    *_ESTIMATED,
    "tensor_producer",
    "tensor_bytes",
    "tensor_offsets",
    "tensor_consumers",
    "tensor_is_constant",
    "tensor_uncuttable",
    "launch_seconds",
    "memory_bytes",
    "memory_capacity",
)
_OPTIONAL = ("result_bytes", "op_types", "lane_devices")
_UNSTORED = ("colocation", "members", "wiring")
# Kinds of values (NumPy's letters) that each stored array may hold.
_FIELDS: dict[str, str] = {
    **dict.fromkeys(_TABLE, "f"),
    **dict.fromkeys(("tensor_producer", "tensor_offsets", "tensor_consumers"), "i"),
    **dict.fromkeys(("tensor_is_constant", "tensor_uncuttable"), "b"),
    **{f"shown_{field}": "f" for field in _ESTIMATED},
    "result_bytes": "f",
    "op_types": "U",
    "lane_devices": "U",
    "ranks": "i",
    "dims": "i",
    "about": "U",
    "seconds": "f",
    "assignment": "i",
}


@dataclass(frozen=True, eq=False)
class Labelled:
    """A problem and the answer to imitate.

    Attributes:
        task: The cost tables and the objective.
        assignment: The teacher's device of each group, ``int16[G]``.
        best_seconds: What that takes on the true table, by the objective of the task.
        bound_seconds: Proven below every allowed placement; 0 where nothing is.
        single_seconds: Of the best single device that may run and hold everything; ``inf`` = there is none.
    """

    task: Task
    assignment: NDArray[np.int16]
    best_seconds: float
    bound_seconds: float
    single_seconds: float


class Shard(Sequence[Labelled]):
    """P problems in the arrays of their file, each of which is made of them when it is asked for.

    Args:
        arrays: As the file has them.

    Raises:
        ValueError: The sizes do not fit the values.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = dict(arrays)
        self._offsets = {field: _offsets(arrays, field) for field in _FIELDS}

    def __len__(self) -> int:
        return len(self._arrays["about.sizes"])

    @overload
    def __getitem__(self, i: int) -> Labelled: ...

    @overload
    def __getitem__(self, i: slice) -> list[Labelled]: ...

    def __getitem__(self, i: int | slice) -> Labelled | list[Labelled]:
        if isinstance(i, slice):
            return [self[j] for j in range(len(self))[i]]
        if not 0 <= i < len(self):
            raise IndexError(i)
        fields = {}
        for field, offsets in self._offsets.items():
            fields[field] = self._arrays[field][offsets[i] : offsets[i + 1]]
        return _problem(fields)

    @property
    def num_devices(self) -> NDArray[np.int64]:
        """Columns of each problem's tables, ``int64[P]``."""
        return np.asarray(self._arrays["launch_seconds.sizes"], dtype=np.int64)


def save_labelled(path: str | Path, problems: Sequence[Labelled]) -> None:
    """Write a shard, whole or not at all.

    Raises:
        TrainingError: A table has co-location classes, members or wiring, which shards do not hold.
        OutputError: The file cannot be written.
    """
    write_atomically(path, shard_bytes(problems))


def shard_bytes(problems: Sequence[Labelled]) -> bytes:
    """The content of the file that :func:`save_labelled` writes.

    Raises:
        TrainingError: A table has co-location classes, members or wiring, which shards do not hold.
    """
    stored = [_stored(problem) for problem in problems]
    arrays: dict[str, Any] = {"schema": np.array(_SCHEMA)}
    for field in _FIELDS:
        parts = [part[field] for part in stored]
        arrays[field] = np.concatenate(parts) if parts else np.zeros(0)
        arrays[f"{field}.sizes"] = np.array([len(part) for part in parts], dtype=np.int64)
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def read_shard(path: str | Path) -> Shard:
    """Read what :func:`save_labelled` wrote; each problem of it has been looked at.

    Raises:
        TrainingError: There is no such file, or it holds no labelled problems.
    """
    try:
        arrays = read_arrays(path)
        if arrays["schema"].tolist() != _SCHEMA:
            raise ValueError(f"its schema is {arrays['schema'].tolist()}, and this version reads {_SCHEMA}")
        shard = Shard(arrays)
        for i in range(len(shard)):
            shard[i]
        return shard
    except (KeyError, ValueError, IndexError, CostTableError) as cause:
        raise TrainingError(
            f"{path} holds no labelled problems ({cause}); write it again with tools/examples.py"
        ) from cause


def load_labelled(path: str | Path) -> list[Labelled]:
    """All problems of a shard.

    Raises:
        TrainingError: There is no such file, or it holds no labelled problems.
    """
    return list(read_shard(path))


def _offsets(arrays: Mapping[str, NDArray[Any]], field: str) -> NDArray[np.int64]:
    """Where the values of each problem begin, ``int64[P + 1]``."""
    values, sizes = arrays[field], arrays[f"{field}.sizes"]
    if len(values) and values.dtype.kind not in _FIELDS[field]:
        raise ValueError(f"{field} holds {values.dtype} values")
    if values.ndim != 1 or sizes.dtype.kind != "i" or (sizes < 0).any() or sizes.sum() != len(values):
        raise ValueError(f"the sizes of {field} do not fit its values")
    if len(sizes) != len(arrays["about.sizes"]):
        raise ValueError(f"{field} is there {len(sizes)} times")
    return np.concatenate(([0], np.cumsum(sizes)))


def _stored(problem: Labelled) -> dict[str, NDArray[Any]]:
    """One array per field of :data:`_FIELDS`, each with one axis."""
    shown, true = problem.task.shown, problem.task.true
    for field in _UNSTORED:
        if getattr(true, field) is not None:
            raise TrainingError(f"{problem.task.name} has {field}, which a shard does not hold")
    shapes = true.output_shapes or ()
    fields = {field: np.ravel(getattr(true, field)) for field in _TABLE}
    for field in _ESTIMATED:
        fields[f"shown_{field}"] = np.zeros(0) if shown is true else np.ravel(getattr(shown, field))
    for field in _OPTIONAL:
        value = getattr(true, field)
        kind = np.float64 if field == "result_bytes" else np.str_
        fields[field] = np.array([] if value is None else value, dtype=kind)
    return fields | {
        "ranks": np.array([len(shape) for shape in shapes], dtype=np.int64),
        "dims": np.array([dim for shape in shapes for dim in shape], dtype=np.int64),
        "about": np.array([problem.task.family, problem.task.name, problem.task.objective]),
        "seconds": np.array(
            [
                true.mix_seconds,
                true.corun_factor,
                problem.best_seconds,
                problem.bound_seconds,
                problem.single_seconds,
            ]
        ),
        "assignment": np.asarray(problem.assignment, dtype=np.int16),
    }


def _problem(fields: Mapping[str, NDArray[Any]]) -> Labelled:
    """The opposite of :func:`_stored`."""
    family, name, objective = fields["about"].tolist()
    mix, corun, best, bound, single = fields["seconds"].tolist()
    D, G = len(fields["launch_seconds"]), len(fields["assignment"])
    shapes = {"op_seconds": (G, D), "transfer_latency": (D, D), "transfer_seconds_per_byte": (D, D)}
    values: dict[str, Any] = {field: fields[field].reshape(shapes.get(field, -1)) for field in _TABLE}
    values |= {field: _tuple_or_none(fields[field]) for field in ("op_types", "lane_devices")}
    results = fields["result_bytes"]
    dims = np.split(fields["dims"], np.cumsum(fields["ranks"])[:-1]) if len(fields["ranks"]) else None
    lanes = values["lane_devices"]
    true = CostTable(
        devices=_column_names(D, lanes),
        names=tuple(f"group{g}" for g in range(G)),
        result_bytes=results if len(results) else None,
        output_shapes=None if dims is None else tuple(tuple(shape.tolist()) for shape in dims),
        mix_seconds=mix,
        corun_factor=corun,
        source="profiled",
        **values,
    )
    shown = true
    if len(fields["shown_op_seconds"]):
        changed: dict[str, Any] = {
            field: fields[f"shown_{field}"].reshape(shapes[field]) for field in _ESTIMATED
        }
        shown = replace(true, source="analytic", **changed)
    if not ((fields["assignment"] >= 0) & (fields["assignment"] < D)).all():
        raise ValueError(f"{name} is placed on a device that it does not have")
    return Labelled(Task(shown, true, family, name, objective), fields["assignment"], best, bound, single)


def _tuple_or_none(values: NDArray[Any]) -> tuple[Any, ...] | None:
    return tuple(values.tolist()) if len(values) else None


def _column_names(columns: int, lane_devices: tuple[str, ...] | None) -> tuple[str, ...]:
    """Names as random machines have them."""
    if lane_devices is None:
        return tuple(f"DEVICE{d}" for d in range(columns))
    number = [lane_devices[:d].count(name) for d, name in enumerate(lane_devices)]
    shared = [lane_devices.count(name) > 1 for name in lane_devices]
    return tuple(
        f"{name}#{n}" if several else name
        for name, n, several in zip(lane_devices, number, shared, strict=True)
    )
